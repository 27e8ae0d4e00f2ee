"""Policy changes: the rules as `fairstream policy apply` states them (`schemas/policy.avsc`)."""

from __future__ import annotations

from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

import orjson

from streams.core.inputs import SetPolicy
from streams.core.policy import Policy, TenantRules
from streams.core.policy_check import parse_policy, policy_document
from streams.core.policy_problems import PolicyInvalid
from streams.errors import BadRecord
from streams.wire.reading import Reader
from streams.wire.topics import MAX_MESSAGE_BYTES, MAX_POLICY_BYTES
from streams.wire.writing import to_json

_READER: Final[Reader] = Reader("policy")
_RULES: Final = [each.name for each in fields(TenantRules)]
_rules_of: Final = attrgetter(*_RULES)
_TABLES: Final = {"window", "default", "limits", "estimates", "leases", "memory"}


class PolicyChange(NamedTuple):
    """A policy, who stated it, and when. Its offset in the policy topic is its version."""

    policy: Policy
    author: str
    applied_ms: int


class AppliedPolicy(NamedTuple):
    """A policy change as a shard takes it, and as its journal keeps it: the policy topic forgets what was replaced."""

    offset: int  # in the policy topic
    author: str
    applied_ms: int
    policy: Policy

    @property
    def given(self) -> SetPolicy:
        """The change as an input of the core."""
        return SetPolicy(self.offset, self.policy)


def short_document(policy: Policy) -> dict[str, Any]:
    """Return a document with only what differs from the defaults: `parse_policy(short_document(p)) == p`.

    Of 20,000 tenants of which each states a weight it is less than half as long as `policy_document`.
    """
    own, built_in = policy_document(replace(policy, tenants={})), policy_document(Policy())
    document = {"name": policy.name} | {name: value for name, value in own.items() if value != built_in[name]}
    for section in _TABLES & document.keys():
        document[section] = {name: value for name, value in own[section].items() if value != built_in[section][name]}
    named = {rules.plan for rules in (policy.default, *policy.tenants.values()) if rules.plan is not None}
    if named:
        document["plans"] = {plan: {} for plan in sorted(named)}
    if policy.tenants:
        base = _rules_of(policy.default)
        document["tenants"] = {
            tenant: {rule: mine for rule, mine, its in zip(_RULES, _rules_of(rules), base, strict=True) if mine != its}
            for tenant, rules in policy.tenants.items()
        }
    return document


def policy_bytes(policy: Policy) -> int:
    """Return how much a policy takes of a journal record."""
    return len(to_json(short_document(policy)))


def check_policy_size(policy: Policy) -> None:
    """Raise `BadRecord` for a policy that has no room in a journal record."""
    size = policy_bytes(policy)
    if size > MAX_POLICY_BYTES:
        raise BadRecord(
            f"needs {size} bytes in the journal, {MAX_POLICY_BYTES} at most: name fewer tenants, use plans and the "
            "default",
            field="policy",
        )


def encode_policy(change: PolicyChange) -> bytes:
    """Return the value that states a policy. Its key is the policy's name in UTF-8.

    Raises `BadRecord`, naming the field, for what the shards would refuse.
    """
    document = policy_document(change.policy)
    value = to_json({"author": change.author, "applied_ms": change.applied_ms, "policy": document})
    decode_policy(value)
    return value


def decode_policy(value: bytes | None) -> PolicyChange:
    """Return what a record of the policy topic states, checked as a whole.

    Raises `BadRecord`, naming the first wrong field and how many more there are; the policy in force then stays.
    """
    message = _READER.read(value, MAX_MESSAGE_BYTES)
    # The document as it stands, for the reader above has passed over unknown fields: in a policy they are mistakes.
    try:
        policy = parse_policy(orjson.loads(value or b"")["policy"])
    except orjson.JSONDecodeError as error:  # in an unknown field, whose text and numbers the reader does not look at
        raise BadRecord(f"not JSON: {error}", field="value") from None
    except PolicyInvalid as invalid:
        first, *others = invalid.problems
        more = f"; and {len(others):,} more problems" if others else ""
        raise BadRecord(first.message + more, field=f"policy.{first.where}", value=first.value) from None
    check_policy_size(policy)
    return PolicyChange(policy, message.author, message.applied_ms)
