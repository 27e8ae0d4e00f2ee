"""What a refusal at the door must rest on, and what was let in must have passed: the policy and the books.

What the topics don't tell is the estimate of a run that was never dispatched, and so whether limits in tokens were
met; and how many tenants the shard knows. A replay does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.audit.verify.refusals import UNKNOWN, Number
from streams.core import reasons

if TYPE_CHECKING:
    from streams.audit.verify.books import Books
    from streams.core.inputs import Submit
    from streams.core.policy import Policy, TenantRules

DOOR: Final = frozenset(
    {
        reasons.UNKNOWN_CLASS,
        reasons.UNKNOWN_TENANT,
        reasons.DUPLICATE,
        reasons.DEADLINE_PASSED,
        reasons.TOO_LARGE,
        reasons.TENANT_PAUSED,
        reasons.QUEUE_FULL,
        reasons.OVERLOADED,
    }
)


class Ground(NamedTuple):
    """What a refusal rests on."""

    holds: bool  # False: by the policy and the books there was no reason
    limit: Number = None
    value: Number = None


def ground(books: Books, policy: Policy, given: Submit, reason: str) -> Ground:
    """Return what a refusal of a request rests on. Where the books begin in the middle, they prove nothing wrong."""
    match reason:
        case reasons.UNKNOWN_CLASS:
            return Ground(given.class_ is not None and given.class_ not in {each.name for each in policy.classes})
        case reasons.UNKNOWN_TENANT:
            return Ground(policy.closed and given.tenant not in policy.tenants)
        case reasons.DUPLICATE:
            return Ground(not books.whole or _seen(books, given))
        case reasons.DEADLINE_PASSED:
            deadline = given.deadline_ms
            return Ground(deadline is not None and deadline <= books.now_ms, deadline, books.now_ms)
        case reasons.TOO_LARGE:
            return _too_large(policy, len(given.body))
        case reasons.TENANT_PAUSED:
            return Ground(policy.rules_for(given.tenant).paused)
        case reasons.QUEUE_FULL:
            return _queue_full(books, policy.rules_for(given.tenant), given.tenant)
    return _overloaded(books, policy, len(given.body))


def _too_large(policy: Policy, size: int) -> Ground:
    limits = policy.limits
    if limits.max_queued_bytes is not None and size > limits.max_queued_bytes:
        return Ground(True, limits.max_queued_bytes, size)  # noqa: FBT003 - it holds
    return Ground(limits.max_run_tokens is not None, limits.max_run_tokens, UNKNOWN)


def _queue_full(books: Books, rules: TenantRules, name: str) -> Ground:
    tenant, runs, tokens = books.tenants.get(name), rules.max_queued_runs, rules.max_queued_tokens
    if not books.whole:
        return Ground(runs is not None or tokens is not None, UNKNOWN, UNKNOWN)
    queued = tenant.queued if tenant is not None else 0
    if runs is not None and queued >= runs:
        return Ground(True, runs, queued)  # noqa: FBT003 - it holds
    return Ground(tokens is not None, tokens, UNKNOWN)


def _overloaded(books: Books, policy: Policy, size: int) -> Ground:
    limits = policy.limits
    if not books.whole or limits.overload != "refuse":
        return Ground(True, UNKNOWN, UNKNOWN)  # noqa: FBT003 - as far as is known here
    if limits.max_queued_runs is not None and books.queued >= limits.max_queued_runs:
        return Ground(True, limits.max_queued_runs, books.queued)  # noqa: FBT003 - it holds
    if limits.max_queued_bytes is not None and books.held_bytes + size > limits.max_queued_bytes:
        return Ground(True, limits.max_queued_bytes, books.held_bytes)  # noqa: FBT003 - it holds
    # The books know all flows that there ever were: the shard no more than these.
    return Ground(len(books.flows) >= policy.memory.flows, policy.memory.flows, UNKNOWN)


def objections(books: Books, policy: Policy, given: Submit) -> Iterator[str]:
    """Yield each reason for which a request had to be refused."""
    limits, rules, size = policy.limits, policy.rules_for(given.tenant), len(given.body)
    if given.class_ is not None and given.class_ not in {each.name for each in policy.classes}:
        yield reasons.UNKNOWN_CLASS
    if policy.closed and given.tenant not in policy.tenants:
        yield reasons.UNKNOWN_TENANT
    if given.deadline_ms is not None and given.deadline_ms <= books.now_ms:
        yield reasons.DEADLINE_PASSED
    if rules.paused:
        yield reasons.TENANT_PAUSED
    if books.whole and _seen(books, given):
        yield reasons.DUPLICATE
    if limits.max_queued_bytes is not None and size > limits.max_queued_bytes:
        yield reasons.TOO_LARGE
    tenant = books.tenants.get(given.tenant)
    if rules.max_queued_runs is not None and tenant is not None and tenant.queued >= rules.max_queued_runs:
        yield reasons.QUEUE_FULL
    many = limits.max_queued_runs is not None and books.queued >= limits.max_queued_runs
    large = limits.max_queued_bytes is not None and books.held_bytes + size > limits.max_queued_bytes
    if limits.overload == "refuse" and (many or large):
        yield reasons.OVERLOADED


def _seen(books: Books, given: Submit) -> bool:
    """Tell whether a run of this id has not ended, or is remembered."""
    identity = (given.tenant, given.run_id)
    return identity in books.runs or identity in books.memory or identity in books.revoked
