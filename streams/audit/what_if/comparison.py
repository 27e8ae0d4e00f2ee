"""Figures of three plays of the same runs, side by side: what happened, the model of it, and what would have been."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.audit.what_if.model import play_fifo, play_policies
from streams.simulate.backlog import Interval, contest_in, find_contest
from streams.simulate.report import Share, by_weight_alone, jain, makespan_ms, shares
from streams.simulate.waits import Waits, percentile, waits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streams.audit.what_if.change import Change
    from streams.audit.what_if.traffic import Traffic
    from streams.core.policy import Policy
    from streams.simulate.backlog import Contest
    from streams.simulate.deficit_round_robin import Stated
    from streams.simulate.pool import Played, Served
    from streams.simulate.workload import Arrival

_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one play came to. Tokens at their true cost; ms."""

    policy: Policy  # at the beginning of the contest; without one, of the record
    waits: Mapping[str, Waits]  # of the runs that were served
    tokens: Mapping[str, int]  # of the same
    shares: Mapping[str, Share]  # of the interval of the contest that happened; empty if there was none
    stated: bool  # whether `shares` say what is stated: with classes, groups, caps and pauses weights alone do not
    backlogged: tuple[str, ...]  # all the time in that interval, in this play
    jain: Fraction | None  # Jain's index of what these got for their weight; None: they were not `divided`
    makespan_ms: int  # from the first arrival to the last end
    refused: Mapping[str, Mapping[str, int]]  # tenant -> reason -> runs
    waiting: Mapping[str, int]  # tenant -> runs that would never have begun

    @property
    def divided(self) -> bool:
        """Whether the interval was divided by weight: where nobody contended all got what they asked for."""
        return self.stated and len(self.backlogged) >= _PAIR

    @property
    def turned_away(self) -> int:
        """Runs that were not served."""
        return sum(sum(reasons.values()) for reasons in self.refused.values()) + sum(self.waiting.values())


class Distance(NamedTuple):
    """How far the model is from what happened. Positive: more in the model."""

    half_p50: int  # ms: the p50 waits of half of the tenants are not farther off
    half_p95: int
    p50: tuple[str, int]  # tenant, ms: where it is farthest
    p95: tuple[str, int]
    share: tuple[str, Fraction]  # tenant, part of the interval's tokens; ("", 0) without a contest
    makespan: Fraction  # relative


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Everything that is said of a change."""

    traffic: Traffic
    change: Change
    contest: Contest | None  # the longest interval in which the same tenants were backlogged, as long as weights held
    happened: Side
    model: Side  # the rules that were in force
    other: Side  # the changed ones
    distance: Distance  # of `model` from `happened`
    handover_ms: int  # in the model and in `other`; what it was, `Traffic` says


def compare(traffic: Traffic, change: Change, *, handover_ms: int = 0) -> WhatIf:
    """Play the traffic under the rules that were, and under the changed ones.

    From its dispatch to its start each run takes `handover_ms`, and holds its slot meanwhile.

    Raises `ConfigError` for a change that no shard would take, or that names a tenant of whom nothing is known.
    """
    change.check_names({arrival.tenant for arrival in traffic.arrivals}, traffic.policies)
    recorded = traffic.policies
    contest = _while_weights_held(find_contest(traffic.served), traffic)
    changed = [stated._replace(policy=change.apply(stated.policy)) for stated in recorded]
    other = (play_fifo if change.fifo else play_policies)(traffic, changed, handover_ms)
    happened = _side(traffic.served, contest, recorded)
    model = _played(play_policies(traffic, recorded, handover_ms), contest, recorded)
    return WhatIf(
        traffic=traffic,
        change=change,
        contest=contest,
        happened=happened,
        model=model,
        other=_played(other, contest, changed),
        distance=_distance(happened, model),
        handover_ms=handover_ms,
    )


def _while_weights_held(contest: Contest | None, traffic: Traffic) -> Contest | None:
    """Return the longest part of a contest in which nobody's recorded weight changed: a share has one weight."""
    if contest is None:
        return None
    tenants = {arrival.tenant for arrival in traffic.arrivals}
    changes = [
        after.at_ms
        for before, after in pairwise(traffic.policies)
        if any(before.policy.rules_for(name).weight != after.policy.rules_for(name).weight for name in tenants)
    ]
    from_ms, until_ms = contest.interval
    cuts = [from_ms, *(at_ms for at_ms in changes if from_ms < at_ms < until_ms), until_ms]
    longest = max((Interval(*part) for part in pairwise(cuts)), key=lambda part: part.length_ms)
    return contest_in(traffic.served, longest)


