"""The ring rules by plain sweep: every visit of every round is walked, over lists. Slow, simple, independent.

Written from the stated rules, not from the code: deficits here are what they are now, never worked out later.
The one short cut: after a whole round in which nobody was served, rounds in which nobody can be served are
booked at once (all weights and heads stand still meanwhile).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from streams.core.policy import Policy
from tests.property.naive_classes import EMPTY, GOING, WAITING, NaiveClasses


@dataclass
class Run:
    tenant: str
    class_: str
    run_id: str
    position: int
    cost: int
    charged: int = 0  # of the attempt in flight
    class_pays: bool = False
    ended: bool = False  # only its attempt is still in flight


@dataclass
class Flow:
    """A (class, tenant). Its place is its index in the sweep's list."""

    tenant: str
    queue: list[Run] = field(default_factory=list)  # by position
    deficit: int = 0
    listed: bool = False  # has had work since it last ran empty
    owes_visit: bool = False  # its cap broke a visit off: the next one earns nothing
    active: bool = False  # it may go, as of the last look
    came: int = 0  # the round it came in: not visited in that one
    now: int | None = None  # what it earns in the round under way, if that is not its rate


@dataclass
class Sweep:
    """A class: a cursor going round over the flows."""

    flows: list[Flow] = field(default_factory=list)
    round: int = 1
    cursor: int = -1
    visiting: bool = False


@dataclass(frozen=True)
class Served:
    run_id: str
    tenant: str
    class_: str
    round: int
    before: int
    after: int


