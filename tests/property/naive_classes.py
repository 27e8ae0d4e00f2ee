"""The rules between classes in fractions: a virtual time for each class, and a clock. Slow, simple, independent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction

from streams.core.policy import Policy

EMPTY, WAITING, GOING = "empty", "waiting", "going"  # nothing queued; nobody may go; somebody may


class NaiveClasses:
    """Whose turn it is among the classes of a policy, all of which it names."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.clock = Fraction(0)
        self.tags: dict[str, Fraction] = {}
        self.states: dict[str, str] = {}  # as of the last look
        self.came_back: set[str] = set()

    def set_policy(self, policy: Policy, used: Collection[str]) -> None:
        """Put a policy in force; `used`: the classes that have ever had a run."""
        mode, known = self.policy.between_classes, self.shares()
        self.policy = policy
        if mode != policy.between_classes:
            known = {}
        for name in self.shares():
            if name not in known:
                self.came_back.discard(name)
                if name in used:
                    self.tags[name] = self.clock

    def shares(self) -> dict[str, int]:
        """Return what each class is promised; empty: they go in order."""
        if len(self.policy.classes) == 1:
            return {}
        if self.policy.between_classes == "shares":
            return {each.name: each.weight for each in self.policy.classes}
        return {each.name: each.min_share for each in self.policy.classes if each.min_share > 0}

    def look(self, states: Mapping[str, str]) -> None:
        """Note which classes have had nothing queued till now."""
        self.came_back |= {
            name for name, state in states.items() if state != EMPTY and self.states.get(name, EMPTY) == EMPTY
        }
        self.states = dict(states)

    def welcome(self) -> None:
        """Who comes back doesn't bring credit along."""
        for name in self.shares():
            if name in self.came_back:
                self.tags[name] = max(self.tag(name), self.clock)
                self.came_back.discard(name)

    def choose(self, cost_of: Callable[[str], int]) -> tuple[str, bool] | None:
        """Return the class whose turn it is and whether its share pays; `cost_of` tells what its next run costs."""
        going = [each.name for each in self.policy.classes if self.states.get(each.name) == GOING]
        if not going:
            return None
        shares = self.shares()
        if shares and self.policy.between_classes == "shares":
            return min(going, key=lambda name: (self.tag(name), going.index(name))), True
        for name in going:
            if name in shares:
                cost = cost_of(name)
                if self.tag(name) + Fraction(cost, shares[name]) <= self.clock + Fraction(cost, 100):
                    return name, True
        return going[0], False

    def charge(self, name: str, tokens: int, *, pays: bool) -> None:
        """Book the estimate of a run of the class that was chosen."""
        if self.policy.between_classes == "shares" and self.shares():
            self._move(max(self.clock, self.tag(name)), name)
        self.correct(name, tokens, pays=pays)

    def correct(self, name: str, tokens: int, *, pays: bool) -> None:
        """Book what a run has cost beyond what was booked before."""
        shares, by_weight = self.shares(), self.policy.between_classes == "shares"
        if shares and not by_weight:
            self._move(self.clock + Fraction(tokens, 100), name)
        if name in shares:
            self.tags[name] = self.tag(name) + Fraction(tokens, shares[name] if pays or by_weight else 100)

    def tag(self, name: str) -> Fraction:
        return self.tags.get(name, Fraction(0))

    def _move(self, clock: Fraction, served: str) -> None:
        for name in self.shares():
            if self.states.get(name) == WAITING and name != served:
                self.tags[name] = self.tag(name) + clock - self.clock
        self.clock = clock
