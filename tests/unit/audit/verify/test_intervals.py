"""Shares in an interval: what a newcomer waits for before its first visit is no breach of the bound."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Final

from streams.audit.recording import MemoryRecording
from streams.audit.verify import verify
from streams.core.inputs import SUCCEEDED
from streams.core.policy import Estimates, Policy, TenantRules, Window
from streams.wire import Assignment, decode_dispatch, decode_journal, encode_completion, encode_request
from tests.recorded import BEGIN_MS, Recorder, first_policy

QUANTUM: Final = 20
DEAR: Final = 30  # tokens: more than a visit brings
HEAVY: Final = 100  # the weight of the newcomer: little is allowed for its own estimates
RUN_MS: Final = 20
INTERVAL_MS: Final = 600


class Even(random.Random):
    """Nobody errs, and everything takes as little time as it can."""

    def random(self) -> float:
        return 0.5

    def randint(self, a: int, b: int) -> int:
        del b
        return a


class Exact(Recorder):
    """Runs cost what was said."""

    def hand_out(self, dispatches: Sequence[tuple[bytes, bytes]]) -> None:
        for _, value in dispatches:
            given = decode_dispatch(value)
            assert isinstance(given, Assignment)
            self._told += 1
            heappush(self._due, (self.now_ms + RUN_MS, self._told, given, SUCCEEDED))

    def _report(self) -> None:
        while self._due and self._due[0][0] <= self.now_ms:
            _, _, given, status = heappop(self._due)
            value = encode_completion(
                tenant=given.tenant, run_id=given.run_id, attempt=1, status=status, tokens=given.estimate, worker="w1"
            )
            self.write("completions", 0, given.tenant.encode(), value)

    def file_runs(self, tenant: str, *costs: int) -> None:
        for cost in costs:
            self._filed += 1
            value = encode_request(tenant=tenant, run_id=f"r{self._filed}", workflow="agent", estimate=cost)
            self.write("requests", 0, tenant.encode(), value)


def one_at_a_time() -> Policy:
    exact = Estimates(source="hint", min_charge=1)
    tenants = {"newcomer": TenantRules(weight=HEAVY)}
    window = Window(runs=1, tokens=None)
    return replace(first_policy(0), quantum=QUANTUM, window=window, estimates=exact, tenants=tenants)


def visited_twice() -> MemoryRecording:
    """The newcomer comes before the other's visit of the round, which has saved something up."""
    recorder = Exact(Even(), 1, 0, now_ms=BEGIN_MS - 3 * RUN_MS)
    recorder.state_policy(one_at_a_time())
    recorder.file_runs("third", QUANTUM, QUANTUM)
    recorder.file_runs("other", 1, DEAR, *[1] * 60)
    while recorder.now_ms < BEGIN_MS - 2:
        recorder.tick()
    recorder.file_runs("newcomer", *[1] * 20)
    recorder.drain()
    return recorder.recording


def test_others_may_be_visited_twice_before_a_newcomer() -> None:
    recording = visited_twice()
    entries = [decode_journal(each.value) for each in recording.read("journal", 0) if each.value]
    inside = [entry for entry in entries if BEGIN_MS <= entry.now_ms < BEGIN_MS + INTERVAL_MS]
    given = [decision for entry in inside for decision in entry.decisions]
    assert {decision.tenant for decision in given} == {"other"}
    assert sum(decision.estimate for decision in given) > QUANTUM + DEAR + DEAR / HEAVY, "more than between old ones"
    report = verify(recording, interval_ms=INTERVAL_MS)
    assert report.looked_at["intervals in which tenants contended"] > 0
    assert report.problems == []
