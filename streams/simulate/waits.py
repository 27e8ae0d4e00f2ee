"""How long runs waited, per tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from streams.simulate.pool import Served


class Waits(NamedTuple):
    """Waits of one tenant in ms, from the request to the beginning of the work."""

    runs: int
    first: int  # of the run it filed first
    p50: int
    p95: int
    longest: int


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the smallest value that at least `percent` of all do not exceed (nearest rank). `ordered` ascends."""
    if not ordered or not 0 < percent <= 100:  # noqa: PLR2004 - a percentage
        raise ValueError(f"percentile {percent} of {len(ordered)} values")
    return ordered[-(-len(ordered) * percent // 100) - 1]


def waits(served: Iterable[Served]) -> dict[str, Waits]:
    """Return the waits of each tenant, tenants in the order of their first arrival."""
    runs: dict[str, list[Served]] = defaultdict(list)
    for run in sorted(served, key=lambda each: (each.arrival.at_ms, each.arrival.run_id)):
        runs[run.arrival.tenant].append(run)
    found = {}
    for tenant, own in runs.items():
        ordered = sorted(run.wait_ms for run in own)
        found[tenant] = Waits(len(own), own[0].wait_ms, percentile(ordered, 50), percentile(ordered, 95), ordered[-1])
    return found


def overall(served: Iterable[Served]) -> Waits | None:
    """Return the waits of all runs together; None if there are none."""
    return next(iter(waits(run._replace(arrival=run.arrival._replace(tenant="")) for run in served).values()), None)
