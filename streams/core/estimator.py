"""What a run will cost: the mean of what that tenant's workflow has cost, until it has cost something else.

The charge is the mean, not a high quantile: over many runs it is then right, and what is wrong about one run is
settled when it ends. A (tenant, workflow) without much history leans on a prior: the workflow's mean over all
tenants of the shard, else the tenant's over its workflows, else the class's default; the prior weighs as much
as `prior_runs` runs. Older runs fade: the mean follows about the last `decay_runs`.

How far off the estimates were is kept beside the mean, for people: a sketch of actual / estimate (`ratios`) of the
last 128 to 255 runs.

Memory is bounded: a tenant has at most `memory.tenant_histories`, the shard `memory.histories`; above that the least
recently used are forgotten, a tenant's own first, so that one who invents workflows forgets its own. What counts
as use is a run that has ended with its cost, not a request: requests are free.

Fixed point, `tokens << 16`, integers only: the same history gives the same estimate on any machine.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, TypeVar

from streams.core.ratios import bucket_of, error_quantile, halved
from streams.core.records import HISTORY, HistoryRecord, Key, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.core.inputs import Submit
    from streams.core.policy import Estimates, Policy
    from streams.core.records import FlightRecord, Record

FP_BITS: Final = 16
MAX_COUNTED: Final = 256  # runs in a sketch; when it is full all its counts are halved
# Histories above a limit that are forgotten for one run that ends, at most. One run brings at most one new history,
# so two let the number sink to a limit that has been lowered, and the rows of a step stay few.
MAX_FORGOTTEN: Final = 2
_FIELDS: Final = fields_of(HistoryRecord)
_ONE: Final = 1 << FP_BITS
_HALF: Final = _ONE >> 1

Name = TypeVar("Name")


def follow(mean_fp: int, sample_fp: int, runs: int) -> int:
    """Move a mean towards a sample, as the last of so many `runs`: beyond that, older ones fade."""
    return mean_fp + (sample_fp - mean_fp) // runs


class _Mean:
    """Sum and number of the means below it: a mean of means that can be rebuilt exactly from the records."""

    __slots__ = ("number", "sum_fp")

    def __init__(self) -> None:
        self.sum_fp = 0
        self.number = 0

    def mean_fp(self) -> int:
        return self.sum_fp // self.number


class _OfTenant(_Mean):
    """The histories of a tenant by workflow, the least recently used first, and their mean.

    A plain dictionary: an ordered one takes 200 bytes more of each tenant. What was moved or forgotten leaves holes at
    its front, at most two for each history a tenant may have; looking for the first one passes over them.
    """

    __slots__ = ("histories",)

    def __init__(self) -> None:
        super().__init__()
        self.histories: dict[str, History] = {}

    def move_to_end(self, history: History) -> None:
        del self.histories[history.workflow]
        self.histories[history.workflow] = history


class History(HistoryRecord):
    """The history of a (tenant, workflow). A `HistoryRecord` itself, so that it can be written as a row as it is."""

    __slots__ = ("counted", "key", "of_tenant", "of_workflow")

    def __init__(self, record: HistoryRecord, of_workflow: _Mean, of_tenant: _OfTenant) -> None:
        """Adopt a record and count it in the means above it."""
        super().__init__(*_FIELDS(record))
        self.key: Key = (HISTORY, record.tenant, record.workflow)
        self.of_workflow = of_workflow
        self.of_tenant = of_tenant
        self.counted = sum(self.ratios.values())
        for mean in (of_workflow, of_tenant):
            mean.sum_fp += record.mean_fp
            mean.number += 1

    def follow(self, actual: int, estimate: int, decay: int) -> None:
        """Take in one run's cost, here and in the means above."""
        self.count += 1
        runs = self.count if self.count < decay else decay  # the plain mean of the first ones
        mean_fp = self.mean_fp
        self.mean_fp = follow(mean_fp, actual << FP_BITS, runs)
        change_fp = self.mean_fp - mean_fp
        self.of_workflow.sum_fp += change_fp
        self.of_tenant.sum_fp += change_fp
        bucket, ratios = bucket_of(actual, estimate), self.ratios
        ratios[bucket] = ratios.get(bucket, 0) + 1
        self.counted += 1
        if self.counted >= MAX_COUNTED:
            self.ratios = halved(ratios)
            self.counted //= 2

    def leave(self) -> None:
        """Take it out of the means above."""
        for mean in (self.of_workflow, self.of_tenant):
            mean.sum_fp -= self.mean_fp
            mean.number -= 1


