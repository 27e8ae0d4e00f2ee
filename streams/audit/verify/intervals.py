"""Shares: what tenants were given in each interval of time, and their part of it by weight.

Of an interval, in a class, *contenders* are the plain tenants (see `stretch`) that had something ready at every moment
of it. What they got together, at true cost, is divided by their weights: that is what each was stated. From the bound
on each pair follows how far off each may be, with f for weights and F for their sum:

    |S_i - f_i / F x sum S|  =  f_i |sum_j f_j / F (S_i / f_i - S_j / f_j)|  <=  f_i sum_j f_j / F B_ij

    B_ij  =  Q + (E + K_i D) / f_i + (E + K_j D) / f_j

and another Q if one of the two is new: everybody else may be visited twice before its first visit (`streams.core`).
Who has had no decision yet since it has something ready counts as new: whether its place was forgotten is not known.

Nothing is guessed: who is further off was not served by its weight. An interval is judged once it is known what its
attempts have cost, and what the heads cost that its contenders waited with at its end.

For a table, the others have their say too: whoever was no contender asked for what it got (weighted max-min).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from streams.audit.verify.stretch import Figures
from streams.errors import visible
from streams.simulate.oracle import max_min

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.audit.verify.books import Books
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.subjects import Attempt, Flow, Run

_PAIR: Final = 2


@dataclass(slots=True)
class Contender:
    """A flow that had something ready all the time."""

    flow: Flow
    weight: int
    peak: int
    new: bool  # its first visit may have been in the interval, or is yet to come


@dataclass(slots=True, eq=False)
class Interval:
    """What a class handed out in one interval."""

    class_: str
    from_ms: int
    until_ms: int
    observed: dict[str, int] = field(default_factory=dict)  # tenant -> tokens, of what was dispatched in it
    step: int = 0  # the last one that handed something out
    open: int = 0  # attempts that are not settled yet
    closed: bool = False
    judged: bool = False
    quantum: int = 0
    figures: Figures = field(default_factory=Figures)
    contenders: dict[str, Contender] = field(default_factory=dict)
    heads: set[str] = field(default_factory=set)  # contenders of which it is not known yet what their heads cost
    weights: dict[str, int] = field(default_factory=dict)  # of the plain ones


@dataclass(slots=True)
class Share:
    """A tenant in a class, over all intervals. Tokens."""

    class_: str
    tenant: str
    weight: int  # the last one stated
    observed: int = 0
    stated: int = 0  # its weighted max-min share of what was handed out
    contended: int = 0  # intervals in which it was held to its weight
    deviation: int = 0  # in that of them in which it came nearest to what is allowed, or went above it
    allowed: int = 0


class Shares:
    """The intervals of one shard."""

    def __init__(self, books: Books, findings: Findings, length_ms: int) -> None:
        self._books: Final = books
        self._findings: Final = findings
        self._length_ms: Final = length_ms
        self._now: Final[dict[str, Interval]] = {}
        self._until_ms = 0
        self.shares: Final[dict[tuple[str, str], Share]] = {}

    def advance(self, now_ms: int) -> None:
        """Close the interval that is over, before the step that begins at `now_ms`."""
        if now_ms < self._until_ms:
            return
        for interval in self._now.values():
            self._close(interval)
        self._now.clear()
        self._until_ms = now_ms - now_ms % self._length_ms + self._length_ms

    def hand_out(self, attempt: Attempt, step: int) -> None:
        """Count an attempt in the interval under way; `decide` comes first."""
        flow = attempt.run.flow
        interval = self._now.get(flow.class_)
        if interval is None:
            begin = self._until_ms - self._length_ms
            interval = self._now[flow.class_] = Interval(flow.class_, begin, self._until_ms)
        attempt.interval = interval
        interval.step = step
        interval.open += 1
        name = flow.tenant.name
        interval.observed[name] = interval.observed.get(name, 0) + attempt.estimate

    def decide(self, flow: Flow, estimate: int) -> None:
        """Take in what the head of a flow costs."""
        for interval in flow.due:
            interval.figures.largest = max(interval.figures.largest, estimate)
            interval.heads.discard(flow.tenant.name)
            self._judge(interval)
        flow.due.clear()

    def settle(self, attempt: Attempt, actual: int) -> None:
        """Take in what an attempt has cost."""
        interval = attempt.interval
        if interval is None:
            return
        interval.open -= 1
        interval.observed[attempt.run.tenant] += actual - attempt.estimate
        interval.figures.miss(attempt.estimate, attempt.charged, actual)
        self._judge(interval)

    def rest(self, flow: Flow) -> None:
        """Take in that a flow has nothing ready: what its head would have cost will never be known."""
        for interval in flow.due:
            interval.contenders.pop(flow.tenant.name, None)
            interval.heads.discard(flow.tenant.name)
            self._judge(interval)
        flow.due.clear()

    def finish(self, cost_of: Callable[[Run], int | None]) -> None:
        """Judge what can be judged: what is in flight counts as it was estimated.

        `cost_of` says what a run that waits would be charged, so that a tenant that is served no more is judged too.
        """
        self.advance(self._until_ms)
        for flow in self._books.flows.values():
            first = flow.first()
            cost = cost_of(first) if first is not None and flow.due else None
            if cost is not None:
                self.decide(flow, cost)
            self.rest(flow)
        for attempt in self._books.flights.values():
            if attempt.interval is not None:
                attempt.interval.open -= 1
                self._judge(attempt.interval)

    def _close(self, interval: Interval) -> None:
        books = self._books
        interval.closed = True
        if books.policy is None:
            return
        interval.quantum = books.policy.quantum
        now = books.figures(interval.class_)
        interval.figures = Figures(
            max(now.largest, interval.figures.largest),
            max(now.under, interval.figures.under),
            max(now.over, interval.figures.over),
        )
        for (class_, name), flow in books.flows.items():
            if class_ != interval.class_ or not flow.tenant.plain:
                continue
            interval.weights[name] = flow.tenant.rules.weight
            if flow.ready and flow.busy_since_ms < interval.from_ms:
                new = flow.stretch is None or flow.stretch.begin_ms >= interval.from_ms
                interval.contenders[name] = Contender(flow, flow.tenant.rules.weight, flow.peak, new)
                interval.heads.add(name)
                flow.due.append(interval)
        self._judge(interval)

    def _judge(self, interval: Interval) -> None:
        if interval.judged or not interval.closed or interval.open or interval.heads:
            return
        interval.judged = True
        self._findings.looked_at["intervals"] += 1
        self._tabulate(interval)
        contenders = interval.contenders
        if len(contenders) < _PAIR:
            return
        self._findings.looked_at["intervals in which tenants contended"] += 1
        whole = sum(each.weight for each in contenders.values())
        given = sum(interval.observed.get(name, 0) for name in contenders)
        for name, each in contenders.items():
            observed = interval.observed.get(name, 0)
            allowed = _allowed(each, interval, whole)
            deviation = observed - Fraction(given * each.weight, whole)
            self._keep(interval.class_, name, deviation, allowed)
            if abs(deviation) > allowed:
                self._findings.add(
                    "shares",
                    self._books.shard,
                    f"class {visible(interval.class_)}, {interval.from_ms} to {interval.until_ms} ms: "
                    f"{visible(name)} got {observed} of {given} tokens; its weight is {each.weight} of {whole}, which "
                    f"makes {given * each.weight // whole}, and it may be off by {int(allowed)}",
                    step=interval.step,
                )

    def _tabulate(self, interval: Interval) -> None:
        """Add an interval up: what each was given, and its share by weight."""
        plain = {name: tokens for name, tokens in interval.observed.items() if name in interval.weights}
        given = sum(plain.values())
        demands = {name: given if name in interval.contenders else tokens for name, tokens in plain.items()}
        demands |= dict.fromkeys(interval.contenders.keys() - plain.keys(), given)
        stated = max_min(given, demands, interval.weights)
        for name in interval.observed.keys() | interval.contenders.keys():
            observed = interval.observed.get(name, 0)
            share = self._share(interval.class_, name)
            share.weight = interval.weights.get(name, share.weight)
            share.observed += observed
            share.stated += stated.get(name, observed)

    def _keep(self, class_: str, name: str, deviation: Fraction, allowed: Fraction) -> None:
        share = self._share(class_, name)
        share.contended += 1
        if share.allowed == 0 or abs(deviation) * share.allowed > abs(share.deviation) * allowed:
            share.deviation, share.allowed = int(deviation), max(1, int(allowed))

    def _share(self, class_: str, name: str) -> Share:
        found = self.shares.get((class_, name))
        if found is None:
            weight = self._books.tenants[name].rules.weight
            found = self.shares[class_, name] = Share(class_, name, weight)
        return found


def _allowed(one: Contender, interval: Interval, whole: int) -> Fraction:
    """Return how far off a contender may be, tokens. O(contenders)."""
    slack = Fraction(interval.figures.allowance(one.peak), one.weight)
    bounds = sum(
        each.weight * ((2 if one.new or each.new else 1) * interval.quantum + slack)
        + interval.figures.allowance(each.peak)
        for each in interval.contenders.values()
        if each is not one
    )
    return Fraction(one.weight * bounds, whole)
