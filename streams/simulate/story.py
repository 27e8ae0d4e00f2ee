"""A story: who files what, under which rules, on how many slots. What the demo plays and the simulator compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from streams.core.policy import Policy, Window
from streams.errors import ConfigError
from streams.simulate.pool import Outage
from streams.simulate.workload import Arrival, tokens_by_tenant

_HOUR_MS: Final = 3_600_000
_MOST_HOURS: Final = 10_000  # a year and more


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A workload with its policy and its pool. Times of arrivals are compressed: as they will be played."""

    name: str
    title: str
    arrivals: tuple[Arrival, ...]
    policy: Policy
    slots: int  # of the worker fleet, and the policy's window
    tokens_per_s: int  # that one slot works off, in compressed time
    compression: int  # how many seconds of the story pass in one second of the demo
    shards: int = 1
    outages: tuple[Outage, ...] = ()
    lasts_ms: int | None = None  # how long it is looked at; None: until the last arrival
    silent: frozenset[str] = frozenset()  # tenants whose workers say of every run that it has cost nothing

    @property
    def tenants(self) -> tuple[str, ...]:
        """Everyone who files anything, in the order of their first arrivals."""
        return tuple(tokens_by_tenant(self.arrivals))

    @property
    def until_ms(self) -> int:
        """When the story ends: what is still queued then is served later, and not looked at as a share."""
        return self.arrivals[-1].at_ms + 1 if self.lasts_ms is None else self.lasts_ms

    @property
    def weights(self) -> Mapping[str, int]:
        return {tenant: self.policy.rules_for(tenant).weight for tenant in self.tenants}

    @property
    def small(self) -> tuple[str, ...]:
        """The tenants that ask for at most half of an equal part of all tokens."""
        asked = tokens_by_tenant(self.arrivals)
        total = sum(asked.values())
        return tuple(tenant for tenant, tokens in asked.items() if tokens * 2 * len(asked) <= total)

    def reported(self, arrival: Arrival) -> int:
        """Return what a worker says that a run has cost."""
        return 0 if arrival.tenant in self.silent else arrival.tokens

    def on(self, slots: int) -> Story:
        """Return the same on another number of slots. Raises `ConfigError` if there would be none for some shard."""
        if slots < self.shards or any(outage.slots > slots for outage in self.outages):
            raise ConfigError("too few for the shards or the outages of this scenario", field="slots", value=slots)
        window = Window(runs=slots, tokens=self.policy.window.tokens)
        return replace(self, slots=slots, policy=replace(self.policy, window=window))

    def under(self, policy: Policy) -> Story:
        """Return the same under another policy, whose window is that of the slots."""
        window = Window(runs=self.slots, tokens=policy.window.tokens)
        return replace(self, policy=replace(policy, window=window))

    def lasting(self, hours: float) -> Story:
        """Return the traffic of so many hours of the story: cut off, or the same again and again.

        Raises `ConfigError` if no run is left, or for a time that cannot be.
        """
        if not 0 < hours <= _MOST_HOURS:  # nan is not, either
            raise ConfigError(f"must be above 0 and at most {_MOST_HOURS:,}", field="hours", value=hours)
        lasts_ms = round(hours * _HOUR_MS / self.compression)
        period_ms = self.until_ms
        arrivals = tuple(
            arrival._replace(
                at_ms=arrival.at_ms + turn * period_ms, run_id=f"{arrival.run_id}/{turn}" if turn else arrival.run_id
            )
            for turn in range(lasts_ms // period_ms + 1)
            for arrival in self.arrivals
            if arrival.at_ms + turn * period_ms < lasts_ms
        )
        if not arrivals:
            raise ConfigError("no run comes in this time", field="hours", value=hours)
        return replace(self, arrivals=arrivals, lasts_ms=lasts_ms)