class Estimator:
    """All histories of a shard."""

    __slots__ = ("histories", "tenants", "workflows")

    def __init__(self, histories: Iterable[HistoryRecord] = ()) -> None:
        """Begin with the histories given."""
        self.histories: OrderedDict[Key, History] = OrderedDict()  # the least recently used first
        self.tenants: dict[str, _OfTenant] = {}  # those with a history
        self.workflows: dict[str, _Mean] = {}  # the same
        for history in sorted(histories, key=lambda each: each.last_use):
            self._add(history)

    def estimate(self, submit: Submit, default: int, rules: Estimates) -> int:
        """Return the tokens to charge for a run: >= `rules.min_charge`, and <= its `max_tokens` if stated.

        `rules.source` decides: `hint` takes the request's own estimate if it has one, `history` ours,
        `max` the larger of the two.
        """
        hint = submit.estimate
        if hint is not None and rules.source == "hint":
            tokens = hint
        else:
            tokens = self._from_history(submit.tenant, submit.workflow, default, rules.prior_runs)
            if hint is not None and hint > tokens and rules.source == "max":
                tokens = hint
        if submit.max_tokens is not None:
            tokens = min(tokens, submit.max_tokens)
        least = rules.min_charge
        return tokens if tokens > least else least

    def learn(
        self, flight: FlightRecord, actual: int, *, use: int, policy: Policy, changed: dict[Key, Record | None]
    ) -> None:
        """Take in what a run has cost, in tokens, and forget what has become too much (`policy.memory`). O(1).

        The rows that change are named in `changed`. `use` must be larger than at any time before: it is the order in
        which histories are forgotten, and survives with them.
        """
        tenant = self.tenants.get(flight.tenant)
        history = tenant.histories.get(flight.workflow) if tenant is not None else None
        if history is None:
            history = self._add(HistoryRecord(tenant=flight.tenant, workflow=flight.workflow))
        else:
            self.histories.move_to_end(history.key)
            if history.of_tenant.number > 1:
                history.of_tenant.move_to_end(history)
        history.last_use = use
        history.follow(actual, flight.estimate, policy.estimates.decay_runs)
        changed[history.key] = history
        memory = policy.memory
        if len(history.of_tenant.histories) > memory.tenant_histories:
            self._forget(history.of_tenant.histories, memory.tenant_histories, changed)
        if len(self.histories) > memory.histories:
            self._forget(self.histories, memory.histories, changed)

    def errors_of(self, tenant: str) -> tuple[int, int] | None:
        """Return the median and the 90th percentile of |actual - estimate| / estimate over a tenant's last runs.

        In parts per million of the estimate: 0 is right, 3,000,000 a run that cost four times its estimate. A run
        that costs at most an eighth more or a sixteenth less counts as right, see `ratios`. Each workflow weighs as
        many runs as its sketch holds. None: no run of the tenant is remembered. O(histories of the tenant).
        """
        known = self.tenants.get(tenant)
        counts: Counter[int] = Counter()
        for history in known.histories.values() if known is not None else ():
            counts.update(history.ratios)
        return (error_quantile(counts, 50), error_quantile(counts, 90)) if counts else None

    def _add(self, record: HistoryRecord) -> History:
        of_workflow = self.workflows.setdefault(record.workflow, _Mean())
        of_tenant = self.tenants.get(record.tenant)
        if of_tenant is None:
            of_tenant = self.tenants[record.tenant] = _OfTenant()
        history = History(record, of_workflow, of_tenant)
        self.histories[history.key] = of_tenant.histories[record.workflow] = history
        return history

    def _forget(self, histories: dict[Name, History], limit: int, changed: dict[Key, Record | None]) -> None:
        for _ in range(min(len(histories) - limit, MAX_FORGOTTEN)):
            history = next(iter(histories.values()))
            del self.histories[history.key], history.of_tenant.histories[history.workflow]
            history.leave()
            if not history.of_workflow.number:
                del self.workflows[history.workflow]
            if not history.of_tenant.number:
                del self.tenants[history.tenant]
            changed[history.key] = None

    def _from_history(self, tenant: str, workflow: str, default: int, prior_runs: int) -> int:
        of_tenant = self.tenants.get(tenant)
        history = of_tenant.histories.get(workflow) if of_tenant is not None else None
        if history is None:
            mean = self.workflows.get(workflow) or of_tenant
            return (mean.mean_fp() + _HALF) >> FP_BITS if mean is not None else default
        count = history.count
        if count >= prior_runs << 8:  # the prior weighs less than 1/256
            return (history.mean_fp + _HALF) >> FP_BITS
        blend_fp = (history.of_workflow.mean_fp() * prior_runs + history.mean_fp * count) // (prior_runs + count)
        return (blend_fp + _HALF) >> FP_BITS
