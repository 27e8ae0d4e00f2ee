"""Bytes that were written once must be readable for ever: those of today, kept in files.

A failure here is a message to whoever changed a form or a schema: bytes like these lie in Kafka topics. Add a new
version beside the old one (`streams.rows.forms`), or a field with a default (`schemas`), and add to the files
instead of changing them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streams.core import records
from streams.core.effects import Dispatch, Effects, Rejection, Revoke, Settlement
from streams.core.inputs import Undeliverable
from streams.core.policy import Policy, PriorityClass, TenantRules, Window
from streams.core.records import FlowState
from streams.rows import (
    FillingRecord,
    MovedRecord,
    PositionsRecord,
    Row,
    decode,
    decode_key,
    encode,
    encode_key,
    row_key,
)
from streams.rows.forms import FORMS, Form
from streams.wire import (
    AppliedPolicy,
    InputRange,
    PolicyChange,
    Position,
    Proof,
    decode_completion,
    decode_dispatch,
    decode_journal,
    decode_policy,
    decode_rejection,
    decode_request,
    encode_cancel,
    encode_completion,
    encode_dispatch,
    encode_journal,
    encode_policy,
    encode_rejection,
    encode_request,
    encode_revoke,
)

HERE = Path(__file__).parent

POLICY = Policy(
    name="live",
    quantum=500,
    window=Window(runs=32, tokens=1_000_000),
    classes=(PriorityClass(name="urgent", default_estimate=100), PriorityClass(name="batch", min_share=10)),
    groups={"acme": 3},
    tenants={"acme.com": TenantRules(plan="pro", group="acme", weight=4, max_runs_in_flight=8)},
)
BODY = '{"max_tokens":4096,"payload":{"text":"é\\n"},"headers":{"trace":"00-ab"}}'.encode()

ROWS: dict[str, Row] = {
    "shard": records.ShardRecord(3, 4, 2, 1_041, 1_764_000_000_000, 500, 77, 65_536, 1_763_999_999_000, 21, 554_400),
    "policy": records.PolicyRecord(6, POLICY),
    "ring": records.RingRecord(
        "batch",
        12,
        4,
        visiting=True,
        next_place=9,
        tag=831_600,
        max_estimate=1_200,
        max_under=300,
        max_over=200,
        past_charged=5_000,
        past_dispatched=6,
        past_ended=4,
    ),
    "flow": records.FlowRecord(
        class_="batch",
        tenant="acme.com",
        place=4,
        deficit=-250,
        accrued=12,
        half_visit=True,
        state=FlowState.BLOCKED,
        charged=900,
        actual=800,
        dispatched=7,
        ended=5,
        settled_estimate=850,
        base=650,
        since=9,
        peak=2,
        left=20,
        extra=-40,
    ),
    "run": records.RunRecord(
        "acme.com", "r/1", "summarise", "batch", 41, 1_200, 4_096, None, 3, 60_000, 1_764_000_000_000, 0, BODY
    ),
    "retry": records.RetryRecord("acme.com", "r/1", 2, 1, 1_764_000_001_000, {1: 1_200}),
    "flight": records.FlightRecord(
        tenant="acme.com",
        run_id="r/1",
        class_="batch",
        workflow="summarise",
        attempt=3,
        tries=2,
        seq=77,
        dispatched_ms=1_764_000_002_000,
        estimate=1_200,
        charged=1_300,
        reported=1_300,
        expires_ms=1_764_000_062_000,
        lease_ms=60_000,
        heard=True,
        class_pays=True,
    ),
    "history": records.HistoryRecord("acme.com", "summarise", 9, 78_643_200, 19, {-3: 2, 0: 7}),
    "ended": records.EndedRecord(
        1_041,
        1_764_000_000_000,
        [("acme.com", "r/0"), ("globex", 'r"\n')],
        [("acme.com", "r/0", "batch", 1, 1_200)],
    ),
    "positions": PositionsRecord(2, {"requests": 41, "completions": 30}, {"requests": 4, "dispatch": 8}),
    "moved": MovedRecord("runs-b.", 6, {"requests": 41, "completions": 30}),
    "filling": FillingRecord("runs.", 4),
}


# Rows as the later versions of their kind hold them.
LATER_ROWS: dict[tuple[str, int], Row] = {
    ("positions", 2): PositionsRecord(
        2, {"requests": 41, "completions": 30}, {"requests": 4, "dispatch": 8}, {"requests": "PCbJq3nxQqCrDzkTIvg3Kw"}
    ),
    ("positions", 3): PositionsRecord(
        2,
        {"requests": 41, "completions": 30},
        {"requests": 4, "dispatch": 8},
        {"requests": "PCbJq3nxQqCrDzkTIvg3Kw"},
        journal="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        core=1,
        state="cae66941d9efbd404e4d88758ea67670",
    ),
}


def rows_file(version: int) -> dict[str, dict[str, str]]:
    loaded: dict[str, dict[str, str]] = json.loads((HERE / f"rows-v{version}.json").read_text(encoding="utf-8"))
    return loaded


def messages_file() -> dict[str, str]:
    loaded: dict[str, str] = json.loads((HERE / "messages-v1.json").read_text(encoding="utf-8"))
    return loaded


def row(form: Form) -> Row:
    return ROWS[form.kind] if form.version == 1 else LATER_ROWS[form.kind, form.version]


def name_of(form: Form) -> str:
    return f"{form.kind}-v{form.version}"


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_a_row_is_read_as_ever(form: Form) -> None:
    kept = rows_file(form.version)[form.kind]
    shard, key = decode_key(kept["key"].encode())
    assert (shard, decode(key, kept["value"].encode())) == (3, row(form))


@pytest.mark.parametrize("form", {form.kind: form for form in FORMS}.values(), ids=name_of)
def test_a_row_is_written_as_the_newest_version_of_its_kind_says(form: Form) -> None:
    key, value = encode_key(3, row_key(row(form))).decode(), encode(row(form)).decode()
    assert rows_file(form.version)[form.kind] == {"key": key, "value": value}


def step() -> Effects:
    effects = Effects(12, 1_764_000_000_000)
    effects.dispatches.append(DISPATCH)
    effects.revokes.append(REVOKE)
    effects.rejections.append(REJECTION)
    effects.settlements.append(Settlement("acme.com", "r/0", 1, "succeeded", 900, 1_100, reported=True))
    effects.counts["dispatched"] += 1
    return effects


DISPATCH = Dispatch(
    seq=77,
    tenant="acme.com",
    run_id="r/1",
    workflow="summarise",
    class_="batch",
    attempt=2,
    estimate=1_200,
    lease_ms=60_000,
    deadline_ms=1_764_000_900_000,
    body=BODY,
    submitted_ms=1_764_000_000_000,
    round=12,
    deficit_before=0,
    deficit_after=-1_200,
)
REVOKE = Revoke(78, "acme.com", "r/0", 1, "cancelled")
REJECTION = Rejection("acme.com", "r/9", "queue_full", "8 runs are queued", 8, 8, 5_000, 88, BODY)

MESSAGES: dict[str, bytes] = {
    "submit": encode_request(
        tenant="acme.com",
        run_id="r/1",
        workflow="summarise",
        class_="batch",
        estimate=1_000,
        max_tokens=4_096,
        deadline_ms=1_764_000_900_000,
        payload={"text": "é\n"},
        headers={"trace": "00-ab"},
    ),
    "cancel": encode_cancel(tenant="acme.com", run_id="r/1"),
    "completion": encode_completion(
        tenant="acme.com", run_id="r/1", attempt=2, status="failed", tokens=900, retryable=True, error="é", shard=3
    ),
    "dispatch": encode_dispatch(DISPATCH, shard=3, step=12, epoch=2),
    "revoke": encode_revoke(REVOKE, shard=3, step=12, epoch=2),
    "rejection": encode_rejection(
        REJECTION, Position("runs.requests", 3, 88), shard=3, step=12, at_ms=1_764_000_000_000
    ),
    "policy": encode_policy(PolicyChange(POLICY, "ann", 1_764_000_000_000)),
    "journal": encode_journal(step(), shard=3, epoch=2, policy_version=6, inputs=[InputRange("requests", 40, 88)]),
    "journal, undeliverable": encode_journal(
        Effects(step=13, now_ms=1_764_000_000_100),
        shard=3,
        epoch=2,
        policy_version=6,
        inputs=[],
        undeliverable=[
            Undeliverable("acme.com", "r/1", 1_200_000, 1_048_588),
            Undeliverable("acme.com", "r/2", 9, None),
        ],
        largest_body=1_038_860,
    ),
    "journal, proved": encode_journal(
        Effects(step=14, now_ms=1_764_000_000_200),
        shard=3,
        epoch=2,
        policy_version=8,
        inputs=[InputRange("policy", 8, 8), InputRange("requests", 89, 97)],
        policies=[AppliedPolicy(8, "ann", 1_764_000_000_000, POLICY)],
        unread=[InputRange("requests", 90, 90), InputRange("requests", 94, 97)],
        proof=Proof(
            core=1,
            state="cae66941d9efbd404e4d88758ea67670",
            previous="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        ),
    ),
    "rejection, left out": encode_rejection(
        Rejection("acme.com", "r/4", "dead_lettered", "failed", 3, 3, None, 88, b"", left_out=900_000),
        Position("runs.requests", 3, 88),
        shard=3,
        step=12,
        at_ms=1_764_000_000_000,
    ),
}
READERS: dict[str, Any] = {
    "submit": lambda value: decode_request(None, value, 0, 0),
    "cancel": lambda value: decode_request(None, value, 0, 0),
    "completion": lambda value: decode_completion(None, value, 0),
    "dispatch": decode_dispatch,
    "revoke": decode_dispatch,
    "rejection": decode_rejection,
    "policy": decode_policy,
    "journal": decode_journal,
    "journal, undeliverable": decode_journal,
    "journal, proved": decode_journal,
    "rejection, left out": decode_rejection,
}


@pytest.mark.parametrize("name", list(MESSAGES))
def test_a_message_of_version_1_is_read_as_ever(name: str) -> None:
    read = READERS[name]
    assert read(messages_file()[name].encode()) == read(MESSAGES[name])


@pytest.mark.parametrize("name", list(MESSAGES))
def test_a_message_of_version_1_is_written_as_ever(name: str) -> None:
    assert messages_file()[name] == MESSAGES[name].decode()
