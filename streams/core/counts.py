"""The names of what a step counts (`Effects.counts`)."""

from __future__ import annotations

from typing import Final

ACCEPTED: Final = "accepted"
REFUSED: Final = "refused"  # each also counted as refused.<reason>
DISPATCHED: Final = "dispatched"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"  # the worker said that retrying will not help
RETRIED: Final = "retried"
RETURNED: Final = "returned"
LOST: Final = "lost"  # leases that ran out
DEAD_LETTERED: Final = "dead_lettered"
REMOVED: Final = "removed"  # runs of tenants that a closed policy no longer names
DROPPED: Final = "dropped"  # runs that had been accepted and gave way, the backlog being full
UNDELIVERABLE: Final = "undeliverable"  # runs that had been accepted and that no topic takes any more
EXPIRED: Final = "expired"
CANCELLED: Final = "cancelled"
REVOKED: Final = "revoked"
LATE: Final = "late"  # reports on attempts that were given up but are still known: charged once
UNKNOWN: Final = "unknown"  # reports on attempts nobody knows (any more): dropped
UNREPORTED: Final = "unreported"  # settled at the estimate since the worker named no usage

# How a run that was accepted may end: each is counted once, by the step that ends it.
ENDS: Final = (SUCCEEDED, FAILED, CANCELLED, EXPIRED, DEAD_LETTERED, DROPPED, REMOVED, UNDELIVERABLE)