class NaiveScheduler:
    """All classes over one window. Call an event, then `fill`."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.sweeps: dict[str, Sweep] = {class_.name: Sweep() for class_ in policy.classes}
        self.in_flight: dict[str, Run] = {}
        self.classes = NaiveClasses(policy)

    # Events.

    def set_policy(self, policy: Policy) -> None:
        self.policy = policy
        self.classes.set_policy(policy, {name for name, sweep in self.sweeps.items() if sweep.flows})
        self.sweeps = {class_.name: self.sweeps.get(class_.name, Sweep()) for class_ in policy.classes}
        for sweep in self.sweeps.values():
            for flow in sweep.flows:
                flow.now = None
        self._look()

    def submit(self, run: Run) -> None:
        sweep = self.sweeps[run.class_]
        if not any(flow.tenant == run.tenant for flow in sweep.flows):
            # A newcomer begins with the next round, unless this one has not begun.
            sweep.flows.append(Flow(run.tenant, came=sweep.round if sweep.cursor >= 0 else 0))
        self._queue(run)

    def cancel(self, run: Run) -> None:
        run.ended = True
        flow = self._flow(run)
        if run in flow.queue:
            flow.queue.remove(run)
        self._look()

    def own_up(self, run: Run, tokens: int) -> None:
        excess = max(0, tokens - run.charged)
        run.charged += excess
        self._correct(run, excess)
        self._look()

    def end(self, run: Run, actual: int, *, back: bool = False) -> None:
        """End the attempt in flight at its true cost; `back`: the run goes to its old place."""
        del self.in_flight[run.run_id]
        self._correct(run, actual - run.charged)
        if back and not run.ended:
            self._queue(run)
        self._look()

    # The sweep.

    def fill(self) -> list[Served]:
        served: list[Served] = []
        self.classes.welcome()
        while self.policy.window.runs is None or len(self.in_flight) < self.policy.window.runs:
            turn = self.classes.choose(self._next_cost)
            if turn is None:
                break
            class_, pays = turn
            sweep = self.sweeps[class_]
            self._walk(sweep)
            flow = sweep.flows[sweep.cursor]
            run = flow.queue[0]
            limit = self.policy.window.tokens
            held = sum(each.cost for each in self.in_flight.values())
            if limit is not None and self.in_flight and held + run.cost > limit:
                break  # it waits for room, and all wait behind it
            self.classes.charge(class_, run.cost, pays=pays)
            del flow.queue[0]
            before = flow.deficit
            flow.deficit -= run.cost
            run.charged, run.class_pays = run.cost, pays
            self.in_flight[run.run_id] = run
            served.append(Served(run.run_id, run.tenant, class_, sweep.round, before, flow.deficit))
            self._look()
        return served

    def _next_cost(self, class_: str) -> int:
        """Look ahead on a copy: nobody is visited before it is the turn of its class."""
        sweep = self.sweeps[class_]
        sweep = replace(sweep, flows=[replace(flow) for flow in sweep.flows])  # walking takes nothing from a queue
        self._walk(sweep)
        return sweep.flows[sweep.cursor].queue[0].cost

    def _correct(self, run: Run, tokens: int) -> None:
        """Book what a run has cost beyond what it was charged before."""
        self._flow(run).deficit -= tokens
        self.classes.correct(run.class_, tokens, pays=run.class_pays)

    def _walk(self, sweep: Sweep) -> None:
        """Go on to the next visit that can serve something. Somebody must be able to go."""
        if sweep.visiting:
            return
        in_vain = 0
        while True:
            if in_vain >= len(sweep.flows) and all(flow.now is None for flow in sweep.flows):
                self._skip(sweep)
            sweep.cursor += 1
            if sweep.cursor == len(sweep.flows):
                sweep.cursor = 0
                sweep.round += 1
                for flow in sweep.flows:
                    flow.now = None
            flow = sweep.flows[sweep.cursor]
            self._visit(sweep, flow, 1)
            if self._may_go(flow) and flow.deficit >= flow.queue[0].cost:
                sweep.visiting = True
                return
            in_vain += 1

    def _visit(self, sweep: Sweep, flow: Flow, rounds: int) -> None:
        if flow.came == sweep.round:
            return
        tokens = rounds * self._rate(sweep, flow) if flow.now is None else flow.now
        if not flow.queue:
            flow.deficit = min(0, flow.deficit + tokens) if flow.deficit < 0 else max(0, flow.deficit - tokens)
        elif self._may_go(flow):
            if flow.owes_visit:
                flow.owes_visit = False
            else:
                flow.deficit += tokens

    def _skip(self, sweep: Sweep) -> None:
        """Book the rounds in which nobody's deficit reaches the head, whatever it is by now."""
        goers = [flow for flow in sweep.flows if self._may_go(flow)]
        assert not any(flow.owes_visit for flow in goers), "a whole round has passed"
        rounds = min((flow.queue[0].cost - flow.deficit - 1) // self._rate(sweep, flow) for flow in goers)
        if rounds > 0:
            sweep.round += rounds
            for flow in sweep.flows:
                self._visit(sweep, flow, rounds)

    # What holds after any event.

    def _look(self) -> None:
        for sweep in self.sweeps.values():
            for flow in sweep.flows:
                if flow.queue:
                    flow.listed = True
                elif flow.listed:  # it leaves: no credit is kept, all debt is
                    flow.listed = flow.owes_visit = False
                    flow.deficit = min(0, flow.deficit)
            if sweep.visiting:
                flow = sweep.flows[sweep.cursor]
                affordable = bool(flow.queue) and flow.deficit >= flow.queue[0].cost
                sweep.visiting = affordable and self._may_go(flow)
                flow.owes_visit = affordable and not sweep.visiting
            self._look_at_groups(sweep)
        self.classes.look({name: self._state(sweep) for name, sweep in self.sweeps.items()})

    def _state(self, sweep: Sweep) -> str:
        if not any(flow.queue for flow in sweep.flows):
            return EMPTY
        return GOING if any(self._may_go(flow) for flow in sweep.flows) else WAITING

    def _look_at_groups(self, sweep: Sweep) -> None:
        """If members of a group come or go, that binds from the next round on: in this one all earn as before."""
        going = [self._may_go(flow) for flow in sweep.flows]
        before = [self._rate(sweep, flow) if flow.active else 0 for flow in sweep.flows]
        for flow, active in zip(sweep.flows, going, strict=True):
            flow.active = active
        for flow, rate in zip(sweep.flows, before, strict=True):
            if self.policy.rules_for(flow.tenant).group is None:
                continue
            if not flow.active:
                flow.now = None
            elif flow.now is None and self._rate(sweep, flow) != rate:
                flow.now = rate

    def _queue(self, run: Run) -> None:
        queue = self._flow(run).queue
        queue.append(run)
        queue.sort(key=lambda each: each.position)
        self._look()

    def _flow(self, run: Run) -> Flow:
        return next(flow for flow in self.sweeps[run.class_].flows if flow.tenant == run.tenant)

    def _rate(self, sweep: Sweep, flow: Flow) -> int:
        """Return what it earns a round: members of a group divide the group's quantum while they are active."""
        rules = self.policy.rules_for(flow.tenant)
        if rules.group is None:
            return self.policy.quantum * rules.weight
        if not flow.active:
            return 0
        members = (self.policy.rules_for(each.tenant) for each in sweep.flows if each.active)
        weights = sum(member.weight for member in members if member.group == rules.group)
        return max(1, self.policy.quantum * self.policy.groups[rules.group] * rules.weight // weights)

    def _may_go(self, flow: Flow) -> bool:
        """It has work, and its tenant's own caps let the head start."""
        if not flow.queue:
            return False
        rules = self.policy.rules_for(flow.tenant)
        own = [run.cost for run in self.in_flight.values() if run.tenant == flow.tenant]
        if rules.paused or (rules.max_runs_in_flight is not None and len(own) >= rules.max_runs_in_flight):
            return False
        limit = rules.max_tokens_in_flight
        return limit is None or not own or sum(own) + flow.queue[0].cost <= limit
