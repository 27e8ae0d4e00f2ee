"""Intake topics: one for each tenant, to which only that tenant may write (`streams.gate`). Their names and settings.

    <prefix>requests.of.<tenant>

The tenant is written with letters, digits and `-`; every other byte of its UTF-8 becomes `_` and two hexadecimal
digits. So the name tells the tenant, no two tenants share one, and none holds a `.` behind the prefix: Kafka refuses
topics whose names differ in `.` and `_` only. A name that comes out longer than Kafka takes is refused, not shortened.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from streams.errors import BadRecord

_BETWEEN: Final = "requests.of."
_MAX_TOPIC: Final = 249  # characters, Kafka's limit
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 24 * 60 * _MINUTE_MS

_NOT_PLAIN: Final = re.compile(rb"[^A-Za-z0-9-]")
_ESCAPED: Final = re.compile(rb"_([0-9a-f]{2})")

# Kafka's settings of an intake topic. They hold what whoever can write there could do to others.
INTAKE_CONFIGS: Final = {
    "cleanup.policy": "delete",
    # A compressed batch is opened by the broker, and refused if it is larger than a message may be then. Otherwise a
    # megabyte on the wire could become gigabytes in the reader's memory.
    "compression.type": "uncompressed",
    # The broker's time, not one that the writer makes up: waiting times count from it, and a time in the future would
    # keep its neighbours on the requests topic beyond their retention.
    "message.timestamp.type": "LogAppendTime",
    # Kafka forgets how far a gate has read when there has been none for 7 days. What is read again after that must
    # not be there any more, or it would be done twice: with one day a segment all is gone after 6.
    "retention.ms": str(5 * _DAY_MS),
    "segment.ms": str(_DAY_MS),
}


def intake_topic(prefix: str, tenant: str) -> str:
    """Return the tenant's topic. Raises `BadRecord` for a tenant that cannot have one: empty, too long, no text."""
    try:
        plain = tenant.encode()
    except UnicodeEncodeError:
        raise BadRecord("cannot be written as UTF-8", field="tenant", value=tenant) from None
    if not plain:
        raise BadRecord("must not be empty", field="tenant", value=tenant)
    topic = prefix + _BETWEEN + _NOT_PLAIN.sub(_escape, plain).decode()
    if len(topic) > _MAX_TOPIC:
        raise BadRecord(
            f"too long for a topic of its own, of {len(topic)} characters (Kafka takes {_MAX_TOPIC})",
            field="tenant",
            value=tenant,
        )
    return topic


# Cached because it is asked for every record; bounded because tenants are not.
@lru_cache(maxsize=65_536)
def tenant_of(prefix: str, topic: str) -> str | None:
    """Return whose intake `topic` is; None if `intake_topic` makes that name for nobody."""
    if not topic.startswith(prefix + _BETWEEN):
        return None
    try:
        name = topic.removeprefix(prefix + _BETWEEN).encode()
        tenant = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), name).decode()
        # Also escapes of what needs none: two names for one tenant would be two intakes.
        return tenant if intake_topic(prefix, tenant) == topic else None
    except (UnicodeError, BadRecord):
        return None


def intake_pattern(prefix: str) -> str:
    """Return what librdkafka subscribes to for all intake topics: a regular expression."""
    return f"^{intake_prefix(prefix).replace('.', '[.]')}[A-Za-z0-9_-]+$"


def intake_prefix(prefix: str) -> str:
    """Return what the names of all intake topics of a deployment begin with."""
    return prefix + _BETWEEN


def _escape(found: re.Match[bytes]) -> bytes:
    return b"_%02x" % found[0][0]
