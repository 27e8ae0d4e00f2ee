"""One story under several schedulers, beside the ideal. Pure: the same story gives the same figures.

Everything that is a share is taken at the end of the story: later, with nothing to come, any scheduler has served
everybody everything. Times are those in which the story is played (see `Story`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from streams.simulate.bound import Gap, gaps_everywhere
from streams.simulate.contestants import CONTESTANTS, OURS
from streams.simulate.fluid import Change, Work, fluid
from streams.simulate.pool import Outage, Played, Served, play_out
from streams.simulate.progress import steps, worked_off
from streams.simulate.report import by_weight_alone, jain, makespan_ms
from streams.simulate.story import Story
from streams.simulate.waits import Waits, overall, waits
from streams.simulate.workload import tokens_by_tenant
from streams.wire.partitions import partition_for

MOMENTS: Final = 120  # at which the ideal is looked at, evenly until the end of the story
MEASURED: Final = 64  # tenants, those that ask for most, of which every two are measured against the bound


class Distance(NamedTuple):
    """The largest distance from the ideal."""

    tokens: int
    tenant: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a scheduler made of the story. Tokens and ms."""

    scheduler: str
    served: Sequence[Served]
    waits: Mapping[str, Waits]  # of what was served, by tenant
    all_waits: Waits | None  # None: nothing was served
    small_waits: Waits | None  # of all small tenants together; None: there are none
    worked: Mapping[str, Sequence[int]]  # tokens worked off by each moment, by tenant
    jain: Fraction  # Jain's index of what was worked off over what the ideal gives; 1: all fare alike
    distance: Distance
    gap: Gap | None  # the one that comes closest to its bound, or exceeds it most; None: no two were ever backlogged
    widest: Gap | None  # the largest: to be compared with that of others, whose bounds would be others
    makespan_ms: int
    used: Fraction  # part of the slots' time until the end of the story in which they worked
    lost_attempts: int
    lost_tokens: int  # worked off in attempts that were lost
    refused: Mapping[str, int]  # runs, by reason

    @property
    def throughput(self) -> int:
        """Return the tokens of all that was served, per second of the makespan, rounded down."""
        tokens = sum(run.arrival.tokens for run in self.served)
        return tokens * 1_000 // self.makespan_ms if self.makespan_ms else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All of it."""

    story: Story
    asked: Mapping[str, int]  # tokens, by tenant in the order of the first arrivals
    weights: Mapping[str, int]
    small: frozenset[str]  # who asks for at most half of an equal part
    moments: Sequence[int]
    ideal: Mapping[str, Sequence[int]]  # tokens by each moment, by tenant
    outcomes: Sequence[Outcome]

    @property
    def holds(self) -> bool:
        """Whether ours, if it was asked for, kept its bound."""
        return all(outcome.gap is None or outcome.gap.holds for outcome in self.outcomes if outcome.scheduler == OURS)


def compare(story: Story, schedulers: Iterable[str], *, watch: Callable[[str], None] = lambda _: None) -> Comparison:
    """Play the story under each of the schedulers. `watch` is told each name before its turn."""
    moments = steps(story.until_ms, MOMENTS)
    ideal = _ideal(story, moments)
    asked = tokens_by_tenant(story.arrivals)
    outcomes = []
    for name in schedulers:
        watch(name)
        scheduler = CONTESTANTS[name](story)
        played = play_out(story.arrivals, scheduler, slots=story.slots, outages=story.outages)
        outcomes.append(_outcome(name, story, played, moments, ideal))
    small = frozenset(story.small)
    return Comparison(
        story=story, asked=asked, weights=story.weights, small=small, moments=moments, ideal=ideal, outcomes=outcomes
    )


