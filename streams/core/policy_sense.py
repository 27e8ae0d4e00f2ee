"""What the fields of a policy say together: each may be right by itself, and the policy still not be meant so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from streams.core.policy import Policy
from streams.core.policy_problems import Problem

# When a tenant gets or loses work, the rates of all in its group that have work are worked out anew.
MAX_GROUP: Final = 1_000
MAX_MIN_SHARES: Final = 99  # percent, of all classes: something is left to be given by order


def contradictions(policy: Policy) -> Iterator[Problem]:
    """Yield all that contradicts something else in the policy, would be passed over, or can't be held to."""
    if policy.window.runs is None and policy.window.tokens is None:
        yield Problem(("window",), "unlimited", "limit runs, tokens or both: else all is dispatched at once, unfairly")
    yield from _classes(policy)
    yield from _groups(policy)
    yield from _ordered("leases", policy.leases, "lease_ms", "max_lease_ms")
    yield from _ordered("leases", policy.leases, "backoff_ms", "max_backoff_ms")
    yield from _ordered("memory", policy.memory, "tenant_histories", "histories")


def _classes(policy: Policy) -> Iterator[Problem]:
    """A number that only the other way of sharing asks for would be passed over without a word."""
    strict = policy.between_classes == "strict"
    for index, each in enumerate(policy.classes):
        if strict and each.weight != 1:
            yield Problem(("classes", index, "weight"), each.weight, 'counts only with between_classes = "shares"')
        if not strict and each.min_share:
            yield Problem(
                ("classes", index, "min_share"), each.min_share, 'counts only with between_classes = "strict"'
            )
    promised = sum(each.min_share for each in policy.classes)
    if promised > MAX_MIN_SHARES:
        yield Problem(("classes",), promised, f"the min_share of all classes must be at most {MAX_MIN_SHARES} in sum")


def _groups(policy: Policy) -> Iterator[Problem]:
    if policy.default.group is not None:
        yield Problem(("default", "group"), policy.default.group, "only tenants that are named can be in a group")
    members: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    for rules in policy.tenants.values():
        if rules.group is not None:
            members[rules.group] += 1
            weights[rules.group] += rules.weight
    for group, weight in policy.groups.items():
        if members[group] > MAX_GROUP:
            yield Problem(("groups", group), members[group], f"at most {MAX_GROUP} tenants can be in a group")
        # Each member earns a whole number of tokens a round, so at least one: more than its part of so little.
        earns = policy.quantum * weight
        if earns < weights[group]:
            message = f"its tenants weigh {weights[group]} together, more tokens than it earns a round ({earns})"
            yield Problem(("groups", group, "weight"), weight, message)


def _ordered(section: str, record: object, smaller: str, larger: str) -> Iterator[Problem]:
    low, high = getattr(record, smaller), getattr(record, larger)
    if low > high:
        yield Problem((section, smaller), low, f"must not be above {larger} ({high})")
