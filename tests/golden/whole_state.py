"""Writes a golden file: a whole shard's rows, the journal of how it came to them, and what its next step decides.

    python -m tests.golden.whole_state tests/data/golden/state-v2.jsonl
    python -m tests.golden.whole_state --decide-again tests/data/golden/state-v1.jsonl

The first only makes new files: what an old one holds lies in Kafka topics somewhere. The second leaves all that as
it is, and states anew what the next step decides. See the README beside the files for when to do which.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from streams.app.inbox import Batch
from streams.app.step import Stepper
from streams.app.transaction import StepRecords
from streams.core.policy import Leases, Policy, PriorityClass, TenantRules, Window
from streams.core.records import Record, key_of
from streams.core.shard import Shard
from streams.intake import Reader, Source
from streams.rows import PositionsRecord, Row, RuntimeRow, StateHash, decode, decode_key, encode, encode_key
from streams.wire import encode_completion, encode_request, partition_for
from tests.story import Story
from tests.unit.app.fakes import NAMES, FakeRecord, FakeWriter

SHARDS = 2
SHARD = 0
NOW_MS = 1_764_000_000_000
LEASE_MS = 30_000

# Names as people give them: any that belong to the shard.
_NAMES = ("acme", "globex", "initech", "umbrella", "hooli", "Ünïcode & söhne", 'quo"te', "stark", "wayne", "wonka")
TENANTS = [name for name in _NAMES if partition_for(name, SHARDS) == SHARD]
BIG, CAPPED, MEMBER, OTHER = TENANTS[:4]

POLICY = Policy(
    name="golden",
    quantum=500,
    window=Window(runs=14, tokens=60_000),  # half of it is the shard's
    classes=(
        PriorityClass(name="urgent", default_estimate=300, weight=3),
        PriorityClass(name="batch", default_estimate=2_000),
    ),
    between_classes="shares",
    groups={"guild": 2},
    tenants={
        BIG: TenantRules(plan="pro", weight=4),
        CAPPED: TenantRules(max_runs_in_flight=1, max_queued_runs=7),
        MEMBER: TenantRules(group="guild", weight=2),
        OTHER: TenantRules(group="guild"),
    },
    leases=Leases(lease_ms=LEASE_MS, min_lease_ms=1_000, max_attempts=3, backoff_ms=1_000, max_backoff_ms=60_000),
)


def tell() -> Story:
    """Bring a shard to where every kind of row says something."""
    story = Story(POLICY, shards=SHARDS, now_ms=NOW_MS, topic_ids={"requests": "PCbJq3nxQqCrDzkTIvg3Kw"})
    for number in range(12):
        story.ask(BIG, f"big-{number}", workflow="summarise", class_="batch", payload={"text": "é\n", "n": number})
    for number in range(9):  # one runs at a time, some wait, some are refused
        story.ask(CAPPED, f"capped-{number}", class_="urgent", estimate=900, headers={"trace": "00-ab"})
    for tenant in (MEMBER, OTHER):
        for number in range(3):
            story.ask(tenant, f"member-{number}", workflow="translate", class_="urgent", max_tokens=700)
    story.ask(BIG, "later", class_="urgent", not_before_ms=NOW_MS + 3_600_000, deadline_ms=NOW_MS + 7_200_000)
    story.put(NAMES.requests, SHARD, b"key", b"not JSON")
    story.step()
    _report(story, "succeeded", tokens=650)
    story.step(1_000)
    _report(story, "failed", tokens=400, retryable=True)
    _report(story, "heartbeat", tokens=2_500)
    story.step(1_500)
    story.take_over()
    story.step(5_000)
    first = story.dispatched()[0]
    story.report(first.tenant, first.run_id, first.attempt, "succeeded", tokens=1)  # of one that is settled already
    story.step(LEASE_MS)  # who is silent is given up
    for each in story.dispatched()[-2:]:
        story.cancel(each.tenant, each.run_id)  # revoked: only the account stays open
    story.step(1_000)
    _report(story, "succeeded", tokens=1_200)
    _report(story, "heartbeat", tokens=5_000)
    story.cancel(BIG, "big-4")  # it has lost an attempt, of which something may yet be heard
    story.step(1_200)
    return story


def _report(story: Story, status: str, **fields: Any) -> None:
    """Let the workers say something of the oldest attempt of each tenant that they have said nothing final of."""
    said = {seen.value for seen in story.log(NAMES.completions, SHARD)}
    heard = {(m["tenant"], m["run_id"], m["attempt"]) for m in map(_final, said) if m}
    tenants = set()
    for each in story.dispatched():
        if each.tenant not in tenants and (each.tenant, each.run_id, each.attempt) not in heard:
            tenants.add(each.tenant)
            story.report(each.tenant, each.run_id, each.attempt, status, **fields)


def _final(value: bytes | None) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(value or b"{}")
    return message if message["status"] in {"succeeded", "failed"} else {}


def inputs_of_the_next_step(story: Story) -> Iterator[dict[str, Any]]:
    """What arrives for the new owner: new runs, and reports on some of what is in flight and on what was lost."""
    offset = len(story.log(NAMES.requests, SHARD))
    for number, tenant in enumerate(TENANTS):
        value = encode_request(tenant=tenant, run_id=f"next-{number}", workflow="summarise", class_="urgent")
        yield _line("input", tenant.encode(), value, topic="requests", offset=offset + number)
    offset = len(story.log(NAMES.completions, SHARD))
    for number, each in enumerate(story.dispatched()):
        if number % 2:
            value = encode_completion(
                tenant=each.tenant, run_id=each.run_id, attempt=each.attempt, status="succeeded", tokens=800 + number
            )
            yield _line("input", each.tenant.encode(), value, topic="completions", offset=offset + number)


def load(state: Iterable[dict[str, Any]]) -> tuple[Shard, PositionsRecord, list[Row]]:
    """Return the shard that the lines of a state say, its positions, and the rows."""
    rows = [decode(decode_key(each["key"].encode())[1], each["value"].encode()) for each in state]
    positions = next(row for row in rows if isinstance(row, PositionsRecord))
    records: list[Record] = [row for row in rows if not isinstance(row, RuntimeRow)]
    return Shard.load(SHARD, SHARDS, records), positions, rows


def next_step(shard: Shard, positions: PositionsRecord, inputs: Iterable[dict[str, Any]], now_ms: int) -> StepRecords:
    """Take a shard over and let it take the inputs; return what it writes."""
    writer = FakeWriter()
    reign = replace(positions, epoch=positions.epoch + 1)
    batches = {source.value: Batch(source, [], 1) for source in Source}
    for each in inputs:
        record = FakeRecord(each["offset"], each["value"].encode(), each["key"].encode(), now_ms)
        batches[each["topic"]].records = [*batches[each["topic"]].records, record]
    state = StateHash.of((encode_key(SHARD, key_of(each)), encode(each)) for each in shard.dump())
    stepper = Stepper(shard, reign, writer, Reader(NAMES, SHARD, SHARDS), shard=SHARD, state=state)
    stepper.step([*batches.values()], (), now_ms)
    return writer.written[0]


def what_was() -> Iterator[dict[str, Any]]:
    """The state, its journal, and what arrives for the next step."""
    story = tell()
    yield from (_line("state", key, value) for key, value in sorted(story.rows[SHARD].items()))
    yield from (_line("journal", seen.key or b"", seen.value) for seen in story.log(NAMES.journal, SHARD))
    yield {"kind": "next", "now_ms": story.now_ms + LEASE_MS}
    yield from inputs_of_the_next_step(story)


def what_is_decided(given: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the next step makes of it."""
    shard, positions, _ = load(line for line in given if line["kind"] == "state")
    inputs = [line for line in given if line["kind"] == "input"]
    step = next_step(shard, positions, inputs, next(line["now_ms"] for line in given if line["kind"] == "next"))
    assert step.journal is not None
    yield _line("next journal", *step.journal)
    yield from (_line("next dispatch", *each) for each in step.dispatches)
    yield from (_line("next row", *each) for each in [*step.rows, step.positions])


def _line(kind: str, key: bytes, value: bytes | None, **more: Any) -> dict[str, Any]:
    return {"kind": kind, **more, "key": key.decode(), "value": None if value is None else value.decode()}


def make(path: Path) -> None:
    """Write a new file; refuse to write over one."""
    given = list(what_was())
    with path.open("x", encoding="utf-8") as file:
        _write(file, [*given, *what_is_decided(given)])


def decide_again(path: Path) -> None:
    """State anew what the next step decides."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    given = [line for line in lines if line["kind"] in {"state", "journal", "next", "input"}]
    with path.open("w", encoding="utf-8") as file:
        _write(file, [*given, *what_is_decided(given)])


def _write(file: TextIO, lines: list[dict[str, Any]]) -> None:
    file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


if __name__ == "__main__":
    (decide_again if sys.argv[1] == "--decide-again" else make)(Path(sys.argv[-1]))