def _ideal(story: Story, moments: Sequence[int]) -> dict[str, list[int]]:
    arrivals = [Work(each.at_ms, each.tenant, each.tokens) for each in story.arrivals]
    changes = [Change(at_ms, _capacity(story, slots)) for at_ms, slots in slots_over_time(story.slots, story.outages)]
    served = fluid(arrivals, story.weights, _capacity(story, story.slots), moments, changes)
    return {tenant: [each[tenant] for each in served] for tenant in story.weights}


def _capacity(story: Story, slots: int) -> Fraction:
    return Fraction(slots * story.tokens_per_s, 1_000)


def slots_over_time(slots: int, outages: Sequence[Outage]) -> list[tuple[int, int]]:
    """Return the moments at which slots come or go, each with how many there are from then on."""
    changes: Counter[int] = Counter()
    for outage in outages:
        changes[outage.at_ms] -= outage.slots
        changes[outage.until_ms] += outage.slots
    found = []
    for at_ms in sorted(changes):
        slots += changes[at_ms]
        found.append((at_ms, max(0, slots)))
    return found


def _outcome(
    name: str, story: Story, played: Played, moments: Sequence[int], ideal: Mapping[str, Sequence[int]]
) -> Outcome:
    worked = dict.fromkeys(story.weights, [0] * len(moments)) | worked_off(played.served, moments)
    small = set(story.small)
    found = _gaps(name, story, played)
    parts = [Fraction(worked[tenant][-1], whole[-1]) for tenant, whole in ideal.items() if whole[-1]]
    return Outcome(
        scheduler=name,
        served=played.served,
        waits=waits(played.served),
        all_waits=overall(played.served),
        small_waits=overall(run for run in played.served if run.arrival.tenant in small),
        worked=worked,
        jain=jain(parts),
        distance=_distance(worked, moments, ideal),
        gap=max(found, key=lambda gap: (gap.observed / gap.bound, gap), default=None),
        widest=max(found, key=lambda gap: (gap.observed, gap), default=None),
        makespan_ms=makespan_ms(played.served),
        used=Fraction(_busy_ms(played.attempts, moments[-1]), _slot_ms(story, moments[-1])),
        lost_attempts=len(played.lost),
        lost_tokens=sum(each.tokens for each in played.lost),
        refused=Counter(refusal.reason for refusal in played.refused),
    )


def _distance(
    worked: Mapping[str, Sequence[int]], moments: Sequence[int], ideal: Mapping[str, Sequence[int]]
) -> Distance:
    return max(
        Distance(abs(here - there), tenant, at_ms)
        for tenant, own in ideal.items()
        for at_ms, here, there in zip(moments, worked[tenant], own, strict=True)
    )


def _gaps(name: str, story: Story, played: Played) -> list[Gap]:
    """Return the gap of every two in every interval. Ours is bound inside a shard."""
    measured = set(_measured(story))
    shards = story.shards if name == OURS else 1
    found: list[Gap] = []
    for shard in range(shards):
        own = [
            run
            for run in played.attempts
            if run.arrival.tenant in measured and partition_for(run.arrival.tenant, shards) == shard
        ]
        found += gaps_everywhere(own, story.weights, story.policy.quantum)
    return found


def _measured(story: Story) -> list[str]:
    """Return whose gaps are measured. The bound is for who may use its whole share: at no cap, and in no group."""
    asked = tokens_by_tenant(story.arrivals)
    free = [tenant for tenant in asked if by_weight_alone(story.policy.rules_for(tenant))]
    return sorted(free, key=lambda tenant: (-asked[tenant], tenant))[:MEASURED]


def _busy_ms(attempts: Iterable[Served], until_ms: int) -> int:
    return sum(max(0, min(run.ended_ms, until_ms) - run.started_ms) for run in attempts)


def _slot_ms(story: Story, until_ms: int) -> int:
    """Return the time of all slots that there were until then."""
    total = since = 0
    slots = story.slots
    for at_ms, count in [*slots_over_time(slots, story.outages), (until_ms, 0)]:
        total += slots * (min(at_ms, until_ms) - min(since, until_ms))
        since, slots = at_ms, count
    return total
