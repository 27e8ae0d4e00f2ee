"""Rings taken apart and put together anew, when tenants move to other shards: see `resharding`.

Each flow keeps what the ring owes it: its balance, and whether its visit in the round under way has come. A new ring
begins in the middle of a round. In order, and each as they were in their old rings, come those that have been visited
in the old round, those whose visit is under way, and those whose visit is to come; the cursor stands behind the first.
So nobody has a second quantum in one round and nobody misses one, and a ring that stays together serves in the order
it would have served in. One that is put together of several serves as if their rounds had begun together.

If several visits are under way, the first is the new ring's, and the others go on when the cursor comes to their
places, which are next: these earn nothing then, for their quantum is in the balance (`FlowRecord.half_visit`).

Members of a group that meet in a new ring share its weight from the next round on, as when they come and go; what the
visit of the round under way is to earn they still earn (`FlowRecord.extra`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.core.classes import FURTHEST
from streams.core.groups import share_of
from streams.core.records import ACTIVE, IDLE, FlowRecord, RingRecord, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streams.core.policy import Policy
    from streams.core.records import ShardRecord
    from streams.core.ring import Ring
    from streams.core.state import State

_VISITED: Final = 0  # in the round under way
_UNDER_WAY: Final = 1
_TO_COME: Final = 2

_ROUND: Final = 1  # of a new ring
_FIELDS: Final = fields_of(FlowRecord)


class Joiner(NamedTuple):
    """A flow on its way to another ring; all rounds of the old one are booked."""

    stage: int  # of its visit in the round under way
    place: int  # in the old ring
    shard: int  # the old one
    record: FlowRecord  # its own copy
    rate: int  # tokens a round in the old ring
    use: int  # when it came to rest, counted back from the last use of its shard; see `FlowRecord.left`
    figures: tuple[int, int, int]  # of the bound, in the old ring: see `gap`


def leave(ring: Ring, shard: ShardRecord) -> Iterator[Joiner]:
    """Yield the flows of a ring of an old shard, ready to join another. All rounds must have been booked."""
    about = ring.record
    figures = (about.max_estimate, about.max_under, about.max_over)
    for place, flow in ring.flows.items():
        record = FlowRecord(*_FIELDS(flow))
        record.accrued = _ROUND - (about.round - flow.accrued)
        stage = _VISITED if place <= about.cursor else _TO_COME
        if flow is ring.current:
            stage = _UNDER_WAY
        yield Joiner(stage, place, shard.shard, record, flow.rate, flow.left - shard.uses, figures)


def leads(state: State, ring: Ring, parts: int) -> list[int]:
    """Return by how much a class is ahead of the classes' clock (below 0: behind), in so many parts that sum to it.

    One without a share is neither.
    """
    if state.turns is None or ring.record.class_ not in state.turns.shares:
        return [0] * parts
    lead = ring.record.tag - state.record.clock
    return [lead * (number + 1) // parts - lead * number // parts for number in range(parts)]


def join(
    joiners: Iterable[Joiner], ahead: Mapping[str, int], past: Iterable[RingRecord], policy: Policy
) -> tuple[list[RingRecord], list[FlowRecord]]:
    """Put the rings of a new shard together; return their records, and the flows', which are those of the joiners.

    `ahead` says how far the classes are ahead of the clock, which begins at 0. `past` are old rings whose sums over
    forgotten flows are to be kept here.
    """
    by_class: defaultdict[str, list[Joiner]] = defaultdict(list)
    for joiner in joiners:
        by_class[joiner.record.class_].append(joiner)
    rings = {name: _join(name, members, policy) for name, members in by_class.items()}
    for old in past:
        if old.past_charged or old.past_dispatched or old.past_ended:
            ring = rings.setdefault(old.class_, RingRecord(class_=old.class_, next_place=1))
            ring.past_charged += old.past_charged
            ring.past_dispatched += old.past_dispatched
            ring.past_ended += old.past_ended
    for name, lead in ahead.items():
        if lead:
            ring = rings.setdefault(name, RingRecord(class_=name, next_place=1))
            ring.tag = max(-FURTHEST, min(lead, FURTHEST))
    return list(rings.values()), [joiner.record for members in by_class.values() for joiner in members]


def _join(name: str, members: list[Joiner], policy: Policy) -> RingRecord:
    """Give the flows of a class their places in a new ring, and return its record."""
    members.sort(key=lambda each: (each.stage, each.place, each.shard))
    visited = sum(each.stage == _VISITED for each in members)
    visiting = any(each.stage == _UNDER_WAY for each in members)
    cursor = visited if visiting else visited - 1
    ring = RingRecord(class_=name, round=_ROUND, cursor=cursor, visiting=visiting, next_place=len(members))
    weights = _weights(members, policy)
    for place, joiner in enumerate(members):
        flow = joiner.record
        flow.place = place
        if joiner.stage == _UNDER_WAY and place > cursor:
            flow.half_visit, flow.accrued = True, _ROUND - 1
        if flow.state is IDLE:
            continue
        # From here on it is measured anew, by the widest figures it was measured by: what it is owed is its balance.
        flow.base, flow.since = flow.charged + flow.deficit, flow.accrued
        ring.max_estimate = max(ring.max_estimate, joiner.figures[0])
        ring.max_under = max(ring.max_under, joiner.figures[1])
        ring.max_over = max(ring.max_over, joiner.figures[2])
        rules = policy.rules_for(flow.tenant)
        if rules.group is not None and flow.state is ACTIVE:
            earns = policy.quantum * policy.groups[rules.group]
            _rerate(ring, joiner, share_of(earns, rules.weight, weights[rules.group]))
    return ring


def _weights(members: Iterable[Joiner], policy: Policy) -> Counter[str]:
    """Return, by group, the sum of the weights of those of its members that earn something."""
    weights: Counter[str] = Counter()
    for joiner in members:
        rules = policy.rules_for(joiner.record.tenant)
        if rules.group is not None and joiner.record.state is ACTIVE:
            weights[rules.group] += rules.weight
    return weights


def _rerate(ring: RingRecord, joiner: Joiner, rate: int) -> None:
    """Let a member of a group earn `rate`, from the next round on. For the bound, see `gap.rerate`."""
    flow = joiner.record
    visited = flow.accrued == _ROUND or flow.half_visit
    flow.extra = 0 if visited else joiner.rate + flow.extra - rate
    if rate != joiner.rate:
        ring.max_estimate = max(ring.max_estimate, flow.deficit + (flow.extra if flow.extra > 0 else -rate))
