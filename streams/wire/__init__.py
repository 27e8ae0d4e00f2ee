"""Messages: records of the core to bytes and back, pure, without Kafka.

The shapes are those of `schemas/*.avsc`, which also state the limits of each field. Values travel as JSON:
orjson writes it, msgspec reads it against types built from the schemas. A value that cannot be read raises
`streams.errors.BadRecord` with the field's name; nothing here sends, logs, or looks at a clock.
A reader of dispatches needs only this package: no Faust, and of the core only its plain records.
"""

from streams.wire.completions import decode_completion, encode_completion
from streams.wire.dispatches import Assignment, Revocation, decode_dispatch, encode_dispatch, encode_revoke
from streams.wire.intakes import INTAKE_CONFIGS, intake_pattern, intake_prefix, intake_topic, tenant_of
from streams.wire.journal import (
    Decision,
    InputRange,
    JournalEntry,
    Proof,
    RefusedRun,
    decode_journal,
    encode_journal,
    journal_digest,
)
from streams.wire.partitions import FORWARDED, PARTITIONER, murmur2, partition_for
from streams.wire.policies import (
    AppliedPolicy,
    PolicyChange,
    check_policy_size,
    decode_policy,
    encode_policy,
    policy_bytes,
)
from streams.wire.reading import MAX_VALUE_BYTES
from streams.wire.rejections import Position, Refusal, decode_rejection, encode_rejection, encode_unreadable
from streams.wire.requests import decode_request, encode_cancel, encode_request
from streams.wire.status import Status, decode_status, encode_class_status, encode_flow_status, encode_shard_status
from streams.wire.topics import (
    MAX_MESSAGE_BYTES,
    MAX_POLICY_BYTES,
    OVERHEAD_BYTES,
    STATE_DELETIONS_KEPT_MS,
    STEP_BYTES,
    TOPICS,
    Topic,
    TopicNames,
    topic_names,
)

__all__ = [
    "FORWARDED",
    "INTAKE_CONFIGS",
    "MAX_MESSAGE_BYTES",
    "MAX_POLICY_BYTES",
    "MAX_VALUE_BYTES",
    "OVERHEAD_BYTES",
    "PARTITIONER",
    "STATE_DELETIONS_KEPT_MS",
    "STEP_BYTES",
    "TOPICS",
    "AppliedPolicy",
    "Assignment",
    "Decision",
    "InputRange",
    "JournalEntry",
    "PolicyChange",
    "Position",
    "Proof",
    "Refusal",
    "RefusedRun",
    "Revocation",
    "Status",
    "Topic",
    "TopicNames",
    "check_policy_size",
    "decode_completion",
    "decode_dispatch",
    "decode_journal",
    "decode_policy",
    "decode_rejection",
    "decode_request",
    "decode_status",
    "encode_cancel",
    "encode_class_status",
    "encode_completion",
    "encode_dispatch",
    "encode_flow_status",
    "encode_journal",
    "encode_policy",
    "encode_rejection",
    "encode_request",
    "encode_revoke",
    "encode_shard_status",
    "encode_unreadable",
    "intake_pattern",
    "intake_prefix",
    "intake_topic",
    "journal_digest",
    "murmur2",
    "partition_for",
    "policy_bytes",
    "tenant_of",
    "topic_names",
]
