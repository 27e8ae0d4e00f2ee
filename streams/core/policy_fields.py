"""The fields of a policy document, each with what it may hold. Used by `streams.core.policy_check` only.

A check takes a value as a TOML or JSON parser gives it, and returns it, or a `Wrong` with a sentence on why not.
Numbers are whole: a float, a NaN or a boolean where a number is meant is refused, whatever its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

MAX_NAME: Final = 255
# Row and journal hold 64-bit integers: quantum * weight, which is what a deficit grows by, must stay well inside.
MAX_WEIGHT: Final = 10**6
# The turn of a class is reckoned in tokens / weight, in whole units: a larger weight would be rounded away.
MAX_CLASS_WEIGHT: Final = 1_000
MAX_TOKENS: Final = 10**12  # of one run, or of a quantum
MAX_SUM: Final = 10**15  # of tokens queued or in flight
MAX_RUNS: Final = 10**9
# Of one tenant all are looked at for `status`, and the first of them is looked for past those that have left.
MAX_TENANT_HISTORIES: Final = 10_000
MAX_MS: Final = 30 * 24 * 3_600_000  # 30 days

UNLIMITED: Final = "unlimited"  # TOML has no null


class Wrong(NamedTuple):
    """Why a value is refused."""

    message: str


Check = Callable[[object], object]  # returns the value, or Wrong


def whole(low: int, high: int) -> Check:
    """Return a check for an integer from `low` to `high`, both included."""

    def check(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int):
            return Wrong("must be a whole number")
        if value < low:
            return Wrong(f"must be at least {low}")
        if value > high:
            return Wrong(f"must be at most {high}")
        return value

    return check


def limit(low: int, high: int) -> Check:
    """Return a check for an integer, or None (in TOML: "unlimited") for no limit."""
    number = whole(low, high)

    def check(value: object) -> object:
        if value is None or value == UNLIMITED:
            return None
        if isinstance(value, str):
            return Wrong(f'must be a whole number or "{UNLIMITED}"')
        return number(value)

    return check


def choice(*names: str) -> Check:
    """Return a check for one of a few words."""

    def check(value: object) -> object:
        return value if value in names else Wrong("must be one of " + ", ".join(f'"{name}"' for name in names))

    return check


def flag(value: object) -> object:
    """Check for a boolean."""
    return value if isinstance(value, bool) else Wrong("must be true or false")


def name(value: object) -> object:
    """Check for a name."""
    if not isinstance(value, str):
        return Wrong("must be text")
    if not value or len(value) > MAX_NAME:
        return Wrong(f"must be 1 to {MAX_NAME} characters long")
    return value


def optional_name(value: object) -> object:
    """Check for a name, or None."""
    return None if value is None else name(value)


POLICY: Final[Mapping[str, Check]] = {
    "name": name,
    "quantum": whole(1, MAX_TOKENS),
    "closed": flag,
    "on_removal": choice("serve", "reject"),
    "between_classes": choice("strict", "shares"),
}
WINDOW: Final[Mapping[str, Check]] = {
    "runs": limit(1, MAX_RUNS),
    "tokens": limit(1, MAX_SUM),
}
CLASS: Final[Mapping[str, Check]] = {
    "name": name,
    "default_estimate": whole(1, MAX_TOKENS),
    "weight": whole(1, MAX_CLASS_WEIGHT),
    "min_share": whole(0, 99),
}
RULES: Final[Mapping[str, Check]] = {
    "plan": optional_name,
    "group": optional_name,
    "weight": whole(1, MAX_WEIGHT),
    "max_runs_in_flight": limit(1, MAX_RUNS),
    "max_tokens_in_flight": limit(1, MAX_SUM),
    "max_queued_runs": limit(1, MAX_RUNS),
    "max_queued_tokens": limit(1, MAX_SUM),
    "paused": flag,
}
PLAN: Final[Mapping[str, Check]] = {field: check for field, check in RULES.items() if field != "plan"}
GROUP: Final[Mapping[str, Check]] = {"weight": whole(1, MAX_WEIGHT)}
LIMITS: Final[Mapping[str, Check]] = {
    "max_queued_runs": limit(1, MAX_RUNS),
    "max_queued_bytes": limit(1, MAX_SUM),
    "max_run_tokens": limit(1, MAX_TOKENS),
    "overload": choice("refuse", "drop_longest"),
}
ESTIMATES: Final[Mapping[str, Check]] = {
    "source": choice("history", "hint", "max"),
    "prior_runs": whole(0, 1_000_000),
    "decay_runs": whole(1, 1_000_000),
    "min_charge": whole(1, MAX_TOKENS),
}
LEASES: Final[Mapping[str, Check]] = {
    "lease_ms": whole(1, MAX_MS),
    "min_lease_ms": whole(1, MAX_MS),
    "max_lease_ms": whole(1, MAX_MS),
    "max_attempts": whole(1, 1_000),
    "backoff_ms": whole(0, MAX_MS),
    "max_backoff_ms": whole(0, MAX_MS),
}
MEMORY: Final[Mapping[str, Check]] = {
    "ended_ms": whole(0, MAX_MS),
    "ended_runs": whole(0, MAX_RUNS),
    "flows": whole(1, MAX_RUNS),
    "histories": whole(1, MAX_RUNS),
    "tenant_histories": whole(1, MAX_TENANT_HISTORIES),
}
