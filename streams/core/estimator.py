"""What a run will cost: the mean of what that tenant's workflow has cost, until it has cost something else.

The charge is the mean, not a high quantile: over many runs it is then right, and what is wrong about one run is
settled when it ends. A (tenant, workflow) without much history leans on a prior: the workflow's mean over all
tenants of the shard, else the tenant's over its workflows, else the class's default; the prior weighs as much
as `prior_runs` runs. Older runs fade: the mean follows about the last `decay_runs`.

Fixed point, `tokens << 16`, integers only: the same history gives the same estimate on any machine.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from streams.core.ratios import error_quantile
from streams.core.records import HISTORY, HistoryRecord, Key, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.core.inputs import Submit
    from streams.core.policy import Estimates
    from streams.core.records import FlightRecord

FP_BITS: Final = 16
_FIELDS: Final = fields_of(HistoryRecord)
_ONE: Final = 1 << FP_BITS
_HALF: Final = _ONE >> 1


def follow(mean_fp: int, sample_fp: int, count: int, decay: int) -> int:
    """Move a decayed mean towards its `count`-th sample: the plain mean of the first `decay`, then fading."""
    return mean_fp + (sample_fp - mean_fp) // min(count, decay)


class _Mean:
    """Sum and number of the means below it: a mean of means that can be rebuilt exactly from the records."""

    __slots__ = ("number", "sum_fp")

    def __init__(self) -> None:
        self.sum_fp = 0
        self.number = 0


class History(HistoryRecord):
    """The history of a (tenant, workflow). A `HistoryRecord` itself, so that it can be written as a row as it is."""

    __slots__ = ("key", "of_tenant", "of_workflow")

    def __init__(self, record: HistoryRecord, of_workflow: _Mean, of_tenant: _Mean) -> None:
        """Adopt a record and count in the means above it."""
        super().__init__(*_FIELDS(record))
        self.key: Key = (HISTORY, record.tenant, record.workflow)
        self.of_workflow = of_workflow
        self.of_tenant = of_tenant
        for mean in (of_workflow, of_tenant):
            mean.sum_fp += record.mean_fp
            mean.number += 1

    def follow(self, actual: int, estimate: int, decay: int) -> None:
        """Take in one run's cost, here and in the means above."""
        self.count += 1
        change_fp = self.mean_fp
        self.mean_fp = follow(change_fp, actual << FP_BITS, self.count, decay)
        change_fp = self.mean_fp - change_fp
        self.of_workflow.sum_fp += change_fp
        self.of_tenant.sum_fp += change_fp
        self.error_fp = follow(self.error_fp, abs(actual - estimate) << FP_BITS, self.count, decay)


class Estimator:
    """All histories of a shard."""

    __slots__ = ("_of_tenant", "_of_workflow", "histories")

    def __init__(self, histories: Iterable[HistoryRecord] = ()) -> None:
        """Begin with the histories given."""
        self.histories: dict[tuple[str, str], History] = {}
        self._of_workflow: dict[str, _Mean] = {}
        self._of_tenant: dict[str, _Mean] = {}
        for history in histories:
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
            if hint is not None and rules.source == "max":
                tokens = max(tokens, hint)
        if submit.max_tokens is not None:
            tokens = min(tokens, submit.max_tokens)
        return max(tokens, rules.min_charge)

    def learn(self, flight: FlightRecord, actual: int, *, step: int, decay: int) -> History:
        """Take in what a run has cost; return the changed row."""
        history = self.histories.get((flight.tenant, flight.workflow))
        if history is None:
            history = self._add(HistoryRecord(tenant=flight.tenant, workflow=flight.workflow))
        history.last_use = step
        history.follow(actual, flight.estimate, decay)
        return history

    def errors_of(self, tenant: str) -> tuple[int, int] | None:
        """Return the median and the 90th percentile of |actual - estimate| / estimate over a tenant's last runs.

        In parts per million of the estimate: 0 is right, 3,000,000 a run that cost four times its estimate. A run
        within an eighth of its estimate counts as right, see `ratios`. None: no run of the tenant is remembered.
        """
        counts: Counter[int] = Counter()
        for history in self.histories.values():
            if history.tenant == tenant:
                counts.update(history.ratios)
        return (error_quantile(counts, 50), error_quantile(counts, 90)) if counts else None

    def _add(self, record: HistoryRecord) -> History:
        means = (
            self._of_workflow.setdefault(record.workflow, _Mean()),
            self._of_tenant.setdefault(record.tenant, _Mean()),
        )
        history = self.histories[record.tenant, record.workflow] = History(record, *means)
        return history

    def _from_history(self, tenant: str, workflow: str, default: int, prior_runs: int) -> int:
        history = self.histories.get((tenant, workflow))
        if history is None:
            return (self._prior_fp(tenant, workflow, default) + _HALF) >> FP_BITS
        if history.count >= prior_runs << 8:  # the prior weighs less than 1/256
            return (history.mean_fp + _HALF) >> FP_BITS
        prior_fp = self._prior_fp(tenant, workflow, default)
        blend_fp = (prior_fp * prior_runs + history.mean_fp * history.count) // (prior_runs + history.count)
        return (blend_fp + _HALF) >> FP_BITS

    def _prior_fp(self, tenant: str, workflow: str, default: int) -> int:
        for mean in (self._of_workflow.get(workflow), self._of_tenant.get(tenant)):
            if mean is not None:
                return mean.sum_fp // mean.number
        return default << FP_BITS
