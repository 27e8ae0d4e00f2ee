"""Schedulers behind one protocol: ours, and what it is compared with."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streams.core.inputs import SUCCEEDED, Completion, Input, SetPolicy, Submit
from streams.core.policy import Leases, Policy, Window
from streams.core.shard import Shard
from streams.simulate.pool import Start
from streams.simulate.workload import Arrival

# The core's time is since the epoch and starts after 0; a workload's starts at 0.
_EPOCH_MS: Final = 1_000_000
# Nothing fails in the pool, and nothing reports before it ends: no lease may run out.
_NO_LEASE: Final = Leases(lease_ms=1 << 40, max_lease_ms=1 << 40)


class Fifo:
    """First come, first served: what a plain Kafka topic does."""

    def __init__(self) -> None:
        self._queue: deque[Arrival] = deque()

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del now_ms, ended
        self._queue.extend(arrived)
        return [_exact(self._queue.popleft()) for _ in range(min(free, len(self._queue)))]


class RoundRobin:
    """One run of each tenant in turn, whatever it costs and whatever its weight: fair in runs, not in tokens."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Arrival]] = {}
        self._turns: deque[str] = deque()  # tenants with something queued

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del now_ms, ended
        for arrival in arrived:
            queue = self._queues.setdefault(arrival.tenant, deque())
            if not queue:
                self._turns.append(arrival.tenant)
            queue.append(arrival)
        starts: list[Start] = []
        while self._turns and len(starts) < free:
            tenant = self._turns.popleft()
            queue = self._queues[tenant]
            starts.append(_exact(queue.popleft()))
            if queue:
                self._turns.append(tenant)
        return starts


class NoRestraint:
    """Whoever has most queued goes first: nothing restrains the greedy.

    The control of the fairness tests: a check that passes it checks nothing.
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[Arrival]] = {}

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del now_ms, ended
        for arrival in arrived:
            self._queues.setdefault(arrival.tenant, deque()).append(arrival)
        starts: list[Start] = []
        while len(starts) < free:
            longest = max(self._queues.items(), key=lambda item: (len(item[1]), item[0]), default=None)
            if longest is None or not longest[1]:
                break
            starts.append(_exact(longest[1].popleft()))
        return starts


class DeficitRoundRobin:
    """Ours: the core itself, one shard, driven step by step as the real scheduler drives it."""

    def __init__(self, policy: Policy, *, slots: int) -> None:
        """`slots` becomes the window in runs; the rest of the policy holds as it is, but for its leases."""
        own = replace(policy, window=Window(runs=slots, tokens=policy.window.tokens), leases=_NO_LEASE)
        self.shard = Shard(0, 1)
        self.shard.step([SetPolicy(0, own)], _EPOCH_MS)
        self._waiting: dict[tuple[str, str], Arrival] = {}
        self._attempts: dict[tuple[str, str], int] = {}  # in flight
        self._position = 0

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del free  # the core keeps its own window
        inputs: list[Input] = [self._completion(arrival) for arrival in ended]
        inputs += [self._submit(arrival) for arrival in arrived]
        effects = self.shard.step(inputs, _EPOCH_MS + now_ms)
        if effects.rejections:
            refused = effects.rejections[0]
            raise RuntimeError(f"the policy refuses part of the workload: {refused.reason}: {refused.detail}")
        starts = []
        for dispatch in effects.dispatches:
            key = dispatch.tenant, dispatch.run_id
            self._attempts[key] = dispatch.attempt
            starts.append(Start(self._waiting.pop(key), dispatch.estimate))
        return starts

    def accounts(self) -> Mapping[str, tuple[int, int]]:
        """Return (charged, actual) of each tenant, in tokens: equal once everything has been served."""
        return {view.tenant: (view.charged, view.actual) for view in self.shard.snapshot().flows}

    def _submit(self, arrival: Arrival) -> Submit:
        self._position += 1
        self._waiting[arrival.tenant, arrival.run_id] = arrival
        return Submit(
            self._position,
            arrival.tenant,
            arrival.run_id,
            arrival.workflow,
            estimate=arrival.estimate,
            submitted_ms=_EPOCH_MS + arrival.at_ms,
        )

    def _completion(self, arrival: Arrival) -> Completion:
        attempt = self._attempts.pop((arrival.tenant, arrival.run_id))
        return Completion(0, arrival.tenant, arrival.run_id, attempt, SUCCEEDED, arrival.tokens)


def _exact(arrival: Arrival) -> Start:
    return Start(arrival, arrival.tokens)