def _played(played: Played, contest: Contest | None, policies: Sequence[Stated]) -> Side:
    refused: dict[str, Counter[str]] = {}
    for refusal in played.refused:
        refused.setdefault(refusal.arrival.tenant, Counter())[refusal.reason] += 1
    return _side(played.served, contest, policies, refused, played.waiting)


def _side(
    served: Sequence[Served],
    contest: Contest | None,
    policies: Sequence[Stated],
    refused: Mapping[str, Mapping[str, int]] | None = None,
    waiting: Sequence[Arrival] = (),
) -> Side:
    tokens: Counter[str] = Counter()
    for run in served:
        tokens[run.arrival.tenant] += run.arrival.tokens
    parts: dict[str, Share] = {}
    index = None
    backlogged: tuple[str, ...] = ()
    stated = True
    from_ms = contest.interval.from_ms if contest else 0
    policy = [each.policy for each in policies if each.at_ms <= from_ms][-1]
    if contest is not None:
        own = contest_in(served, contest.interval)
        weights = {tenant: policy.rules_for(tenant).weight for tenant in tokens}
        parts = shares(served, own, weights)
        stated, backlogged = _weights_say_all(policy, served), own.tenants
        if stated and len(backlogged) >= _PAIR:
            index = jain([Fraction(parts[name].observed, weights[name]) for name in backlogged])
    return Side(
        policy=policy,
        waits=waits(served),
        tokens=dict(tokens),
        shares=parts,
        stated=stated,
        backlogged=backlogged,
        jain=index,
        makespan_ms=makespan_ms(served),
        refused=refused or {},
        waiting=Counter(arrival.tenant for arrival in waiting),
    )


def _weights_say_all(policy: Policy, served: Sequence[Served]) -> bool:
    classes = {run.arrival.class_ or policy.classes[0].name for run in served}
    tenants = {run.arrival.tenant for run in served}
    return len(classes) <= 1 and all(by_weight_alone(policy.rules_for(tenant)) for tenant in tenants)


def _distance(happened: Side, model: Side) -> Distance:
    both = [tenant for tenant in happened.waits if tenant in model.waits]
    total = sum(share.observed for share in happened.shares.values()) or 1
    modelled = sum(share.observed for share in model.shares.values()) or 1
    apart = {
        tenant: Fraction(_observed(model, tenant), modelled) - Fraction(_observed(happened, tenant), total)
        for tenant in {**happened.shares, **model.shares}
    }
    p50 = {name: model.waits[name].p50 - happened.waits[name].p50 for name in both}
    p95 = {name: model.waits[name].p95 - happened.waits[name].p95 for name in both}
    return Distance(
        _half(p50),
        _half(p95),
        _farthest(p50),
        _farthest(p95),
        max(apart.items(), key=lambda item: abs(item[1]), default=("", Fraction(0))),
        Fraction(model.makespan_ms, happened.makespan_ms) - 1,
    )


def _half(apart: Mapping[str, int]) -> int:
    return percentile(sorted(map(abs, apart.values())), 50) if apart else 0


def _farthest(apart: Mapping[str, int]) -> tuple[str, int]:
    return max(apart.items(), key=lambda item: abs(item[1]), default=("", 0))


def _observed(side: Side, tenant: str) -> int:
    share = side.shares.get(tenant)
    return share.observed if share else 0
