"""Why a run is refused, dropped or given up: the closed list of machine-readable reasons."""

from __future__ import annotations

from typing import Final

# Refused at admission; the first, `OVERLOADED` and `TOO_LARGE` also later. The producer may act on limit, value and
# retry_after.
UNKNOWN_TENANT: Final = "unknown_tenant"  # the policy is closed and does not name the tenant (any more, see `removal`)
UNKNOWN_CLASS: Final = "unknown_class"
TENANT_PAUSED: Final = "tenant_paused"
QUEUE_FULL: Final = "queue_full"  # the tenant's own limit, in runs or tokens
OVERLOADED: Final = "overloaded"  # a limit of the shard: queued runs, bytes, known tenants; or it gave way to others
# Estimate above the largest run allowed, or payload above all that a shard may hold, or above what the topics take; the
# last also later, if a topic takes less than it did.
TOO_LARGE: Final = "too_large"
DUPLICATE: Final = "duplicate"  # run_id is queued, in flight or lately ended
DEADLINE_PASSED: Final = "deadline_passed"

# Ended after admission.
EXPIRED: Final = "expired"  # still queued at its deadline
DEAD_LETTERED: Final = "dead_lettered"  # attempts used up

# Refused before the core sees it (`streams.wire`).
INVALID: Final = "invalid"
NOT_YOUR_TENANT: Final = "not_your_tenant"  # it stands on the intake topic of another tenant (`streams.gate`)
