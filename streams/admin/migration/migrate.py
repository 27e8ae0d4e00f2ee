"""The migration itself: what is done in which order, and what is refused. See the package for why."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.admin.checkpointing import write_checkpoint
from streams.admin.kafka import admin_client, look
from streams.admin.migration.fencing import take_and_tell
from streams.admin.migration.filling import fill
from streams.admin.migration.proving import prove_inputs, prove_rows
from streams.admin.migration.sides import Side, StatePartition, key_bytes, read_side, shards_of
from streams.admin.migration.spread import remarks, runs_of
from streams.admin.migration.sweeping import Sweep
from streams.admin.migration.writing import Writer
from streams.admin.policy import publish_policy, read_policy
from streams.admin.topics import Layout, ensure
from streams.core.policy import Policy
from streams.core.records import PolicyRecord
from streams.core.resharding import reshard
from streams.core.state import BUILT_IN
from streams.errors import ConfigError, StateUnreadable
from streams.kafka import migration_id, scheduler_group
from streams.rows import FILLING, FillingRecord, MovedRecord
from streams.transactions import Out
from streams.wire import PolicyChange, partition_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streams.admin.migration.sides import ShardRows
    from streams.core.records import Record
    from streams.core.stock import Line
    from streams.kafka import KafkaSettings

    Progress = Callable[[str, int, int | None], None]  # which step, how many are done, of how many if that is known

# The steps, as `Progress` names them.
READ: Final = "read"
MARK: Final = "mark"
MOVE: Final = "move"
FILL: Final = "fill"
SWEEP: Final = "sweep"
PROVE: Final = "prove"
SAVE: Final = "save"
OPEN: Final = "open"


@dataclass(slots=True)
class Outcome:
    """What a migration has come to."""

    prefix: str
    shards: int
    to: str
    to_shards: int
    dry_run: bool = False
    opened: bool = False  # the new deployment can be served
    lines: list[Line] = field(default_factory=list)  # the proof; of the rows only by the try that opened it
    runs: list[int] = field(default_factory=list)  # that have not ended, of each new shard; as `lines`
    copied: int = 0  # inputs, by this try
    expired: int = 0  # inputs that were deleted by retention before anybody read them
    remarks: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Tell whether nothing was lost or doubled."""
        return all(line.equal for line in self.lines)


