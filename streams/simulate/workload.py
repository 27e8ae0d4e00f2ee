"""Arrivals: who asks for what, when, and what it will cost. Made from a seed, or from a trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from streams.errors import ConfigError
from streams.simulate.costs import Costs, Guess

_MS_PER_S: Final = 1_000


class Arrival(NamedTuple):
    """A run as the simulated pool sees it. `tokens` is what it will turn out to cost; no scheduler may look at it."""

    at_ms: int
    tenant: str
    run_id: str  # unique within its tenant
    workflow: str
    tokens: int  # > 0
    duration_ms: int  # > 0, in a slot
    estimate: int | None = None  # tokens, the producer's own guess
    max_tokens: int | None = None  # tokens, an upper bound of the estimate
    class_: str | None = None  # None: the policy's first
    not_before_ms: int | None = None
    deadline_ms: int | None = None
    body_bytes: int = 0  # payload and headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one tenant files: `runs` at random moments of [from_ms, until_ms), each with a cost of its own.

    With `every_ms` it does so again and again: `times` times in all, each that much later than the one before.
    """

    tenant: str
    runs: int
    costs: Costs
    from_ms: int
    until_ms: int
    workflow: str = "work"
    workflows: int | None = 1  # so many names, taken in turn; None: a new one for each run
    guess: Guess | None = None  # what its producer says of each run; None: nothing
    times: int = 1
    every_ms: int = 0

    def intervals(self) -> list[tuple[int, int]]:
        """Return when it files."""
        return [(self.from_ms + n * self.every_ms, self.until_ms + n * self.every_ms) for n in range(self.times)]

    def workflow_of(self, number: int) -> str:
        """Return the name under which the n-th run is filed, from 0."""
        if self.workflows is None:
            return f"{self.workflow}-{number}"
        return self.workflow if self.workflows == 1 else f"{self.workflow}-{number % self.workflows}"


def duration_ms(tokens: int, tokens_per_s: int) -> int:
    """Return how long a run of `tokens` holds a slot that works off `tokens_per_s`: rounded up, at least 1 ms."""
    return max(1, -(-tokens * _MS_PER_S // tokens_per_s))


def make_workload(loads: Iterable[Load], *, seed: int, tokens_per_s: int) -> tuple[Arrival, ...]:
    """Return the arrivals of all loads in the order in which they come.

    Each tenant draws from a stream of its own (seed, tenant), so that adding one leaves the others as they were.
    Run ids are numbered in the order of arrival. Raises `ConfigError` for a load or speed that cannot be.
    """
    if tokens_per_s <= 0:
        raise ConfigError("must be positive", field="tokens_per_s", value=tokens_per_s)
    arrivals: list[Arrival] = []
    seen: set[str] = set()
    for load in loads:
        _check(load)
        if load.tenant in seen:  # it would draw the same again, under the same run ids
            raise ConfigError("a tenant has one load", field="tenant", value=load.tenant)
        seen.add(load.tenant)
        random = Random(f"{seed}/{load.tenant}")
        moments = sorted(random.randrange(*interval) for interval in load.intervals() for _ in range(load.runs))
        for number, at_ms in enumerate(moments):
            tokens = load.costs.draw(random, number)
            arrivals.append(
                Arrival(
                    at_ms,
                    load.tenant,
                    f"{load.tenant}-{number + 1:04d}",
                    load.workflow_of(number),
                    tokens,
                    duration_ms(tokens, tokens_per_s),
                    load.guess.of(tokens, number) if load.guess else None,
                )
            )
    return in_order(arrivals)


def _check(load: Load) -> None:
    wrong = load.runs < 0 or load.from_ms < 0 or load.until_ms <= load.from_ms
    if wrong or load.times < 1 or load.every_ms < 0 or load.workflows == 0:
        raise ConfigError("a load needs runs >= 0 in an interval of time", field=load.tenant, value=load)


def in_order(arrivals: Iterable[Arrival]) -> tuple[Arrival, ...]:
    """Return the arrivals by time; those of the same millisecond by tenant and run id, which are unique."""
    return tuple(sorted(arrivals))


def tokens_by_tenant(arrivals: Iterable[Arrival]) -> dict[str, int]:
    """Return what each tenant asks for in all, in tokens, tenants in the order of their first arrival."""
    total: dict[str, int] = {}
    for arrival in arrivals:
        total[arrival.tenant] = total.get(arrival.tenant, 0) + arrival.tokens
    return total
