"""The whole door under any history: every step is proved by arithmetic, and every shard by its rows."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from streams.core import counts, dispatching, expiry, state
from streams.core.dispatching import MAX_DISPATCHED_BYTES, MAX_DISPATCHES
from streams.core.effects import Effects
from streams.core.inputs import (
    FAILED,
    HEARTBEAT,
    RETURNED,
    STARTED,
    SUCCEEDED,
    Completion,
    Input,
    SetPolicy,
    Undeliverable,
)
from streams.core.policy import Policy
from streams.core.records import RUN, SHARD, FlightRecord, FlowRecord, RingRecord, ShardRecord
from streams.core.shard import Shard
from tests.assertions import assert_drained, assert_works, plain, rows_of, said
from tests.builders import make_cancel, make_report, make_submit
from tests.drivers import Driver
from tests.property.books import Books
from tests.strategies import CLASSES, TENANTS, costs, door_policies, examples

STATUSES = (STARTED, HEARTBEAT, SUCCEEDED, SUCCEEDED, FAILED, RETURNED)
RUNS = tuple(f"r{number}" for number in range(6))

tenants = st.sampled_from(TENANTS[:3])
run_ids = st.sampled_from(RUNS)
picks = st.integers(0, 1_000)
passing = st.sampled_from((0, 0, 1, 10, 60, 100, 300, -50))  # ms; the wall clock may be set back
flushes = st.booleans()  # False: wait for more, so that several inputs share a step


class Door(RuleBasedStateMachine):
    """A driver checks invariants and rows after every step; books check the effects; a twin checks the future."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.books = Books()
        self.pending: list[Input] = []
        self.twin: Shard | None = None
        self.patches: tuple[Any, ...] = ()  # make steps small

    @initialize(
        policy=door_policies(),
        largest=st.sampled_from((2, MAX_DISPATCHES)),
        heaviest=st.sampled_from((1, MAX_DISPATCHED_BYTES)),
    )
    def begin(self, policy: Policy, largest: int, heaviest: int = MAX_DISPATCHED_BYTES) -> None:
        self.patches = (
            patch.object(dispatching, "MAX_DISPATCHES", largest),
            patch.object(dispatching, "MAX_DISPATCHED_BYTES", heaviest),
            patch.object(state, "MAX_GIVEN_UP_BYTES", heaviest),
            patch.object(expiry, "MAX_ENDED", largest),
        )
        for each in self.patches:
            each.start()
        self._tell(SetPolicy(self.driver.position(), policy), flush=True)

    @rule(
        tenant=tenants,
        run_id=run_ids,
        class_=st.sampled_from((None, None, None, None, *CLASSES, "nowhere")),
        cost=st.none() | costs,
        max_tokens=st.none() | st.integers(0, 20),
        waits=st.none() | st.integers(-20, 150),
        lives=st.none() | st.integers(-5, 300),
        max_attempts=st.none() | st.integers(1, 3),
        lease_ms=st.none() | st.integers(1, 300),
        flush=flushes,
    )
    def submit(
        self,
        *,
        tenant: str,
        run_id: str,
        class_: str | None,
        cost: int | None,
        max_tokens: int | None,
        waits: int | None,
        lives: int | None,
        max_attempts: int | None,
        lease_ms: int | None,
        flush: bool,
    ) -> None:
        request = make_submit(
            tenant,
            run_id,
            position=self.driver.position(),
            cost=cost,
            class_=class_,
            workflow=run_id[-1],
            max_tokens=max_tokens,
            not_before_ms=None if waits is None else self.driver.now_ms + waits,
            deadline_ms=None if lives is None else self.driver.now_ms + lives,
            max_attempts=max_attempts,
            lease_ms=lease_ms,
            body=run_id.encode(),
        )
        self._tell(request, flush=flush)

    @rule(tenant=tenants, many=st.integers(2, 6), cost=costs)
    def submit_many(self, tenant: str, many: int, cost: int) -> None:
        """A burst, so that queues form even in short histories."""
        for run_id in RUNS[:many]:
            self._tell(make_submit(tenant, run_id, position=self.driver.position(), cost=cost), flush=False)
        self._step(0)

    @precondition(lambda self: self.books.open_attempts)
    @rule(status=st.sampled_from((SUCCEEDED, FAILED)), tokens=costs, after_ms=passing)
    def report_all(self, status: str, tokens: int, after_ms: int) -> None:
        """Room for those who wait."""
        for attempt in self.books.open_attempts:
            self._tell(make_report(attempt, status, tokens, retryable=True), flush=False)
        self._step(after_ms)

    @rule(tenant=tenants, run_id=run_ids, flush=flushes)
    def cancel(self, tenant: str, run_id: str, flush: bool) -> None:
        self._tell(make_cancel(tenant, run_id, position=self.driver.position()), flush=flush)

    @rule(tenant=tenants, run_id=run_ids, limit=st.none() | st.just(10), flush=flushes)
    def cannot_be_written(self, tenant: str, run_id: str, limit: int | None, flush: bool) -> None:
        """It is told of what happened in an aborted step, so it comes before anything new."""
        self._step(0)
        self._tell(Undeliverable(tenant, run_id, 20, limit), flush=flush)

    @precondition(lambda self: self.books.open_attempts)
    @rule(
        pick=picks,
        status=st.sampled_from(STATUSES),
        tokens=st.none() | costs,
        retryable=st.booleans(),
        twice=st.booleans(),
        flush=flushes,
    )
    def report(self, *, pick: int, status: str, tokens: int | None, retryable: bool, twice: bool, flush: bool) -> None:
        attempts = self.books.open_attempts
        report = make_report(attempts[pick % len(attempts)], status, tokens, retryable=retryable)
        if twice:
            self._tell(report, flush=False)
        self._tell(report, flush=flush)

    @precondition(lambda self: self.driver.dispatches)
    @rule(pick=picks, status=st.sampled_from(STATUSES), tokens=st.none() | costs, flush=flushes)
    def report_late(self, pick: int, status: str, tokens: int | None, flush: bool) -> None:
        """Report on any attempt there ever was: late, doubled, of a run long forgotten."""
        dispatches = self.driver.dispatches
        self._tell(make_report(dispatches[pick % len(dispatches)], status, tokens, retryable=True), flush=flush)

    @rule(tenant=tenants, run_id=run_ids, attempt=st.integers(1, 3), flush=flushes)
    def report_unknown(self, tenant: str, run_id: str, attempt: int, flush: bool) -> None:
        self._tell(Completion(0, tenant, run_id, attempt + 100, SUCCEEDED, 5), flush=flush)

    @rule(policy=door_policies(), flush=flushes)
    def change_policy(self, policy: Policy, flush: bool) -> None:
        self._tell(SetPolicy(self.driver.position(), policy), flush=flush)

    @rule(policy=door_policies())
    def redeliver_policy(self, policy: Policy) -> None:
        """A policy at or below the version in force has been applied before."""
        self._tell(SetPolicy(self.driver.shard.policy_version, policy), flush=False)

    @rule(after_ms=passing)
    def let_pass(self, after_ms: int) -> None:
        self._step(after_ms)

    @rule()
    def until_timer(self) -> None:
        due = self.driver.shard.next_timer_ms()
        if due is not None:
            self._step(due - self.driver.now_ms)

    @rule(after_ms=passing)
    def take_over(self, after_ms: int) -> None:
        """Lose the owner; the time without one is no silence of the workers."""
        self._come_to_rest()
        lease_clock, flights = self._lease_clock(), len(self._flights())
        effects = self.driver.take_over(after_ms=after_ms)
        self.books.enter([], effects)
        assert self._lease_clock() == lease_clock
        assert not effects.counts[counts.LOST]
        assert len(self._flights()) == flights + len(effects.dispatches)
        self.twin = None

    @rule()
    def fork(self) -> None:
        """From here on a shard loaded from the rows must say the same as the one that lived through it all."""
        self._step(0)
        view = self.driver.shard.snapshot().shard
        self.twin = Shard.load(view.shard, view.shards, map(plain, reversed(self.driver.rows.values())))
        assert rows_of(self.twin) == self.driver.rows
        assert self.twin.snapshot() == self.driver.shard.snapshot()

    @rule()
    def nothing_new(self) -> None:
        """A step without input, at the same time, has nothing left to do."""
        self._come_to_rest()
        rows = dict(self.driver.rows)
        effects = self._step(0)
        assert set(effects.changed) == {(SHARD,)}
        assert not effects.counts
        rows.pop((SHARD,))
        assert rows == {key: row for key, row in self.driver.rows.items() if key != (SHARD,)}

    @rule(tenant=tenants, run_id=run_ids, cost=costs)
    def refused(self, tenant: str, run_id: str, cost: int) -> None:
        """What is refused changes nothing."""
        self._come_to_rest()
        request = make_submit(tenant, run_id, position=self.driver.position(), cost=cost, class_="nowhere")
        known = make_submit(tenant, run_id, position=self.driver.position(), cost=cost)
        in_flight = any(row.run_id == run_id and row.tenant == tenant for row in self._flights())
        inputs = [request, known] if in_flight else [request]
        effects = self._step(0, *inputs)
        assert set(effects.changed) == {(SHARD,)}
        assert effects.counts[counts.REFUSED] == len(effects.rejections) == len(inputs)

    def teardown(self) -> None:
        """Everything comes to an end; then all accounts are closed and nothing is held."""
        try:
            self.drain()
        finally:
            self.end()

    def end(self) -> None:
        for each in self.patches:
            each.stop()

    def drain(self) -> None:
        self._come_to_rest()
        while self.books.open_attempts or self.books.open_runs:
            for attempt in self.books.open_attempts:
                self._tell(make_report(attempt, SUCCEEDED, 7), flush=False)
            for _, tenant, run_id in [key for key in self.driver.rows if key[0] == RUN]:
                self._tell(make_cancel(tenant, run_id), flush=False)
            self._step(0)
        assert_drained(self.driver.shard)

    def _come_to_rest(self) -> None:
        """Step at once for as long as the shard says that it could do more."""
        self._step(0)
        while self.driver.shard.next_timer_ms() == self.driver.shard.now_ms:
            self._step(0)

    def _tell(self, given: Input, *, flush: bool) -> None:
        self.pending.append(given)
        if flush:
            self._step(0)

    def _step(self, after_ms: int, *more: Input) -> Effects:
        inputs = [*self.pending, *more]
        self.pending = []
        effects = self.driver.step(*inputs, after_ms=after_ms)
        self.books.enter(inputs, effects)
        assert self.books.open_runs == sum(key[0] == RUN for key in self.driver.rows)
        assert len(self.books.open_attempts) == len(self._flights())
        flows = [row for row in self.driver.rows.values() if isinstance(row, FlowRecord)]
        rings = [row for row in self.driver.rows.values() if isinstance(row, RingRecord)]
        known, forgotten = sum(flow.actual for flow in flows), sum(ring.past_charged for ring in rings)
        assert self.books.spent == known + forgotten
        assert_works(self.driver.shard, effects)
        if self.twin is not None:
            assert said(self.twin.step(inputs, self.driver.now_ms)) == said(effects)
            assert self.twin.next_timer_ms() == self.driver.shard.next_timer_ms()
        return effects

    def _flights(self) -> list[FlightRecord]:
        return [row for row in self.driver.rows.values() if isinstance(row, FlightRecord)]

    def _lease_clock(self) -> int:
        row = self.driver.rows[SHARD,]
        assert isinstance(row, ShardRecord)
        return row.now_ms - row.outage_ms


Door.TestCase.settings = settings(examples(2), stateful_step_count=60)
TestDoor = Door.TestCase
