"""Workers: they take what is dispatched, and tell how it went; some twice, some late, some never."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import Final, NamedTuple

from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, STARTED, SUCCEEDED
from streams.simulate.faulty.chances import DIED, SILENT, TAKEN_TWICE, TOLD_LATE, TOLD_TWICE
from streams.simulate.faulty.scene import Scene
from streams.wire import Assignment, Revocation, decode_dispatch, encode_completion

Attempt = tuple[str, str, int]  # tenant, run_id, number

_LONGEST_MS: Final = 900
_MOST_TOKENS: Final = 1_200


class _Report(NamedTuple):
    """Something that will be told. Ordered by time."""

    at_ms: int
    number: int  # a tiebreaker
    attempt: Attempt
    status: str
    tokens: int | None


class Workers:
    """All of them: which one has which run makes no difference here."""

    def __init__(self, scene: Scene) -> None:
        self._scene: Final = scene
        self._log: Final = scene.log
        self._chances: Final = scene.chances
        self._next = [0] * scene.shards  # of the dispatch topic, which has as many partitions
        self._due: list[_Report] = []  # heap
        self._told = 0
        self.spent: defaultdict[Attempt, set[int]] = defaultdict(set)  # what was said in the end, by attempt

    @property
    def idle(self) -> bool:
        """Whether nothing is left to be told."""
        return not self._due

    def work(self) -> None:
        """Take what can be seen by now, and tell what is due by now."""
        for partition in range(self._scene.shards):
            records, self._next[partition] = self._log.read(("dispatch", partition), self._next[partition])
            for each in records:
                self._take(decode_dispatch(each.value))
        while self._due and self._due[0].at_ms <= self._log.now_ms:
            self._tell(heappop(self._due))

    def _take(self, given: Assignment | Revocation) -> None:
        fires = self._chances.fires
        if isinstance(given, Revocation):
            if not fires(SILENT):
                self._stop(given)
            return
        if fires(DIED):
            return
        for _ in range(2 if fires(TAKEN_TWICE) else 1):
            self._run(given)

    def _run(self, given: Assignment) -> None:
        draw = self._chances.random
        begins = self._log.now_ms + draw.randint(1, 60)
        ends = begins + draw.randint(10, _LONGEST_MS)
        if self._chances.fires(TOLD_LATE):
            ends += 2 * given.lease_ms
        attempt = given.tenant, given.run_id, given.attempt
        spent = draw.randint(0, _MOST_TOKENS)
        status = draw.choices((SUCCEEDED, FAILED, RETURNED), (88, 8, 4))[0]
        self._plan(begins, attempt, STARTED, None)
        if draw.random() < 0.5:  # noqa: PLR2004 - every other one
            self._plan((begins + ends) // 2, attempt, HEARTBEAT, draw.randint(0, spent))
        self._plan(ends, attempt, status, spent if draw.random() < 0.9 else None)  # noqa: PLR2004 - some don't say
        if self._chances.fires(TOLD_TWICE):
            self._plan(ends + draw.randint(0, _LONGEST_MS), attempt, status, spent)

    def _stop(self, given: Revocation) -> None:
        """It was in the middle of it: what it has spent is told at once."""
        attempt = given.tenant, given.run_id, given.attempt
        self._plan(self._log.now_ms, attempt, FAILED, self._chances.random.randint(0, _MOST_TOKENS))

    def _plan(self, at_ms: int, attempt: Attempt, status: str, tokens: int | None) -> None:
        self._told += 1
        heappush(self._due, _Report(at_ms, self._told, attempt, status, tokens))

    def _tell(self, report: _Report) -> None:
        tenant, run_id, attempt = report.attempt
        if report.status in {SUCCEEDED, FAILED} and report.tokens is not None:
            self.spent[report.attempt].add(report.tokens)
        value = encode_completion(
            tenant=tenant,
            run_id=run_id,
            attempt=attempt,
            status=report.status,
            tokens=report.tokens,
            retryable=report.status == FAILED and self._chances.random.random() < 0.7,  # noqa: PLR2004 - most are
            worker="w",
        )
        self._scene.send("completions", tenant, value)
