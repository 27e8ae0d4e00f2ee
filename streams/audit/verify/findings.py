"""What was found wrong, and how much was looked at."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

# The checks, in the order of a report, and what each holds against what.
CHECKS: Final = {
    "chain": "each journal record's digest of the one before it, and the positions row's of the last",
    "steps": "step numbers without a gap; epochs and times that never go back; takeovers where the epoch changes",
    "inputs": "the ranges of inputs, one after the other, and every request in them answered",
    "policies": "the journal's copies of the policies, and the policy topic as compaction left it; in force in time",
    "dispatches": "the dispatch topic and the journal's decisions and revocations, and the requests they come from",
    "refusals": "the rejected topic and the journal's refusals, and the records that cannot be used",
    "forwards": "records of another shard's tenant, and their copies on the right partition",
    "runs": "attempts 1, 2, 3, ... of runs that were queued, in order of arrival, each settled before the next",
    "settlements": "what attempts are settled at, and what their workers have reported",
    "leases": "attempts given up, and the leases they had",
    "accounts": "rows of the state topic, per tenant and class: charged = spent + in flight",
    "deficits": "each deficit and the one before it: what was charged, given back, and earned in the rounds between",
    "window": "what is in flight, and the window; of tenants, and their caps",
    "limits": "refusals, and the limit that each names; what was let in, and the limits it had to pass",
    "counts": "the counts of a step, and what it lists",
    "bound": "the gap between tenants that stay backlogged, and the bound on it",
    "shares": "what tenants that stay backlogged were given, and their part of it by weight",
    "rows": "the rows of the state topic, and what the journal adds up to",
    "checkpoints": "their rows, and the hash that the journal gives for their step",
}

MOST: Final = 20  # of one check in one shard: what follows from one false record may be long


class Problem(NamedTuple):
    """One thing that is wrong, and where."""

    check: str  # one of `CHECKS`
    shard: int | None  # None: of a record that does not say
    step: int | None  # None: of no step
    topic: str  # without prefix
    offset: int | None  # of the record in the shard's partition of the topic, or `partition`'s; None: no single record
    sentence: str  # with both sides
    partition: int | None = None  # where it is not the shard's


class Span(NamedTuple):
    """The steps of a shard's journal that were followed."""

    first: int
    last: int | None  # None: there are no others after them

    def __contains__(self, step: object) -> bool:
        """Whether the journal would have a step, had it been."""
        return isinstance(step, int) and self.first <= step and (self.last is None or step <= self.last)


class Findings:
    """Collects problems, at most `MOST` of a kind in a shard; counts the rest."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.counted: Counter[tuple[str, int | None]] = Counter()  # by check and shard, all of them
        self.looked_at: Counter[str] = Counter()

    def add(
        self,
        check: str,
        shard: int | None,
        sentence: str,
        *,
        step: int | None = None,
        topic: str = "journal",
        offset: int | None = None,
        partition: int | None = None,
    ) -> None:
        """Note a problem."""
        assert check in CHECKS, check
        self.counted[check, shard] += 1
        if self.counted[check, shard] <= MOST:
            self.problems.append(Problem(check, shard, step, topic, offset, sentence, partition))

    @property
    def total(self) -> int:
        """How many there are, those that are not kept included."""
        return self.counted.total()
