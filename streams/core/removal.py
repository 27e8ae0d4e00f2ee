"""What becomes of the runs of a tenant that a closed policy no longer names, if the policy says `reject`.

Those that wait are rejected, oldest first, as many in a step as may end by themselves (see `expiry`); till then the
tenant is barred, as if it was paused. What is in flight runs to its end and is charged; if it comes back it is rejected
too. If the tenant is named again meanwhile, what is left goes on at its place.
Under `serve`, the default, nothing of this happens: who is no longer named is served to the end by the `[default]`
rules, and only new requests are refused.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from streams.core import counts, reasons
from streams.core.endings import drop
from streams.core.runs import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.core.runs import Run
    from streams.core.state import State

_LOOK: Final = 2_000  # waiting runs that are gathered at once: passing over those in flight, and gone, costs time


def find_removed(state: State) -> None:
    """Note whose waiting runs are to be rejected: after a new policy, and after a load. O(tenants)."""
    names = sorted(filter(state.policy.policy.removes, state.tenants))  # an order that a load keeps
    state.removed.clear()
    state.removed.extend(tenant for tenant in map(state.tenants.__getitem__, names) if tenant.queued_runs)


def reject_removed(state: State) -> Iterator[None]:
    """Reject the waiting runs of removed tenants, one at a time."""
    while state.removed:
        tenant = state.removed[0]
        waiting = (run for run in tenant.runs.values() if run.state is not RunState.IN_FLIGHT)
        for run in list(islice(waiting, _LOOK)):
            drop(state, run)
            say_removed(state, run)
            state.refresh(tenant)
            yield
        if not tenant.queued_runs:
            state.removed.popleft()


def say_removed(state: State, run: Run) -> None:
    """Tell the producer of a run that is dropped why."""
    detail = f"tenant {run.tenant!r} is no longer in policy {state.policy.policy.name!r}"
    state.reject(run, reasons.UNKNOWN_TENANT, detail, limit=None, value=None)
    state.out.counts[counts.REMOVED] += 1
