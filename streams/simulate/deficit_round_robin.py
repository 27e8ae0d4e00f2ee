"""Ours behind the pool's protocol: the core itself, driven step by step as the real scheduler drives it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streams.core.effects import Effects
from streams.core.inputs import HEARTBEAT, SUCCEEDED, Completion, Input, SetPolicy, Submit
from streams.core.policy import Policy, Window
from streams.core.shard import Shard
from streams.errors import ConfigError
from streams.simulate.scheduler import Lost, Refusal, Scheduler, Start
from streams.simulate.workload import Arrival
from streams.wire.partitions import partition_for

# The core's time is since the epoch and starts after 0; a workload's starts at 0.
EPOCH_MS: Final = 1_000_000

_Key = tuple[str, str]  # tenant, run_id


class Stated(NamedTuple):
    """A policy, and the moment from which it holds, in ms from the beginning of the workload."""

    at_ms: int
    policy: Policy


def true_cost(arrival: Arrival) -> int:
    """Return what an honest worker says."""
    return arrival.tokens


class DeficitRoundRobin(Scheduler):
    """The core: one shard or several, each with its part of the window and the tenants that hash to it, as live.

    Workers send heartbeats: of a run that is not lost, the last one before its lease would run out is played, since
    no other changes anything. The last one of a lost run comes at the moment of the loss, and says what was spent.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        slots: int | None,
        shards: int = 1,
        reported: Callable[[Arrival], int] = true_cost,
        changes: Sequence[Stated] = (),
    ) -> None:
        """`slots` becomes the window in runs (None: without a limit); the rest of the policy holds as it is.

        `reported`: what a worker says that a run has cost. `changes`: policies that follow, with their own windows, in
        the order of their moments. Raises `ConfigError` for more shards than slots.
        """
        if shards <= 0 or (slots is not None and slots < shards):
            raise ConfigError("must be at least 1, and at most the number of slots", field="shards", value=shards)
        own = replace(policy, window=Window(runs=slots, tokens=policy.window.tokens))
        self.shards = [Shard(number, shards) for number in range(shards)]
        for shard in self.shards:
            shard.step([SetPolicy(0, own)], EPOCH_MS)
        self._changes = deque(enumerate(changes, start=1))
        self._reported = reported
        self._runs: dict[_Key, Arrival] = {}  # queued or in flight
        self._attempts: list[dict[_Key, int]] = [{} for _ in self.shards]  # in flight, by shard
        self._silent: set[_Key] = set()  # lost, and not handed out again
        self._last_words: list[Lost] = []
        self._refusals: list[Refusal] = []
        self._position = 0

    def advance(self, now_ms: int, arrived: Sequence[Arrival], ended: Sequence[Arrival], free: int) -> Sequence[Start]:
        del free  # the core keeps its own window
        # As in a step of the real one: policies first, then reports, then requests.
        changes = self._due_changes(now_ms)
        inputs: list[list[Input]] = [
            [*changes, *self._beats(number, EPOCH_MS + now_ms)] for number in range(len(self.shards))
        ]
        due = [shard for shard, first in enumerate(inputs) if first]
        for lost in self._last_words:
            inputs[self._shard_of(lost.arrival)].append(self._report(lost.arrival, HEARTBEAT, lost.tokens))
        self._last_words.clear()
        for arrival in ended:
            inputs[self._shard_of(arrival)].append(self._finish(arrival))
        arriving: list[dict[int, Arrival]] = [{} for _ in self.shards]
        for arrival in arrived:
            submit = self._submit(arrival)
            inputs[self._shard_of(arrival)].append(submit)
            arriving[self._shard_of(arrival)][submit.position] = arrival
        starts: list[Start] = []
        for number, own in enumerate(inputs):
            if own or number in due or self._is_due(number, EPOCH_MS + now_ms):
                starts += self._advance(number, own, arriving[number], now_ms)
        return starts

    def lose(self, now_ms: int, lost: Sequence[Lost]) -> None:
        del now_ms
        self._silent |= {_key(each.arrival) for each in lost}
        self._last_words += lost

    def next_timer_ms(self) -> int | None:
        timers = [at - EPOCH_MS for at in (shard.next_timer_ms() for shard in self.shards) if at is not None]
        timers += [change.at_ms for _, change in self._changes][:1]
        return min(timers, default=None)

    def take_refusals(self) -> Sequence[Refusal]:
        taken, self._refusals = self._refusals, []
        return taken

    def accounts(self) -> Mapping[str, tuple[int, int]]:
        """Return (charged, actual) of each tenant, in tokens: equal once everything has been served."""
        totals: dict[str, tuple[int, int]] = {}
        for shard in self.shards:
            for view in shard.snapshot().flows:  # one for each class
                charged, actual = totals.get(view.tenant, (0, 0))
                totals[view.tenant] = charged + view.charged, actual + view.actual
        return totals

    def step(self, shard: Shard, inputs: Sequence[Input], now_ms: int) -> Effects:
        """Let one shard advance; `now_ms` is the core's time. Tests look closer here."""
        return shard.step(inputs, now_ms)

    def _advance(self, number: int, inputs: Sequence[Input], arriving: dict[int, Arrival], now_ms: int) -> list[Start]:
        effects = self.step(self.shards[number], inputs, EPOCH_MS + now_ms)
        for rejection in effects.rejections:
            key = rejection.tenant, rejection.run_id
            at_the_door = arriving.pop(rejection.position, None)
            if at_the_door is not None:  # its name may be that of a run that is queued or in flight
                self._refusals.append(Refusal(at_the_door, now_ms, rejection.reason))
                continue
            self._attempts[number].pop(key, None)  # its lease has run out, and there is no further attempt
            self._silent.discard(key)
            self._refusals.append(Refusal(self._runs.pop(key), now_ms, rejection.reason))
        self._runs |= {_key(arrival): arrival for arrival in arriving.values()}
        starts = []
        for dispatch in effects.dispatches:
            key = dispatch.tenant, dispatch.run_id
            self._attempts[number][key] = dispatch.attempt
            self._silent.discard(key)
            starts.append(Start(self._runs[key], dispatch.estimate))
        return starts

    def _shard_of(self, arrival: Arrival) -> int:
        return partition_for(arrival.tenant, len(self.shards))

    def _is_due(self, number: int, now_ms: int) -> bool:
        timer = self.shards[number].next_timer_ms()
        return timer is not None and timer <= now_ms

    def _beats(self, number: int, now_ms: int) -> list[Input]:
        """Return a sign of life of everybody who could otherwise be given up now."""
        if not self._is_due(number, now_ms):
            return []
        return [
            Completion(0, tenant, run_id, attempt, HEARTBEAT)
            for (tenant, run_id), attempt in self._attempts[number].items()
            if (tenant, run_id) not in self._silent
        ]

    def _due_changes(self, now_ms: int) -> list[Input]:
        """Return the policies that are stated by now and were not before."""
        due: list[Input] = []
        while self._changes and self._changes[0][1].at_ms <= now_ms:
            version, change = self._changes.popleft()
            due.append(SetPolicy(version, change.policy))
        return due

    def _submit(self, arrival: Arrival) -> Submit:
        self._position += 1
        return Submit(
            self._position,
            arrival.tenant,
            arrival.run_id,
            arrival.workflow,
            arrival.class_,
            arrival.estimate,
            arrival.max_tokens,
            _moment(arrival.not_before_ms),
            _moment(arrival.deadline_ms),
            submitted_ms=EPOCH_MS + arrival.at_ms,
            body=bytes(arrival.body_bytes),
        )

    def _finish(self, arrival: Arrival) -> Completion:
        report = self._report(arrival, SUCCEEDED, self._reported(arrival))
        del self._attempts[self._shard_of(arrival)][_key(arrival)], self._runs[_key(arrival)]
        return report

    def _report(self, arrival: Arrival, status: str, tokens: int) -> Completion:
        attempt = self._attempts[self._shard_of(arrival)][_key(arrival)]
        return Completion(0, arrival.tenant, arrival.run_id, attempt, status, tokens)


def _key(arrival: Arrival) -> _Key:
    return arrival.tenant, arrival.run_id


def _moment(at_ms: int | None) -> int | None:
    return None if at_ms is None else EPOCH_MS + at_ms
