"""The door of the core: a shard advances in steps, and in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core import admission, counts, outcomes
from streams.core.dispatching import fill_window
from streams.core.expiry import next_due, run_timers
from streams.core.inputs import Cancel, Completion, SetPolicy, Submit, Undeliverable
from streams.core.loading import records_of, restore
from streams.core.policy import Policy
from streams.core.policy_change import set_policy
from streams.core.records import PolicyRecord, ShardRecord
from streams.core.run_view import AheadView, CostView, RunView, view_ahead, view_cost, view_run
from streams.core.snapshot import ShardSnapshot, take_snapshot
from streams.core.state import BUILT_IN, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streams.core.effects import Effects
    from streams.core.inputs import Input
    from streams.core.records import Record


class Shard:
    """One scheduler partition: queues, deficits, window, leases. Plain and mutable, not thread-safe.

    The caller writes a step's effects in one transaction. If that fails, the shard's memory is ahead of its
    rows: throw it away and `load` again.
    """

    def __init__(self, shard: int, shards: int) -> None:
        """Begin empty, as shard number `shard` of `shards`, under the built-in policy."""
        self._state = State(ShardRecord(shard=shard, shards=shards), PolicyRecord(version=BUILT_IN, policy=Policy()))

    @classmethod
    def load(cls, shard: int, shards: int, records: Iterable[Record]) -> Shard:
        """Rebuild a shard from its rows, in any order. `load(dump())` goes on exactly as the original would.

        Raises:
            ValueError: the rows belong to another shard or another number of shards, or contradict each other.
        """
        self = cls(shard, shards)
        self._state = restore(shard, shards, records)
        return self

    def dump(self) -> Iterator[Record]:
        """Yield every record of the shard, in a fixed order. They are live: encode them before the next step."""
        return records_of(self._state)

    def step(self, inputs: Iterable[Input], now_ms: int) -> Effects:
        """Advance: take the inputs in the order given, then what is due by time, then fill the window.

        `now_ms` is the wall clock; a step never runs at an earlier time than the last one. The same inputs and
        times give the same effects on any machine.
        """
        state = self._state
        out = state.begin(now_ms)
        for given in inputs:
            if isinstance(given, Submit):
                admission.admit(state, given)
            elif isinstance(given, Completion):
                outcomes.report(state, given)
            elif isinstance(given, Cancel):
                outcomes.cancel(state, given)
            elif isinstance(given, SetPolicy):
                set_policy(state, given)
            elif isinstance(given, Undeliverable):
                outcomes.take_out(state, given)
            else:
                self._take_over(given.epoch)
        run_timers(state)
        if state.turns is not None:
            state.turns.welcome(out.changed)
        fill_window(state)
        if out.dispatches or out.settlements:
            state.record.moved_ms = out.now_ms
        if out.dispatches:
            out.counts[counts.DISPATCHED] = len(out.dispatches)
        return out

    def next_timer_ms(self) -> int | None:
        """Return the wall-clock time, ms, at which a step is due even without input; None: never."""
        return next_due(self._state)

    def snapshot(self) -> ShardSnapshot:
        """Return what a person may want to see, as plain frozen records. O(flows)."""
        return take_snapshot(self._state)

    def view_run(self, tenant: str, run_id: str) -> RunView | None:
        """Return what a person may want to see of a run that has not ended; None: there is none. O(classes)."""
        return view_run(self._state, tenant, run_id)

    def view_ahead(self, tenant: str, run_id: str) -> AheadView | None:
        """Return what stands before a run; None: it does not wait. O(flows + queue of its flow)."""
        return view_ahead(self._state, tenant, run_id)

    def view_cost(self, tenant: str, workflow: str, class_: str) -> CostView:
        """Return what the estimate of a run of a class of the policy would rest on now."""
        return view_cost(self._state, tenant, workflow, class_)

    @property
    def epoch(self) -> int:
        """How many owners the shard has had."""
        return self._state.record.epoch

    @property
    def now_ms(self) -> int:
        """The time of the last step."""
        return self._state.record.now_ms

    @property
    def policy_version(self) -> int:
        """The offset of the policy in force; -1: the built-in one."""
        return self._state.policy.version

    def _take_over(self, epoch: int) -> None:
        """Begin a new owner's reign: the time without an owner expires no lease."""
        state = self._state
        state.record.epoch = epoch
        state.record.outage_ms += state.elapsed_ms
        state.record.moved_ms = state.record.now_ms  # nothing could move meanwhile
        state.elapsed_ms = 0
