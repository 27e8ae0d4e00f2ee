"""Arrivals: who asks for what, when, and what it will cost. Made from a seed, or from a trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple, Protocol

from streams.errors import ConfigError

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


class Costs(Protocol):
    """What runs cost."""

    def draw(self, random: Random) -> int:
        """Return the tokens (> 0) of one run."""
        ...


@dataclass(frozen=True, slots=True)
class HeavyTail:
    """Log-normal cost around a median, kept within `median / reach` and `median * reach`.

    So the dearest run costs at most `reach` squared times the cheapest. A `sigma` of 1 puts one run in six above
    2.7 medians. Where a draw falls outside it is drawn again: cutting would pile runs up at the ends.
    """

    median: int  # tokens
    reach: float = 7.0  # >= 1; 7 squared is about 50
    sigma: float = 1.0

    def draw(self, random: Random) -> int:
        while True:
            factor = random.lognormvariate(0.0, self.sigma)
            if 1 / self.reach <= factor <= self.reach:
                return max(1, round(self.median * factor))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one tenant files: `runs` at random moments of [from_ms, until_ms), each with a cost of its own."""

    tenant: str
    runs: int
    costs: Costs
    from_ms: int
    until_ms: int
    workflow: str = "work"


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
    for load in loads:
        if load.runs < 0 or load.from_ms < 0 or load.until_ms <= load.from_ms:
            raise ConfigError("a load needs runs >= 0 in an interval of time", field=load.tenant, value=load)
        random = Random(f"{seed}/{load.tenant}")
        moments = sorted(random.randrange(load.from_ms, load.until_ms) for _ in range(load.runs))
        for number, at_ms in enumerate(moments, start=1):
            tokens = load.costs.draw(random)
            arrivals.append(
                Arrival(
                    at_ms,
                    load.tenant,
                    f"{load.tenant}-{number:04d}",
                    load.workflow,
                    tokens,
                    duration_ms(tokens, tokens_per_s),
                )
            )
    return in_order(arrivals)


def in_order(arrivals: Iterable[Arrival]) -> tuple[Arrival, ...]:
    """Return the arrivals by time; those of the same millisecond by tenant and run id, which are unique."""
    return tuple(sorted(arrivals))


def tokens_by_tenant(arrivals: Iterable[Arrival]) -> dict[str, int]:
    """Return what each tenant asks for in all, in tokens, tenants in the order of their first arrival."""
    total: dict[str, int] = {}
    for arrival in arrivals:
        total[arrival.tenant] = total.get(arrival.tenant, 0) + arrival.tokens
    return total
