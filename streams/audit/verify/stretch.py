"""What a flow is measured by while it is busy and plain: its deficit, and its service against that of the others.

A stretch begins with the first decision for a flow that has something ready, and ends when it has nothing ready any
more, or when its rules change. Tenants with a cap, a group or a bar have none: rounds that they do not earn in are not
in the journal. What holds for them only a replay can tell.

Deficits
--------
In a stretch a flow earns quantum x weight in every round, so from one decision to the next

    deficit before  =  deficit after the last  +  quantum x weight x rounds between  -  what was charged beside it

exactly: an altered deficit, round, estimate, weight or settlement breaks it where it stands.

Bound
-----
V, the virtual service of a flow, is what it was charged per weight. At each decision for flow j, against every other
flow i of the class that is in a stretch (symbols as in `streams.core`):

    V_i - V_j  <=  Q + (E + K_i D) / f_i + (E + K_j D) / f_j

V begins at the virtual time at which the flow comes in, Q x round - deficit / weight; after that it counts charges
alone, and knows nothing of rounds and deficits. It is judged when flow j is served, since only then is it known what
its head costs. One heap holds the flow with the largest V - (E + K D) / f, so a decision costs O(log flows).

Integers: V is kept in 2^-20 of a token per weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.verify.books import Books
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.subjects import Flow
    from streams.wire import Decision

_BITS: Final = 20
_ROUNDING: Final = 8  # units: four roundings a side, each below one
_SLACK: Final = 64  # entries of the heap that are not worth a clean-up


@dataclass(slots=True)
class Figures:
    """The E and D of a class, since nobody in it had anything ready; see `streams.core.gap`."""

    largest: int = 0  # tokens, as are the others
    under: int = 0
    over: int = 0

    def miss(self, first: int, charged: int, actual: int) -> None:
        """Take in how far an attempt was off, that was first charged `first`, then `charged`, and cost `actual`."""
        self.under = max(self.under, actual - first)
        self.over = max(self.over, charged - actual)

    def allowance(self, peak: int) -> int:
        """Return E + K D, tokens."""
        return self.largest + peak * (self.under + self.over)


@dataclass(slots=True)
class Stretch:
    """What is measured of a flow since it is busy and plain."""

    flow: Flow
    weight: int
    begin_ms: int  # the time of its first decision
    base: int  # V then
    round: int  # of the last decision
    deficit: int  # after it, less what was charged since
    served: int = 0  # tokens charged since the begin
    noted: int | None = None  # its key in the heap

    @property
    def virtual(self) -> int:
        return self.base + (self.served << _BITS) // self.weight


class Widest(NamedTuple):
    """The pair of a class that came nearest to its bound; `gap` and `bound` in tokens per weight."""

    class_: str
    ahead: str
    behind: str
    gap: int
    bound: int
    step: int


class Stretches:
    """All of one shard."""

    def __init__(self, books: Books, findings: Findings) -> None:
        self._books: Final = books
        self._findings: Final = findings
        self._heaps: Final[dict[str, list[tuple[int, int, Stretch]]]] = {}
        self._pushed = 0
        self.widest: Final[dict[str, Widest]] = {}

    def figures(self, class_: str) -> Figures:
        return self._books.figures(class_)

    def decide(self, flow: Flow, decision: Decision, step: int) -> None:
        """Hold a decision against what is known of its flow; before it is charged."""
        figures = self.figures(flow.class_)
        figures.largest = max(figures.largest, decision.estimate)
        policy = self._books.policy
        if policy is None or not flow.tenant.plain:
            self._findings.looked_at["decisions left to a replay"] += 1
            return
        weight = flow.tenant.rules.weight
        stretch = flow.stretch
        if stretch is None:
            # What it comes in with may stem from errors that the figures don't know any more.
            figures.largest = max(figures.largest, decision.deficit_before)
            base = (policy.quantum * decision.round << _BITS) - (decision.deficit_before << _BITS) // weight
            flow.stretch = Stretch(flow, weight, self._books.now_ms, base, decision.round, decision.deficit_before)
            return
        self._continues(stretch, decision, step, policy.quantum * weight)
        self._in_bound(stretch, step, policy.quantum)
        stretch.round, stretch.deficit = decision.round, decision.deficit_before

    def charged(self, flow: Flow, tokens: int) -> None:
        """Take in that a flow was charged more, or less than before."""
        stretch = flow.stretch
        if stretch is None:
            return
        stretch.deficit -= tokens
        stretch.served += tokens
        self._note(stretch)

    def end_all(self) -> None:
        """Begin anew: the rules have changed."""
        for flow in self._books.flows.values():
            flow.stretch = None
        self._heaps.clear()

    def _continues(self, stretch: Stretch, decision: Decision, step: int, rate: int) -> None:
        rounds = decision.round - stretch.round
        expected = stretch.deficit + rate * rounds
        self._findings.looked_at["deficits"] += 1
        if rounds < 0 or decision.deficit_before != expected:
            self._findings.add(
                "deficits",
                self._books.shard,
                f"seq {decision.seq}: {visible(decision.tenant)} had a deficit of {decision.deficit_before} in round "
                f"{decision.round}; {stretch.deficit} in round {stretch.round} and {rate} a round make {expected}",
                step=step,
            )

    def _in_bound(self, behind: Stretch, step: int, quantum: int) -> None:
        ahead = self._furthest(behind)
        if ahead is None:
            return
        figures, class_ = self.figures(behind.flow.class_), behind.flow.class_
        gap = ahead.virtual - behind.virtual
        bound = (quantum << _BITS) + _slack(ahead, figures) + _slack(behind, figures) + _ROUNDING
        self._findings.looked_at["gaps"] += 1
        before = self.widest.get(class_)
        if before is None or (gap >> _BITS) * before.bound > before.gap * (bound >> _BITS):
            names = visible(ahead.flow.tenant.name), visible(behind.flow.tenant.name)
            self.widest[class_] = Widest(class_, *names, max(0, gap) >> _BITS, bound >> _BITS, step)
        if gap > bound:
            names = visible(ahead.flow.tenant.name), visible(behind.flow.tenant.name)
            self._findings.add(
                "bound",
                self._books.shard,
                f"class {visible(class_)}: {names[0]} is {gap >> _BITS} tokens per weight ahead of {names[1]}, which "
                f"waits; the bound is {bound >> _BITS}",
                step=step,
            )

    def _furthest(self, behind: Stretch) -> Stretch | None:
        """Return the other stretch of the class with the largest V less its slack."""
        heap = self._heaps.setdefault(behind.flow.class_, [])
        aside: tuple[int, int, Stretch] | None = None
        found: Stretch | None = None
        while heap:
            key, _, stretch = heap[0]
            if stretch.flow.stretch is not stretch or stretch.noted != -key:
                heappop(heap)  # it is over, or another entry is its own
            elif stretch is behind:
                aside = heappop(heap)
            elif (now := self._key(stretch)) < -key:  # its slack has grown, or it was given something back
                heappop(heap)
                self._push(heap, stretch, now)
            else:
                found = stretch
                break
        if aside is not None:
            heappush(heap, aside)
        return found

    def _note(self, stretch: Stretch) -> None:
        key = self._key(stretch)
        if (
            stretch.noted is None or key > stretch.noted
        ):  # else the entry is no smaller: it is put right when it comes up
            self._push(self._heaps.setdefault(stretch.flow.class_, []), stretch, key)

    def _push(self, heap: list[tuple[int, int, Stretch]], stretch: Stretch, key: int) -> None:
        stretch.noted = key
        self._pushed += 1
        heappush(heap, (-key, self._pushed, stretch))
        if self._pushed % (_SLACK + 4 * len(self._books.flows)) == 0:
            heap[:] = [each for each in heap if each[2].flow.stretch is each[2] and each[2].noted == -each[0]]
            heapify(heap)

    def _key(self, stretch: Stretch) -> int:
        return stretch.virtual - _slack(stretch, self.figures(stretch.flow.class_))


def _slack(stretch: Stretch, figures: Figures) -> int:
    """Return (E + K D) / f, rounded up."""
    return -(-(figures.allowance(stretch.flow.peak) << _BITS) // stretch.weight)
