"""The rejected topic against what the journal refuses, and the limits that a refusal names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streams.audit.verify.horizon import Horizon
from streams.audit.verify.matching import Matching
from streams.core import reasons
from streams.errors import BadRecord, visible
from streams.wire import Refusal, decode_rejection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.audit.recording import Rec, Recording
    from streams.audit.verify.books import Books
    from streams.audit.verify.findings import Findings, Span
    from streams.audit.verify.subjects import Run
    from streams.audit.verify.told import Told
    from streams.wire import RefusedRun, TopicNames

_OF_THE_GATE: Final = 0  # the step of what a gate has refused: no shard has seen it


class Unknown(NamedTuple):
    """A number that the topics don't tell: a replay does."""


UNKNOWN: Final = Unknown()
Number = int | None | Unknown


class Expected(NamedTuple):
    """What the journal, and the limits, say of a refusal."""

    shard: int
    step: int
    what: str
    at_ms: int
    limit: Number
    value: Number


class Found(NamedTuple):
    """A record of the rejected topic."""

    shard: int
    step: int
    what: str
    partition: int
    offset: int
    unusable: bool  # it is of a record that cannot be used
    limit: int | None
    value: int | None


class Refusals:
    """Of all shards."""

    def __init__(self, recording: Recording, names: TopicNames, findings: Findings) -> None:
        self._horizon: Final = Horizon(recording, "rejected")
        self._requests: Final = names.requests
        self._topics: Final = {names.requests: "requests", names.completions: "completions"}
        self._findings: Final = findings
        self._pairs: Final[Matching[Expected, Found]] = Matching()
        self._unknown_to: Final[dict[int, int]] = {}  # by shard: up to that step it is not known what was set aside

    def expect(self, told: Told, refused: RefusedRun, *, limit: Number = UNKNOWN, value: Number = UNKNOWN) -> None:
        """Take in a refusal of the journal."""
        entry = told.entry
        key = (entry.shard, entry.step, refused.tenant, refused.run_id, refused.reason, max(refused.position, -1))
        what = f"{visible(refused.tenant)}/{visible(refused.run_id)}, {refused.reason}"
        self._say(key, Expected(entry.shard, entry.step, what, entry.now_ms, limit, value))

    def expect_unusable(self, told: Told) -> None:
        """Take in what a step has set aside."""
        entry = told.entry
        for topic, offset in told.inputs.unusable:
            what = f"{topic}, offset {offset}, which cannot be used"
            expected = Expected(entry.shard, entry.step, what, entry.now_ms, UNKNOWN, UNKNOWN)
            self._say((entry.shard, entry.step, topic, offset), expected)

    def pass_over(self, told: Told) -> None:
        """Take in that it is not known what a step has set aside, nor those before it."""
        self._unknown_to[told.entry.shard] = told.step

    def pass_unknown(self, told: Told, books: Books) -> None:
        """Take in what is said next of runs that began before the books did."""
        if not books.whole:
            for refused in told.pass_over(books):
                self.expect(told, refused)

    def removed(self, told: Told, run: Run, refused: RefusedRun) -> None:
        """Take in that a run was dropped because its tenant is no longer named."""
        if not run.flow.tenant.barred or run.flow.tenant.rules.paused:
            sentence = (
                f"{visible(run.tenant)}/{visible(run.run_id)} was dropped as of a tenant that is not named, and it is"
            )
            self._findings.add("limits", told.entry.shard, sentence, step=told.step)
        self.expect(told, refused, limit=None, value=None)

    def read(self, partition: int, record: Rec) -> None:
        """Take in a record of the topic."""
        self._findings.looked_at["refusals"] += 1
        try:
            refusal = decode_rejection(record.value)
        except BadRecord as error:
            where = f"rejected, partition {partition}, offset {record.offset}"
            self._findings.add(
                "refusals",
                None,
                f"{where} cannot be read: {error}",
                topic="rejected",
                offset=record.offset,
                partition=partition,
            )
            return
        if refusal.step == _OF_THE_GATE:
            return
        self._horizon.note(partition, refusal.shard, refusal.step)
        found = Found(
            refusal.shard,
            refusal.step,
            _what(refusal),
            partition,
            record.offset,
            refusal.reason == reasons.INVALID,
            refusal.limit,
            refusal.value,
        )
        expected = self._pairs.do(self._key(refusal), found)
        if expected is not None:
            self._compare(expected, found)

    def finish(self, spans: Mapping[int, Span]) -> None:
        """Say what stands on one side only. `spans` are the steps that the journals were followed through."""
        for said in self._pairs.only_said():
            if self._horizon.may_hide(said.shard, said.step, said.at_ms):
                continue
            sentence = f"the refusal of {said.what} is not in the rejected topic"
            self._findings.add("refusals", said.shard, sentence, step=said.step, topic="rejected")
        for done in self._pairs.only_done():
            span = spans.get(done.shard)
            if done.unusable and done.step <= self._unknown_to.get(done.shard, 0):
                continue
            if span is None or done.step in span:
                self._differ(done, f"{done.what}, is not in the journal")

    def _say(self, key: tuple[object, ...], expected: Expected) -> None:
        if self._horizon.hides(expected.at_ms):
            return
        found = self._pairs.say(key, expected)
        if found is not None:
            self._compare(expected, found)

    def _key(self, refusal: Refusal) -> tuple[object, ...]:
        place = refusal.position
        if refusal.reason == reasons.INVALID:
            topic = self._topics.get(place.topic, place.topic)
            return (refusal.shard, refusal.step, topic, place.offset)
        return (refusal.shard, refusal.step, refusal.tenant, refusal.run_id, refusal.reason, place.offset)

    def _compare(self, expected: Expected, found: Found) -> None:
        for name in ("limit", "value"):
            should, has = getattr(expected, name), getattr(found, name)
            if should is not UNKNOWN and should != has:
                self._differ(found, f"{found.what}, names the {name} {has}; it was {should}", check="limits")

    def _differ(self, found: Found, sentence: str, check: str = "refusals") -> None:
        self._findings.add(
            check,
            found.shard,
            f"the refusal at rejected, partition {found.partition}, offset {found.offset}: {sentence}",
            step=found.step,
            topic="rejected",
            offset=found.offset,
            partition=found.partition,
        )


def _what(refusal: Refusal) -> str:
    if refusal.tenant is None:
        return f"{visible(refusal.position.topic)}, offset {refusal.position.offset}, {refusal.reason}"
    return f"{visible(refusal.tenant)}/{visible(refusal.run_id or '')}, {refusal.reason}"
