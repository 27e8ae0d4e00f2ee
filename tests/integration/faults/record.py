"""What was done to a deployment, and the table of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tests.integration.faults.plan import Fault, Plan


class Fired(NamedTuple):
    """One fault that happened."""

    fault: Fault
    target: str
    at_s: float  # since the round began
    proof: str  # what was seen of it

    def __str__(self) -> str:
        return f"{self.at_s:7.1f} s  {self.fault}: {self.target}: {self.proof}"


def missing(plan: Plan, fired: Iterable[Fired]) -> dict[Fault, int]:
    """How many of which kind were planned and did not happen."""
    return dict(Counter(plan.counts) - Counter(each.fault for each in fired))


def table(plan: Plan, fired: Iterable[Fired], result: str) -> str:
    """One round for people."""
    done = Counter(each.fault for each in fired)
    lines = [
        f"seed {plan.seed}, {plan.schedulers} scheduler(s) and one that comes and goes, intake {plan.intake}",
        f"{'fault':<28}{'planned':>8}{'fired':>8}",
        *(f"{fault:<28}{plan.counts.get(fault, 0):>8}{done[fault]:>8}" for fault in Fault),
        f"{'all':<28}{sum(plan.counts.values()):>8}{done.total():>8}",
        result,
    ]
    return "\n".join(lines)
