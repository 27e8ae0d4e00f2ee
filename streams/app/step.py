"""One step of one shard: what has arrived -> the core -> one transaction. For the shard's own thread."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from streams.app.transaction import StepRecords
from streams.core import VERSION
from streams.core.inputs import Takeover
from streams.intake import Source
from streams.rows import PositionsRecord, encode, encode_key, row_key
from streams.wire import (
    OVERHEAD_BYTES,
    InputRange,
    Position,
    Proof,
    encode_dispatch,
    encode_journal,
    encode_rejection,
    encode_revoke,
    encode_unreadable,
    journal_digest,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.app.door import Core
    from streams.app.transaction import Writer
    from streams.core.effects import Effects
    from streams.core.inputs import Input, Undeliverable
    from streams.intake import InputBatch, Intake, Reader
    from streams.rows import StateHash
    from streams.wire import AppliedPolicy

# Of a key that is not the tenant's: it is kept for people, and must fit.
_MAX_KEY_BYTES: Final = 1_024


class Stepper:
    """A shard that is loaded and owned. After any exception its memory may be ahead of its rows: drop it."""

    def __init__(
        self,
        core: Core,
        positions: PositionsRecord,
        writer: Writer,
        reader: Reader,
        *,
        shard: int,
        state: StateHash,
        undeliverable: Sequence[Undeliverable] = (),
    ) -> None:
        """`positions` carries the epoch of this reign, which the first step announces to the core.

        `state` is the hash of the rows that the core was made from. The first step takes out what is `undeliverable`.
        """
        self.core: Final = core
        self.positions = positions
        self._writer: Final = writer
        self._reader: Final = reader
        self._shard: Final = shard
        self._state: Final = state
        self._undeliverable = undeliverable
        self.arrived = False  # whether a step of this reign has been committed
        self._journal_key: Final = str(shard).encode()

    def step(self, batches: Sequence[InputBatch], policies: Sequence[AppliedPolicy], now_ms: int) -> None:
        """Advance and commit. Raises what `Writer.write` raises; then nothing of the step has happened."""
        intake = self._reader.read(batches, self.positions.applied)
        takeover = [] if self.arrived else [Takeover(self.positions.epoch)]
        given: list[Input] = [*takeover, *(each.given for each in policies), *self._undeliverable]
        given += intake.completions
        given += intake.requests
        effects = self.core.step(given, now_ms)
        effects.rejections += intake.refused
        for name, number in intake.counts.items():
            effects.counts[name] += number
        records, positions = self._encode(effects, intake, policies)
        self._writer.write(records)
        self.positions = positions
        self._undeliverable = ()
        self.arrived = True

    def confirm(self) -> None:
        """Commit the positions as they are: who can do that has been the owner ever since it fenced the shard."""
        self._writer.write(StepRecords(self._row(self.positions)))

    def _row(self, positions: PositionsRecord) -> tuple[bytes, bytes]:
        return encode_key(self._shard, row_key(positions)), encode(positions)

    def _encode(
        self, effects: Effects, intake: Intake, policies: Sequence[AppliedPolicy]
    ) -> tuple[StepRecords, PositionsRecord]:
        """Return what is written, and the positions in it."""
        shard, epoch, step = self._shard, self.positions.epoch, effects.step
        dispatches = [
            (dispatch.seq, dispatch.run_id.encode(), encode_dispatch(dispatch, shard, step, epoch))
            for dispatch in effects.dispatches
        ]
        if effects.revokes:
            dispatches += [
                (revoke.seq, revoke.run_id.encode(), encode_revoke(revoke, shard, step, epoch))
                for revoke in effects.revokes
            ]
            dispatches.sort()
        rows = [
            (encode_key(shard, key), None if record is None else encode(record))
            for key, record in effects.changed.items()
        ]
        self._state.apply(rows)
        journal, digest = self._journal(effects, intake, policies)
        positions = replace(
            self.positions, applied=intake.applied, journal=digest, core=VERSION, state=self._state.value
        )
        records = StepRecords(
            positions=self._row(positions),
            rows=rows,
            dispatches=[(key, value) for _, key, value in dispatches],
            rejections=self._rejections(effects, intake),
            forwards=intake.forwards,
            journal=(self._journal_key, journal),
        )
        return records, positions

    def _journal(self, effects: Effects, intake: Intake, policies: Sequence[AppliedPolicy]) -> tuple[bytes, str]:
        """Return the record of what went in and what was decided, tied to the one before it, and its digest."""
        value = encode_journal(
            effects,
            shard=self._shard,
            epoch=self.positions.epoch,
            policy_version=self.core.policy_version,
            inputs=self._ranges(intake, policies),
            takeover=not self.arrived,
            undeliverable=self._undeliverable,
            largest_body=self._reader.limits.largest_body,
            policies=policies,
            unread=intake.unread,
            proof=Proof(VERSION, self._state.value, self.positions.journal),
        )
        return value, journal_digest(value)

    def _rejections(self, effects: Effects, intake: Intake) -> list[tuple[bytes | None, bytes]]:
        """Encode what is refused; without the original bytes if it would not fit: its position tells where they are."""
        shard, step, at_ms = self._shard, effects.step, effects.now_ms
        topics = self._reader.topics
        most = self._reader.limits.of(self._reader.names.rejected) - OVERHEAD_BYTES
        rejections: list[tuple[bytes | None, bytes]] = []
        for rejection in effects.rejections:
            position = Position(topics[Source.REQUESTS], shard, rejection.position)
            key = rejection.tenant.encode()
            value = encode_rejection(rejection, position, shard=shard, step=step, at_ms=at_ms)
            if len(key) + len(value) > most:
                stub = replace(rejection, body=b"", left_out=rejection.left_out + len(rejection.body))
                value = encode_rejection(stub, position, shard=shard, step=step, at_ms=at_ms)
            rejections.append((key, value))
        for source, record, error in intake.unreadable:
            position = Position(topics[source], shard, record.offset)
            unreadable = partial(
                encode_unreadable, error, record.key, record.value, position, shard=shard, step=step, at_ms=at_ms
            )
            value = unreadable()
            if len(value) + _MAX_KEY_BYTES > most:
                value = unreadable(whole=False)
            rejections.append((record.key and record.key[:_MAX_KEY_BYTES], value))
        return rejections

    def _ranges(self, intake: Intake, policies: Sequence[AppliedPolicy]) -> list[InputRange]:
        """Say what was applied, in the order of the step."""
        ranges = [InputRange("policy", change.offset, change.offset) for change in policies]
        for source in Source:
            before, after = (applied.get(source.value, -1) for applied in (self.positions.applied, intake.applied))
            if after > before:
                ranges.append(InputRange(source.value, before + 1, after))
        return ranges
