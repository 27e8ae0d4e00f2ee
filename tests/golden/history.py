"""Writes a golden file: a recording with everything a step may decide, as the present version of the core decides it.

    python -m tests.golden.history

It makes `tests/data/golden/history-vN.jsonl.gz`, N being the version of the core, and never writes over one.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from streams.audit.recording import MemoryRecording, Rec
from streams.core import VERSION
from streams.core.policy import Estimates, Limits, Memory, Policy, PriorityClass, TenantRules, Window
from tests.recorded import Recorder, first_policy

FOLDER = Path(__file__).parents[1] / "data" / "golden"
TOPICS = ("requests", "completions", "journal")

_SHARDS = 2
_TICKS = 50  # under each policy


def path_of(version: int) -> Path:
    """Return where the file of a version of the core is."""
    return FOLDER / f"history-v{version}.jsonl.gz"


def stated() -> Iterator[Policy]:
    """Rules that between them make use of everything that a policy can say."""
    base = replace(first_policy(), estimates=Estimates(prior_runs=2, decay_runs=8))
    yield base
    classes = (PriorityClass(name="default", weight=3, default_estimate=300), PriorityClass(name="batch"))
    members = {f"t{number}": TenantRules(group="guild", weight=1 + number) for number in range(3)}
    yield replace(
        base,
        between_classes="shares",
        classes=classes,
        groups={"guild": 2},
        tenants=base.tenants | members,
        window=Window(runs=6, tokens=4_000),
        limits=Limits(max_queued_runs=8, overload="drop_longest"),
    )
    known = {name: rules for name, rules in base.tenants.items() if name not in {"t0", "t1"}}
    yield replace(
        base,
        closed=True,
        on_removal="reject",
        tenants=known | {"t2": TenantRules(weight=3, max_runs_in_flight=1, max_queued_tokens=900)},
        classes=(PriorityClass(name="default"), PriorityClass(name="batch", min_share=20)),
        limits=Limits(max_queued_runs=12, max_run_tokens=1_500),
        estimates=Estimates(source="hint", min_charge=10),
        memory=Memory(ended_ms=500, ended_runs=20, flows=6, histories=5, tenant_histories=1),
    )
    yield replace(  # visits that a window or a cap breaks off; a group whose members come and go
        base,
        quantum=1_500,
        groups={"guild": 3},
        tenants={
            f"t{number}": TenantRules(
                weight=1 + number % 3,
                group="guild" if number % 2 else None,
                max_runs_in_flight=2 if number in {0, 1} else None,
                max_tokens_in_flight=900 if number in {2, 3} else None,
            )
            for number in range(8)
        },
        window=Window(runs=None, tokens=3_000),
        memory=Memory(ended_ms=300, ended_runs=5, flows=6),
    )
    yield replace(  # classes that go to and fro, and are blocked as a whole
        base,
        quantum=200,
        between_classes="shares",
        classes=(PriorityClass(name="default", weight=2), PriorityClass(name="batch", weight=2)),
        tenants={f"t{number}": TenantRules(weight=1 + number, max_runs_in_flight=1) for number in range(8)},
        window=Window(runs=5, tokens=2_500),
        estimates=Estimates(source="hint", min_charge=200),
    )
    impatient = replace(base.leases, lease_ms=400, min_lease_ms=200, max_attempts=2)  # many are given up too early
    yield replace(base, window=Window(runs=20, tokens=None), estimates=Estimates(source="max"), leases=impatient)


def tell(seed: int = 6) -> MemoryRecording:
    """Play it."""
    recorder = Recorder(random.Random(seed), _SHARDS, tenants=8)
    for policy in stated():
        recorder.state_policy(policy)
        for tick in range(_TICKS):
            recorder.file()
            if tick == _TICKS // 2:
                recorder.change_owner()
            recorder.tick()
    recorder.drain()
    return recorder.recording


def make(path: Path) -> None:
    """Write a new file; refuse to write over one."""
    recording = tell()
    with path.open("xb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        for (topic, partition), records in sorted(recording.topics.items()):
            if topic in TOPICS:
                for each in records:
                    packed.write(json.dumps([topic, partition, *map(_text, each)], ensure_ascii=False).encode() + b"\n")


def load(path: Path) -> MemoryRecording:
    """Read a file back."""
    recording = MemoryRecording(shards=_SHARDS)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            topic, partition, offset, timestamp, key, value, headers, readable = json.loads(line)
            given = tuple((name, text.encode()) for name, text in headers)
            record = Rec(offset, timestamp, _bytes(key), _bytes(value), given, readable)
            recording.topics.setdefault((topic, partition), []).append(record)
    return recording


def _text(part: Any) -> Any:
    if isinstance(part, bytes):
        return part.decode()
    return [(name, value.decode()) for name, value in part] if isinstance(part, tuple) else part


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


if __name__ == "__main__":
    make(path_of(VERSION))
