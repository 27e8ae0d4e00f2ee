"""One shard, replayed: its journal in order, the inputs that it names, and the core that decided then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.audit.replay.beginning import begin
from streams.audit.replay.divergence import Divergence, Stopped, differences
from streams.audit.replay.inputs import Inputs, Wrong
from streams.audit.replay.journal import Journal
from streams.core.inputs import Takeover
from streams.rows import encode, encode_key

if TYPE_CHECKING:
    from streams.audit.checkpoints import Checkpoint
    from streams.audit.recording import Recording
    from streams.core.effects import Effects
    from streams.core.inputs import Input
    from streams.core.shard import Shard
    from streams.intake import Intake
    from streams.wire import JournalEntry


class ReplayedStep(NamedTuple):
    """A step as it was recorded, and as it came out again."""

    entry: JournalEntry
    inputs: Sequence[Input]  # in the order applied
    effects: Effects
    core: Shard  # after the step; it goes on with the next one
    problems: Sequence[Divergence]  # empty: the same decisions, and the same state


class ShardReplay:
    """Iterate over it once, for the steps of one shard in order, up to the first that diverges."""

    def __init__(
        self, recording: Recording, shard: int, start: Checkpoint | None = None, *, until_ms: int | None = None
    ) -> None:
        """Begin with what `start` holds, None: with nothing. Steps that are later than `until_ms` are left out.

        Raises `CheckpointWrong` for rows that contradict each other. Whether they are those of its step, `prove` says.
        """
        begun = begin(recording, shard, start)
        self.divergence: Divergence | None = None  # where it ended, if it did not come to the end
        self._shard: Final = shard
        self._until_ms: Final = until_ms
        self._core: Final = begun.core
        self._hash: Final = begun.hash
        self._journal: Final = Journal(recording, shard, begun)
        self._inputs: Final = Inputs(recording, shard, begun.applied)

    @property
    def offset(self) -> int:
        """Of the journal's record that was read last; -1: none yet."""
        return self._journal.offset

    @property
    def digest(self) -> str:
        """Of that record, or of the one that the beginning knows of; "": there was none, or none with a chain."""
        return self._journal.digest

    def __iter__(self) -> Iterator[ReplayedStep]:
        """Replay step after step; then `divergence` says whether all of them came out as recorded.

        Raises:
            NotReplayable: what was recorded does not reach back far enough, or another core has decided it.
            FairstreamError: the recording cannot be read.
        """
        try:
            for entry in self._journal:
                if self._until_ms is not None and entry.now_ms > self._until_ms:
                    return
                replayed = self._replay(entry)
                yield replayed
                if replayed.problems:
                    self.divergence = replayed.problems[0]
                    return
        except Stopped as stopped:
            self.divergence = stopped.divergence

    def _replay(self, entry: JournalEntry) -> ReplayedStep:
        try:
            intake = self._inputs.of(entry)
        except Wrong as wrong:
            where = Divergence(
                self._shard, entry.step, self.offset, wrong.field, wrong.recorded, wrong.found, wrong.note
            )
            raise Stopped(where) from wrong
        given: list[Input] = [
            *([Takeover(entry.epoch)] if entry.takeover else ()),
            *(each.given for each in entry.policies),
            *entry.undeliverable,
            *intake.completions,
            *intake.requests,
        ]
        effects = self._core.step(given, entry.now_ms)
        effects.rejections += intake.refused
        return ReplayedStep(entry, given, effects, self._core, self._problems(entry, effects, intake))

    def _problems(self, entry: JournalEntry, effects: Effects, intake: Intake) -> list[Divergence]:
        """Return what did not come out as recorded: first what was decided, then what it led to."""
        found = [
            *differences(entry, effects, intake.counts),
            *(
                (field, recorded, replayed)
                for field, recorded, replayed in (
                    ("epoch", entry.epoch, self._core.epoch),
                    ("policy_version", entry.policy_version, self._core.policy_version),
                    ("state", entry.state, self._state_after(effects)),
                )
                if recorded != replayed
            ),
        ]
        return [Divergence(self._shard, entry.step, self.offset, *difference) for difference in found]

    def _state_after(self, effects: Effects) -> str:
        shard = self._shard
        self._hash.apply(
            (encode_key(shard, key), None if record is None else encode(record))
            for key, record in effects.changed.items()
        )
        return self._hash.value
