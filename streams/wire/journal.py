"""The journal: one record per step, with what went in and what was decided (`schemas/journal.avsc`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, NamedTuple

import orjson

from streams.core.effects import Effects, Revoke, Settlement
from streams.core.inputs import Undeliverable
from streams.core.policy_check import parse_policy
from streams.core.policy_problems import PolicyInvalid
from streams.errors import BadRecord
from streams.wire.policies import AppliedPolicy, short_document
from streams.wire.reading import Reader
from streams.wire.schema import attribute_of
from streams.wire.topics import MAX_MESSAGE_BYTES

_READER: Final[Reader] = Reader("journal")


class _Columns:
    """A list of records as one array for each field, and back."""

    def __init__(self, *fields: str, **attributes: str) -> None:
        """`attributes` says where a field is found in a record, if not under its own name."""
        self._fields: Final = fields
        self._getters: Final = [(field, attrgetter(attributes.get(field, field))) for field in fields]
        self._empty: Final[dict[str, list[Any]]] = {field: [] for field in fields}

    def of(self, records: Sequence[object]) -> dict[str, list[Any]]:
        return {field: [*map(get, records)] for field, get in self._getters} if records else self._empty

    def rows(self, name: str, columns: Any) -> list[tuple[Any, ...]]:
        lists = [getattr(columns, attribute_of(field)) for field in self._fields]
        if any(len(column) != len(lists[0]) for column in lists):
            raise BadRecord("the arrays are not of equal length", field=name)
        return list(zip(*lists, strict=True))


_RENAMED: Final = {"class": "class_", "deficit": "deficit_before"}
_DECISIONS: Final = _Columns("seq", "tenant", "run_id", "class", "attempt", "estimate", "deficit", "round", **_RENAMED)
_REVOKES: Final = _Columns("seq", "tenant", "run_id", "attempt", "reason")
_SETTLEMENTS: Final = _Columns("tenant", "run_id", "attempt", "outcome", "estimate", "actual", "reported")
_REJECTIONS: Final = _Columns("tenant", "run_id", "reason", "position")


class InputRange(NamedTuple):
    """Records of one topic that were applied one after the other. Not every offset in between is a record."""

    topic: str  # without the prefix
    first: int  # offsets, both included
    last: int


class Decision(NamedTuple):
    """A dispatch, as the journal keeps it."""

    seq: int
    tenant: str
    run_id: str
    class_: str
    attempt: int
    estimate: int  # tokens
    deficit_before: int  # tokens
    round: int

    @property
    def deficit_after(self) -> int:
        """Tokens left after the charge."""
        return self.deficit_before - self.estimate


class RefusedRun(NamedTuple):
    """A rejection, as the journal keeps it; the rejected topic has it in full."""

    tenant: str
    run_id: str
    reason: str
    position: int  # the request's offset


class Proof(NamedTuple):
    """What ties a record to the state it speaks of and to the record before it.

    A record that is altered, dropped, doubled or swapped breaks the chain at its place; the positions row has the
    digest of the last one, and so the chain has an end.
    """

    core: int  # the version of the core that has decided
    state: str  # hash of the shard's state after the step
    previous: str  # `journal_digest` of the journal record before; "": the chain begins here


class JournalEntry(NamedTuple):
    """One step."""

    shard: int
    step: int
    epoch: int
    takeover: bool  # the step began with a new owner
    now_ms: int
    policy_version: int  # in force after the step's inputs
    inputs: tuple[InputRange, ...]  # in the order applied
    decisions: tuple[Decision, ...]  # in the order decided
    revokes: tuple[Revoke, ...]
    settlements: tuple[Settlement, ...]
    rejections: tuple[RefusedRun, ...]
    counts: dict[str, int]
    undeliverable: tuple[Undeliverable, ...] = ()  # applied after the policies and before everything else
    largest_body: int | None = None  # bytes; of runs with more the requests were refused before the core; None: of none
    policies: tuple[AppliedPolicy, ...] = ()  # the changes among the inputs, in order
    unread: tuple[InputRange, ...] = ()  # inputs that were set aside, and the topics don't show why
    core: int | None = None  # see `Proof`; None: written before there was one
    state: str = ""
    previous: str = ""


def encode_journal(
    effects: Effects,
    *,
    shard: int,
    epoch: int,
    policy_version: int,
    inputs: Iterable[InputRange],
    takeover: bool = False,
    undeliverable: Sequence[Undeliverable] = (),
    largest_body: int | None = None,
    policies: Sequence[AppliedPolicy] = (),
    unread: Sequence[InputRange] = (),
    proof: Proof | None = None,
) -> bytes:
    """Return the journal's value for a step, of at most `STEP_BYTES`. Its key is the shard's number as text."""
    rare: dict[str, object] = {}
    if undeliverable:
        rare["undeliverable"] = [
            {"tenant": each.tenant, "run_id": each.run_id, "size": each.size, "limit": each.limit}
            for each in undeliverable
        ]
    if largest_body is not None:
        rare["largest_body"] = largest_body
    if policies:
        rare["policies"] = [
            {
                "offset": each.offset,
                "name": each.policy.name,
                "author": each.author,
                "applied_ms": each.applied_ms,
                "policy": short_document(each.policy),
            }
            for each in policies
        ]
    if unread:
        rare["unread"] = _ranges(unread)
    if proof is not None:
        rare |= proof._asdict()
    return orjson.dumps(
        {
            "shard": shard,
            "step": effects.step,
            "epoch": epoch,
            "takeover": takeover,
            "now_ms": effects.now_ms,
            "policy_version": policy_version,
            "inputs": _ranges(inputs),
            "decisions": _DECISIONS.of(effects.dispatches),
            "revokes": _REVOKES.of(effects.revokes),
            "settlements": _SETTLEMENTS.of(effects.settlements),
            "rejections": _REJECTIONS.of(effects.rejections),
            "counts": dict(effects.counts),
            **rare,
        }
    )


def decode_journal(value: bytes | None) -> JournalEntry:
    """Return what a record of the journal says. Raises `BadRecord`, naming the field."""
    message = _READER.read(value, MAX_MESSAGE_BYTES)
    return JournalEntry(
        message.shard,
        message.step,
        message.epoch,
        message.takeover,
        message.now_ms,
        message.policy_version,
        tuple(InputRange(each.topic, each.first, each.last) for each in message.inputs),
        tuple(Decision(*row) for row in _DECISIONS.rows("decisions", message.decisions)),
        tuple(Revoke(*row) for row in _REVOKES.rows("revokes", message.revokes)),
        tuple(Settlement(*row) for row in _SETTLEMENTS.rows("settlements", message.settlements)),
        tuple(RefusedRun(*row) for row in _REJECTIONS.rows("rejections", message.rejections)),
        message.counts,
        tuple(Undeliverable(each.tenant, each.run_id, each.size, each.limit) for each in message.undeliverable),
        message.largest_body,
        tuple(map(_policy, message.policies)),
        tuple(InputRange(each.topic, each.first, each.last) for each in message.unread),
        message.core,
        message.state,
        message.previous,
    )


def journal_digest(value: bytes) -> str:
    """Return the digest by which the journal record after `value` names it: SHA-256, in hexadecimal digits."""
    return sha256(value).hexdigest()


def _ranges(ranges: Iterable[InputRange]) -> list[dict[str, Any]]:
    return [{"topic": topic, "first": first, "last": last} for topic, first, last in ranges]


def _policy(message: Any) -> AppliedPolicy:
    try:
        document = orjson.loads(bytes(message.policy))
    except orjson.JSONDecodeError as error:
        raise BadRecord(f"not JSON: {error}", field="policies") from None
    if not isinstance(document, dict):
        raise BadRecord("not a policy document", field="policies", value=document)
    try:
        policy = parse_policy(document)
    except PolicyInvalid as invalid:
        first = invalid.problems[0]
        raise BadRecord(first.message, field=f"policies.{first.where}", value=first.value) from None
    return AppliedPolicy(message.offset, message.author, message.applied_ms, policy)
