"""Builds of the scheduler that are wrong on purpose: what the simulation must find, or it would find nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from streams.app.in_memory import load
from streams.app.step import Stepper
from streams.core.shard import Shard
from streams.errors import StepAborted
from streams.intake import InputBatch, Intake, Reader
from streams.simulate.faulty.shard import Load, Records, Writer
from streams.simulate.faulty.world import MakeWriter
from streams.simulate.faulty.writer import LogWriter


class FencingOff(LogWriter):
    """Each owner writes under a transactional id of its own: nobody fences anybody."""

    @property
    def transactional_id(self) -> str:
        return f"shard-{self.shard}-{self.owner}"


class PositionsOutside(LogWriter):
    """The positions follow in a transaction of their own, as offsets that are committed some time later do."""

    def write(self, records: Records) -> None:
        *others, positions = self.effects(records)
        self.put(others)
        self.put([positions])


class DispatchesOutside(LogWriter):
    """The work is handed out first, and then it is remembered."""

    def write(self, records: Records) -> None:
        effects = [*self.effects(records)]
        for each in effects:
            if each.point == "dispatch":
                self.log.append(each.place, each.key, each.value)
        self.put([each for each in effects if each.point != "dispatch"])


class JournalOutside(LogWriter):
    """The audit is told once the step is done."""

    def write(self, records: Records) -> None:
        effects = [*self.effects(records)]
        self.put([each for each in effects if each.point != "journal"])
        self.put([each for each in effects if each.point == "journal"])


class Unchecked(LogWriter):
    """A transaction that fails is passed over: the shard goes on as if it had been written."""

    def write(self, records: Records) -> None:
        with suppress(StepAborted):
            super().write(records)


class AppliesAgain(Reader):
    """Where the inputs stand is nothing to it: what is delivered again is applied again."""

    def read(self, batches: Iterable[InputBatch], applied: Mapping[str, int]) -> Intake:
        intake = super().read(batches, {})
        return replace(intake, applied={**applied, **intake.applied})


def applies_again(rows: Mapping[bytes, bytes], shard: int, shards: int, writer: Writer) -> tuple[Shard, Stepper]:
    core, stepper = load(rows, shard, shards, writer)
    reader = AppliesAgain(stepper._reader.names, shard, shards)
    return core, Stepper(core, stepper.positions, writer, reader, shard=shard, state=stepper._state)


class FollowsOldMemory:
    """What was loaded in an earlier reign is good enough for a later one: the rows are not looked at again."""

    def __init__(self) -> None:
        self._loaded: dict[int, Shard] = {}

    def __call__(self, rows: Mapping[bytes, bytes], shard: int, shards: int, writer: Writer) -> tuple[Shard, Stepper]:
        core, stepper = load(rows, shard, shards, writer)
        old = self._loaded.setdefault(shard, core)
        return old, Stepper(old, stepper.positions, writer, stepper._reader, shard=shard, state=stepper._state)


def loses_a_place(rows: Mapping[bytes, bytes], shard: int, shards: int, writer: Writer) -> tuple[Shard, Stepper]:
    """A takeover forgets that an attempt is over: its place in the window is never free again."""
    core, stepper = load(rows, shard, shards, writer)
    core._state.window.runs += bool(rows)
    return core, stepper


def builds() -> dict[str, tuple[Load, MakeWriter]]:
    """Return them by name, new ones: one of them remembers."""
    return {
        "fencing off": (load, FencingOff),
        "positions outside": (load, PositionsOutside),
        "dispatches outside": (load, DispatchesOutside),
        "journal outside": (load, JournalOutside),
        "aborts passed over": (load, Unchecked),
        "old memory": (FollowsOldMemory(), LogWriter),
        "inputs applied again": (applies_again, LogWriter),
        "a place lost": (loses_a_place, LogWriter),
    }
