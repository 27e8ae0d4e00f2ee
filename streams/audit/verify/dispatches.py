"""The dispatch topic against the journal: what was decided was sent, once, as it was decided and asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streams.audit.verify.door import digest
from streams.audit.verify.horizon import Horizon
from streams.audit.verify.matching import Matching
from streams.errors import BadRecord, visible
from streams.wire import Assignment, Revocation, decode_dispatch
from streams.wire.body import pack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.audit.recording import Rec, Recording
    from streams.audit.verify.findings import Findings, Span
    from streams.audit.verify.subjects import Run
    from streams.core.effects import Revoke
    from streams.wire import Decision, JournalEntry


class Sent(NamedTuple):
    """One dispatch or revocation, on either side."""

    shard: int
    step: int
    epoch: int
    seq: int
    kind: str
    tenant: str
    run_id: str
    attempt: int
    class_: str  # "" of a revocation
    estimate: int  # 0 of a revocation
    reason: str  # "" of a dispatch
    lease_ms: int | None  # None: not known, or a revocation
    asked: bytes  # see `digest`; empty: not known, or a revocation
    at_ms: int = 0  # of the step
    partition: int = 0  # of the dispatch topic; of the record, as is the next
    offset: int | None = None


_COMPARED: Final = ("step", "epoch", "kind", "tenant", "run_id", "attempt", "class_", "estimate", "reason")


class Dispatches:
    """Of all shards."""

    def __init__(self, recording: Recording, findings: Findings) -> None:
        self._findings: Final = findings
        self._horizon: Final = Horizon(recording, "dispatch")
        self._pairs: Final[Matching[Sent, Sent]] = Matching()
        self._last: Final[dict[tuple[int, int], Sent]] = {}  # by partition and shard

    def decided(self, entry: JournalEntry, decision: Decision, run: Run | None) -> None:
        """Take in a decision of the journal, and what its request has asked for; None: that is not known."""
        self._say(
            Sent(
                entry.shard,
                entry.step,
                entry.epoch,
                decision.seq,
                "dispatch",
                decision.tenant,
                decision.run_id,
                decision.attempt,
                decision.class_,
                decision.estimate,
                "",
                run.lease_ms if run is not None else None,
                run.asked if run is not None else b"",
                entry.now_ms,
            )
        )

    def revoked(self, entry: JournalEntry, revoke: Revoke) -> None:
        """Take in a revocation of the journal."""
        self._say(_revocation(entry.shard, entry.step, entry.epoch, revoke)._replace(at_ms=entry.now_ms))

    def read(self, partition: int, record: Rec) -> None:
        """Take in a record of the topic."""
        self._findings.looked_at["dispatch records"] += 1
        try:
            given = decode_dispatch(record.value)
        except BadRecord as error:
            sentence = f"dispatch, partition {partition}, offset {record.offset} cannot be read: {error}"
            place = {"topic": "dispatch", "offset": record.offset, "partition": partition}
            self._findings.add("dispatches", None, sentence, **place)  # type: ignore[arg-type] # each is of its type
            return
        sent = _sent(given)._replace(partition=partition, offset=record.offset)
        self._horizon.note(partition, sent.shard, sent.seq)
        self._in_order(sent)
        if record.key != sent.run_id.encode():
            self._wrong(sent, f"its key is {record.key!r}, its run {visible(sent.run_id)}")
        said = self._pairs.do((sent.shard, sent.seq), sent)
        if said is not None:
            self._compare(said, sent)

    def finish(self, spans: Mapping[int, Span]) -> None:
        """Say what stands on one side only. `spans` are the steps that the journals were followed through."""
        for said in self._pairs.only_said():
            if self._horizon.may_hide(said.shard, said.seq, said.at_ms):
                self._findings.looked_at["decisions whose dispatch has been deleted"] += 1
                continue
            sentence = f"seq {said.seq}, {_name(said)}: decided, and not in the dispatch topic"
            self._findings.add("dispatches", said.shard, sentence, step=said.step, topic="dispatch")
        for done in self._pairs.only_done():
            span = spans.get(done.shard)
            if span is None or done.step in span:
                self._wrong(done, f"seq {done.seq}, {_name(done)}: the journal has no such decision, or has it once")

    def _say(self, said: Sent) -> None:
        if self._horizon.hides(said.at_ms):
            self._findings.looked_at["decisions whose dispatch has been deleted"] += 1
            return
        sent = self._pairs.say((said.shard, said.seq), said)
        if sent is not None:
            self._compare(said, sent)

    def _in_order(self, sent: Sent) -> None:
        """A partition holds a shard's records in their order, and none of an owner that had been replaced."""
        before = self._last.get((sent.partition, sent.shard))
        if before is not None:
            if sent.seq <= before.seq:
                self._wrong(sent, f"seq {sent.seq} of shard {sent.shard} stands behind seq {before.seq}")
            if sent.epoch < before.epoch:
                self._wrong(sent, f"seq {sent.seq} is of epoch {sent.epoch}, and stands behind one of {before.epoch}")
        if before is None or sent.seq > before.seq:
            self._last[sent.partition, sent.shard] = sent

    def _compare(self, said: Sent, sent: Sent) -> None:
        differences = [
            f"{name.rstrip('_')} is {_shown(getattr(sent, name))}, decided was {_shown(getattr(said, name))}"
            for name in _COMPARED
            if getattr(said, name) != getattr(sent, name)
        ]
        if said.lease_ms is not None and said.lease_ms != sent.lease_ms:
            differences.append(f"the lease is {sent.lease_ms} ms, asked was {said.lease_ms}")
        if said.asked and said.asked != sent.asked:
            differences.append("workflow, deadline, time or body is not the request's")
        if differences:
            self._wrong(sent, f"seq {said.seq}, {_name(said)}: {'; '.join(differences)}", said.step)

    def _wrong(self, sent: Sent, sentence: str, step: int | None = None) -> None:
        self._findings.add(
            "dispatches",
            sent.shard,
            f"dispatch, partition {sent.partition}, offset {sent.offset}: {sentence}",
            step=sent.step if step is None else step,
            topic="dispatch",
            offset=sent.offset,
            partition=sent.partition,
        )


def _sent(given: Assignment | Revocation) -> Sent:
    if isinstance(given, Revocation):
        return _revocation(given.shard, given.step, given.epoch, given)
    body = pack(given.payload_json, given.headers, given.max_tokens)
    return Sent(
        given.shard,
        given.step,
        given.epoch,
        given.seq,
        "dispatch",
        given.tenant,
        given.run_id,
        given.attempt,
        given.class_,
        given.estimate,
        "",
        given.lease_ms,
        digest(given.workflow, given.deadline_ms, given.submitted_ms, body),
    )


def _revocation(shard: int, step: int, epoch: int, given: Revoke | Revocation) -> Sent:
    attempt = (given.tenant, given.run_id, given.attempt)
    return Sent(shard, step, epoch, given.seq, "revoke", *attempt, "", 0, given.reason, None, b"")


def _name(sent: Sent) -> str:
    return f"{visible(sent.tenant)}/{visible(sent.run_id)} attempt {sent.attempt}"


def _shown(value: object) -> str:
    return visible(value) if isinstance(value, str) else str(value)