class Migration:
    """A deployment on its way to `shards` shards under another prefix."""

    def __init__(
        self,
        old: KafkaSettings,
        new: KafkaSettings,
        shards: int,
        *,
        group: str = "",
        new_group: str = "",
        progress: Progress = lambda _step, _done, _of: None,
    ) -> None:
        """`group` and `new_group` are those of the schedulers, if they have been told others than their prefixes say.

        Raises `ConfigError` for what can't be, or has gone elsewhere already; `Unavailable` if Kafka does not answer.
        """
        self._progress: Final = progress
        self._admin: Final = admin_client(old)
        self._partitions: Final = look(self._admin).partitions
        self.old: Final = Side(old, group or scheduler_group(old.prefix), shards_of(self._partitions, old.topics))
        self.new: Final = Side(new, new_group or scheduler_group(new.prefix), shards)
        if new.prefix == old.prefix:
            raise ConfigError("must be another prefix than the present one", field="to", value=new.prefix)
        if self.new.group == self.old.group:
            raise ConfigError(
                f"its schedulers would be of the same group as the present ones, {self.old.group!r}: choose another "
                "prefix, or name another group",
                field="to",
                value=new.prefix,
            )
        self._writer: Final = Writer(new, migration_id(self.new.group))
        self._rows: list[ShardRows] = []  # of the old side

    def look(self) -> Outcome:
        """Say what would come of it, as things stand; change nothing. Raises as `run` does."""
        rows = self._read_old()
        policy = self._policy(self.old)
        outcome = self._outcome(dry_run=True)
        records = [shard.records for shard in rows]
        wanted = self._reshard(records, policy)
        outcome.runs, outcome.remarks = runs_of(wanted), list(remarks(wanted, policy.policy))
        outcome.lines = prove_rows(records, wanted, policy)
        return outcome

    def run(self) -> Outcome:
        """Move everything, from wherever an earlier try has stopped; open the new deployment if it is proved equal.

        Raises:
            ConfigError: the old deployment has moved elsewhere, or the new topics belong to another.
            StateUnreadable: there are rows on either side that can't be read, or that contradict each other.
            OwnershipLost: another migration to the same topics has begun.
            Unavailable: Kafka does not answer.
        """
        outcome = self._outcome()
        self._rows = self._read_old()
        self._writer.fence()
        outcome.opened = all(shard.moved for shard in self._rows) and self._is_open()
        if not outcome.opened:
            self._make_topics()
            self._mark()
            self._move()
            self._state_policy()
            outcome.opened = self._fill(outcome)
        else:
            self.sweep(outcome)
        self.prove_inputs(outcome)
        return outcome

    def sweep(self, outcome: Outcome) -> None:
        """Copy what has come into the old inputs since the last sweep. After `run` only; raises as that does."""
        swept = Sweep(self.old, self.new, self._moved(), self._writer).once(
            lambda done: self._progress(SWEEP, done, None)
        )
        for shard, record in zip(self._rows, swept.moved, strict=True):
            shard.moved = record
        outcome.copied += sum(swept.copied.values())
        outcome.expired += sum(swept.expired.values())

    def prove_inputs(self, outcome: Outcome) -> None:
        """Add to the outcome that what was copied is what there was to copy. After `run` only; raises as that does."""
        self._progress(PROVE, 0, None)
        lines = prove_inputs(self.old, self._rows, self._moved(), self.new)
        proved = {line.what for line in lines}
        outcome.lines = [line for line in outcome.lines if line.what not in proved] + lines

    # --- the steps

    def _read_old(self) -> list[ShardRows]:
        self._progress(READ, 0, None)
        rows = read_side(self.old)
        for shard in rows:
            if shard.moved is not None:
                self._check_goal(shard.moved)
            if shard.filling is not None:
                raise ConfigError(
                    f"it is itself being made from the deployment under the prefix {shard.filling.prefix!r}: end that "
                    "migration first",
                    field="prefix",
                    value=self.old.kafka.prefix,
                )
        return rows

    def _check_goal(self, moved: MovedRecord) -> None:
        """Raise `ConfigError` if an old shard has moved elsewhere."""
        if (moved.prefix, moved.shards) != (self.new.kafka.prefix, self.new.shards):
            raise ConfigError(
                f"the deployment has moved, or begun to, to {moved.shards} shard(s) under the prefix "
                f"{moved.prefix!r}; go on with that: nothing else can be done with it",
                field="to",
                value=self.new.kafka.prefix,
            )

    def _is_open(self) -> bool:
        """Tell whether an earlier try has come to its end. All new shards are opened at once."""
        if self.new.names.state not in self._partitions:
            raise self._made_anew()
        for shard in range(self.new.shards):
            partition = StatePartition(self.new, shard)
            partition.read_on()
            if partition.about().filling is not None:
                return False
            if not partition.raw:
                raise self._made_anew()
        return True

    def _made_anew(self) -> ConfigError:
        return ConfigError(
            f"the deployment has moved there, and what it took along is gone: {self.new.names.state} was deleted, or "
            "made anew. Restore it",
            field="to",
            value=self.new.kafka.prefix,
        )

    def _make_topics(self) -> None:
        dispatch = self._partitions[self.old.names.dispatch]
        prefix = self.new.kafka.prefix
        ensure(self._admin, Layout(shards=self.new.shards, dispatch_partitions=dispatch, prefix=prefix))

    def _mark(self) -> None:
        """Keep schedulers from the new shards until they are filled."""
        for shard in range(self.new.shards):
            self._progress(MARK, shard, self.new.shards)
            partition = StatePartition(self.new, shard)
            if self._reason_to_wait(partition) is not None:
                take_and_tell(self.new, shard, partial(self._reason_to_wait, partition))
        self._progress(MARK, self.new.shards, self.new.shards)

    def _reason_to_wait(self, partition: StatePartition) -> FillingRecord | None:
        """Return what a new state partition has to say; None if it says so already."""
        own = FillingRecord(self.old.kafka.prefix, self.old.shards)
        partition.read_on()
        if partition.about().filling == own:
            return None
        if partition.raw:
            raise ConfigError(
                f"there is another deployment: {self.new.names.state} has rows; choose another prefix",
                field="to",
                value=self.new.kafka.prefix,
            )
        return own

    def _move(self) -> None:
        """Take the old shards from their schedulers; from here on nobody changes their rows.

        In order, so that of two migrations to different places the one that has the first shard has all.
        """
        told = [shard.moved is not None for shard in self._rows]
        self._rows = []  # read again below: they are not held twice
        for shard, done in enumerate(told):
            self._progress(MOVE, shard, self.old.shards)
            if not done:
                partition = StatePartition(self.old, shard)
                partition.read_on()  # before the fence, so that little is left to be read behind it
                take_and_tell(self.old, shard, partial(self._reason_to_end, partition))
        self._progress(MOVE, self.old.shards, self.old.shards)
        self._rows = self._read_old()

    def _reason_to_end(self, partition: StatePartition) -> MovedRecord | None:
        """Return what an old state partition has to say; None if it says so already."""
        partition.read_on()
        about = partition.about()
        if about.moved is not None:
            self._check_goal(about.moved)
            return None
        applied = dict(about.positions.applied) if about.positions is not None else {}
        return MovedRecord(self.new.kafka.prefix, self.new.shards, applied)

    def _moved(self) -> list[MovedRecord]:
        moved = [shard.moved for shard in self._rows if shard.moved is not None]
        assert len(moved) == self.old.shards, "all shards have moved before anything is copied"
        return moved

    def _state_policy(self) -> None:
        """State the policy in force in the new policy topic, unless one is stated there."""
        if read_policy(self.new.kafka) is not None:
            return
        found = read_policy(self.old.kafka)
        if found is not None:
            publish_policy(self.new.kafka, found.change)
            return
        # One that was taken out of the old policy topic stays in force until another is stated.
        stated = [each for shard in self._rows for each in shard.records if isinstance(each, PolicyRecord)]
        if stated:
            latest = max(stated, key=lambda each: each.version)
            publish_policy(self.new.kafka, PolicyChange(latest.policy, "fairstream migrate", clock.now_ms()))

    def _fill(self, outcome: Outcome) -> bool:
        """Fill the new shards, sweep, prove, and open them if all is there; tell whether they are open."""
        policy = self._policy(self.new)
        records = [shard.records for shard in self._rows]
        wanted = self._reshard(records, policy)
        fill(self.new, wanted, self._writer, partial(self._progress, FILL))
        del wanted  # not held beside what is read below
        self.sweep(outcome)
        self._progress(PROVE, 0, None)
        arrived = [shard.records for shard in read_side(self.new)]
        outcome.lines = prove_rows(records, arrived, policy)
        outcome.runs, outcome.remarks = runs_of(arrived), list(remarks(arrived, policy.policy))
        if not outcome.equal:
            return False
        self._save()
        self._progress(OPEN, 0, None)
        shards, topic = range(self.new.shards), self.new.names.state
        self._writer.write([Out(topic, shard, key_bytes(shard, (FILLING,)), None) for shard in shards])
        return True

    def _save(self) -> None:
        """Write the checkpoints from which a replay begins: no input of the new topics explains what is there now."""
        for shard in range(self.new.shards):
            self._progress(SAVE, shard, self.new.shards)
            write_checkpoint(self.new.kafka, shard, filled=True)

    def _reshard(self, records: Sequence[Sequence[Record]], policy: PolicyRecord) -> list[list[Record]]:
        try:
            return reshard(records, self.new.shards, policy, partition_for)
        except ValueError as error:
            raise StateUnreadable(f"the rows of {self.old.names.state} contradict each other: {error}") from error

    def _policy(self, side: Side) -> PolicyRecord:
        found = read_policy(side.kafka)
        return PolicyRecord(BUILT_IN, Policy()) if found is None else PolicyRecord(found.version, found.change.policy)

    def _outcome(self, *, dry_run: bool = False) -> Outcome:
        old, new = self.old, self.new
        return Outcome(old.kafka.prefix, old.shards, new.kafka.prefix, new.shards, dry_run=dry_run)
