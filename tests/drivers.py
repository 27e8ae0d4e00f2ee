"""Feeds one shard the way the runtime does, and doubts it at every step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streams.core.effects import Dispatch, Effects
from streams.core.inputs import Input, SetPolicy, Submit, Takeover
from streams.core.invariants import check
from streams.core.policy import Policy
from streams.core.records import FlowRecord, Key, Record
from streams.core.shard import Shard
from streams.core.snapshot import FlowView
from tests.assertions import rows_of, write
from tests.builders import make_report, make_submit

START_MS = 1_000_000


class Driver:
    """One shard, its rows as the table would hold them, and every dispatch so far.

    After each step the invariants are checked and `dump()` is compared with rows kept from `changed` alone: what a
    step names as changed is then proved to be all that a takeover needs. That costs O(everything): long stories with
    long queues pass `doubted=False`, and have no rows.
    """

    def __init__(self, policy: Policy | None = None, *, shard: int = 0, shards: int = 1, doubted: bool = True) -> None:
        self.shard = Shard(shard, shards)
        self.now_ms = START_MS
        self.rows: dict[Key, Record] = {}
        self.dispatches: list[Dispatch] = []
        self._position = 0
        self._doubted = doubted
        if policy is not None:
            self.set_policy(policy)

    def position(self) -> int:
        """Return the next input position."""
        self._position += 1
        return self._position

    def step(self, *inputs: Input, after_ms: int = 0) -> Effects:
        """Let `after_ms` pass and take one step."""
        self.now_ms += after_ms
        effects = self.shard.step(inputs, self.now_ms)
        self.dispatches += effects.dispatches
        if self._doubted:
            write(self.rows, effects)
            assert rows_of(self.shard) == self.rows
            check(self.shard)
        return effects

    def set_policy(self, policy: Policy) -> Effects:
        return self.step(SetPolicy(self.position(), policy))

    def submit(self, tenant: str, *run_ids: str, after_ms: int = 0, **fields: Any) -> Effects:
        """Submit runs of one tenant in one step; `fields` are those of `make_submit`."""
        return self.step(*self.requests(tenant, run_ids, **fields), after_ms=after_ms)

    def requests(self, tenant: str, run_ids: Iterable[str], **fields: Any) -> list[Submit]:
        return [make_submit(tenant, run_id, position=self.position(), **fields) for run_id in run_ids]

    def succeed(self, *dispatches: Dispatch, tokens: int | None = None, after_ms: int = 0) -> Effects:
        """Report success, by default at the estimate."""
        reports = (make_report(each, tokens=each.estimate if tokens is None else tokens) for each in dispatches)
        return self.step(*reports, after_ms=after_ms)

    def take_over(self, *, after_ms: int = 0) -> Effects:
        """Lose the owner, and load the shard from its rows `after_ms` later."""
        record = self.shard.snapshot().shard
        self.shard = Shard.load(record.shard, record.shards, self.rows.values())
        rows = rows_of(self.shard)
        assert rows == self.rows
        self.rows = rows  # the loaded shard has adopted the old records: keep copies
        return self.step(Takeover(self.shard.epoch + 1), after_ms=after_ms)

    def served(self) -> list[str]:
        """Return the run ids dispatched so far, in order."""
        return [dispatch.run_id for dispatch in self.dispatches]

    def serve_all(self) -> list[str]:
        """Finish what is in flight, oldest first, until nothing is left; return all run ids in order of dispatch."""
        done = 0
        while done < len(self.dispatches):
            self.succeed(self.dispatches[done])
            done += 1
        return self.served()

    def flow(self, tenant: str, class_: str = "default") -> FlowView:
        for view in self.shard.snapshot().flows:
            if (view.tenant, view.class_) == (tenant, class_):
                return view
        raise KeyError(tenant)

    def flow_row(self, tenant: str, class_: str = "default") -> FlowRecord:
        row = self.rows["flow", class_, tenant]
        assert isinstance(row, FlowRecord)
        return row
