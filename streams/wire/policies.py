"""Policy changes: the rules as `fairstream policy apply` states them (`schemas/policy.avsc`)."""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson

from streams.core.policy import Policy
from streams.core.policy_check import parse_policy, policy_document
from streams.core.policy_problems import PolicyInvalid
from streams.errors import BadRecord
from streams.wire.reading import Reader
from streams.wire.topics import MAX_MESSAGE_BYTES
from streams.wire.writing import to_json

_READER: Final[Reader] = Reader("policy")


class PolicyChange(NamedTuple):
    """A policy, who stated it, and when. Its offset in the policy topic is its version."""

    policy: Policy
    author: str
    applied_ms: int


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
    return PolicyChange(policy, message.author, message.applied_ms)
