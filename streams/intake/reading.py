"""Reads what has arrived into inputs of the core, in the one fixed order of a step.

A record at or below the shard's position was applied before and is passed over. One that cannot be read is set
aside, one of another shard's tenant is forwarded; neither holds up its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from streams.core import counts, reasons
from streams.core.effects import Rejection
from streams.core.inputs import Cancel, Completion, Submit
from streams.errors import BadRecord
from streams.intake.records import Source
from streams.intake.unread import HEADERS, check
from streams.wire import (
    FORWARDED,
    MAX_MESSAGE_BYTES,
    OVERHEAD_BYTES,
    InputRange,
    decode_completion,
    decode_request,
    partition_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streams.intake.records import InputBatch, InputRecord
    from streams.wire import TopicNames

SKIPPED: Final = "skipped"
UNREADABLE: Final = "unreadable"
FORWARDED_ON: Final = "forwarded"
ASTRAY: Final = "astray"  # forwarded to us, and still not ours: refused

Given = TypeVar("Given", Submit | Cancel, Completion)


class Forward(NamedTuple):
    """A record that stands on the wrong partition, to be written to the right one."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    timestamp_ms: int  # of the original: waiting times count from there
    headers: list[tuple[str, str | bytes | None]]


class Limits(Protocol):
    """What the topics take of what a step writes."""

    @property
    def largest_body(self) -> int | None:
        """The bytes that the body of a run may have; None: any that a request can hold."""

    def of(self, topic: str) -> int:
        """Return the bytes that a record of a topic may have, `OVERHEAD_BYTES` included."""


class OurLimits:
    """The topics take what `streams.wire` has them made for."""

    largest_body: Final = None

    def of(self, _topic: str) -> int:
        return MAX_MESSAGE_BYTES


class Unreadable(NamedTuple):
    """A record that cannot be used, and why."""

    source: Source
    record: InputRecord
    error: BadRecord


@dataclass(slots=True)
class Intake:
    """What one step's batches came to."""

    applied: dict[str, int]  # topic -> offset of the last record applied, set aside or forwarded; absent: none yet
    completions: list[Completion] = field(default_factory=list)
    requests: list[Submit | Cancel] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    forwards: list[Forward] = field(default_factory=list)
    unread: list[InputRange] = field(
        default_factory=list
    )  # of the unreadable those that the topics don't show to be so
    refused: list[Rejection] = field(default_factory=list)  # runs that no topic would take
    counts: dict[str, int] = field(default_factory=dict)

    def set_aside(self, given: Unreadable, first: int) -> None:
        """Keep a record that can't be used, and note what the topics don't tell: from `first` up to its offset."""
        self.unreadable.append(given)
        self.unread.append(InputRange(given.source.value, first, given.record.offset))
        self.count(UNREADABLE)

    def count(self, name: str, more: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + more


class Reader:
    """Reads batches for one shard."""

    def __init__(self, names: TopicNames, shard: int, shards: int, limits: Limits | None = None) -> None:
        self.names: Final = names
        self.limits: Final = limits or OurLimits()
        self._shard: Final = shard
        self._shards: Final = shards
        self.topics: Final = {Source.COMPLETIONS: names.completions, Source.REQUESTS: names.requests}

    def read(self, batches: Iterable[InputBatch], applied: Mapping[str, int]) -> Intake:
        """Return the inputs in `batches` that lie above what is `applied`. Never raises for what a record holds."""
        intake = Intake(dict(applied))
        for batch in batches:
            if batch.source is Source.REQUESTS:
                self._read(batch, _request, intake, intake.requests)
            else:
                self._read(batch, _completion, intake, intake.completions)
        return intake

    def _read(
        self, batch: InputBatch, decode: Callable[[InputRecord], Given], intake: Intake, inputs: list[Given]
    ) -> None:
        shard, shards, source = self._shard, self._shards, batch.source
        largest = self.limits.largest_body
        position = intake.applied.get(source.value, -1)
        for record in batch.records:
            if record.offset <= position:
                intake.count(SKIPPED)
                continue
            before, position = position, record.offset
            try:
                check(record)
            except BadRecord as error:
                # It may stand for all of a batch, up to its offset.
                first = position if record.headers[0][0] == HEADERS else before + 1
                intake.set_aside(Unreadable(source, record, _bare(error)), first)
                continue
            try:
                given = decode(record)
            except BadRecord as error:
                intake.unreadable.append(Unreadable(source, record, _bare(error)))
                intake.count(UNREADABLE)
                continue
            if partition_for(given.tenant, shards) != shard:
                self._forward(intake, source, record, given.tenant)
            elif largest is not None and isinstance(given, Submit) and len(given.body) > largest:
                _refuse(intake, given, largest)
            else:
                inputs.append(given)
        if batch.records:
            intake.applied[source.value] = position

    def _forward(self, intake: Intake, source: Source, record: InputRecord, tenant: str) -> None:
        """Send a record to its tenant's shard, once; refuse one that has been forwarded already.

        It could only come back, if the shards disagree about their number. Nor may it be served here: anybody can
        write the mark, and a tenant whose runs are queued in every shard would get a share of each.
        """
        if any(name == FORWARDED for name, _ in record.headers):
            intake.count(ASTRAY)
            error = BadRecord(f"marked as forwarded, and shard {self._shard} is not its tenant's", field="headers")
            intake.unreadable.append(Unreadable(source, record, error))
            return
        topic, key = self.topics[source], tenant.encode()
        assert record.value is not None, "it could be read"
        size, most = len(key) + len(record.value) + OVERHEAD_BYTES, self.limits.of(topic)
        if size > most:
            error = BadRecord(
                f"too large to be forwarded to its tenant's shard: {size} bytes, {most} at most", field="value"
            )
            intake.set_aside(Unreadable(source, record, error), record.offset)
            return
        intake.forwards.append(
            Forward(
                topic,
                partition_for(tenant, self._shards),
                key,
                record.value,
                max(record.timestamp, 0),
                [(FORWARDED, f"{topic}:{self._shard}:{record.offset}".encode())],
            )
        )
        intake.count(FORWARDED_ON)


def _bare(error: BadRecord) -> BadRecord:
    """Take off an error the frames it came through: they hold the batch, and the batch's intake holds the error.

    Such a circle is freed by the collector of garbage only, and that comes seldom here (`collector`): a flood of
    unreadable records would stay in memory, hundreds of megabytes of it.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def _refuse(intake: Intake, given: Submit, largest: int) -> None:
    """Refuse a run at the door: its row or its dispatch could not be written."""
    size = len(given.body)
    detail = f"payload and headers of {size} bytes are more than the topics take, {largest}"
    intake.refused.append(
        Rejection(
            given.tenant, given.run_id, reasons.TOO_LARGE, detail, largest, size, None, given.position, given.body
        )
    )
    intake.count(counts.REFUSED)
    intake.count(f"{counts.REFUSED}.{reasons.TOO_LARGE}")


def _request(record: InputRecord) -> Submit | Cancel:
    return decode_request(record.key, record.value, record.offset, record.timestamp)


def _completion(record: InputRecord) -> Completion:
    return decode_completion(record.key, record.value, record.offset)
