"""Finding a run, and what is said if it is not there."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from streams.audit.explain.requests import find
from streams.audit.recording import MemoryRecording, Rec
from streams.core.shard import Shard
from streams.errors import ConfigError
from streams.wire import FORWARDED, Proof, encode_cancel, encode_journal, encode_request, partition_for
from tests.builders import make_submit

SHARDS = 4


def request(tenant: str, run_id: str, offset: int, **more: object) -> tuple[int, Rec]:
    value = encode_request(tenant=tenant, run_id=run_id, workflow="sum")
    return partition_for(tenant, SHARDS), Rec(offset, 1_000 + offset, tenant.encode(), value, **more)  # type: ignore[arg-type]


def recorded(records: Iterable[tuple[int, Rec]]) -> MemoryRecording:
    recording = MemoryRecording(shards=SHARDS)
    for partition, record in records:
        recording.topics.setdefault(("requests", partition), []).append(record)
    return recording


def refusal(recording: MemoryRecording, run_id: str, tenant: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        find(recording, run_id, tenant)
    return str(caught.value)


def test_it_is_found_without_its_tenant() -> None:
    recording = recorded([request("a", "r1", 0), request("b", "r2", 0), request("a", "r1", 3)])
    found = find(recording, "r1")
    assert [(each.shard, each.offset, each.at_ms, each.submit.tenant, each.via) for each in found] == [
        (partition_for("a", SHARDS), 0, 1_000, "a", None),
        (partition_for("a", SHARDS), 3, 1_003, "a", None),
    ]
    assert find(recording, "r1", "a") == found


def test_runs_of_several_tenants_are_told_apart() -> None:
    recording = recorded([request("a", "r1", 0), request("b", "r1", 0)])
    assert refusal(recording, "r1") == "--tenant: several tenants have a run of this name: a, b; say whose"
    assert [each.submit.tenant for each in find(recording, "r1", "b")] == ["b"]


def test_a_name_that_is_part_of_another_is_not_found() -> None:
    recording = recorded([request("a", "r10", 0)])
    assert refusal(recording, "r1") == "RUN_ID: no request of such a run is recorded (got 'r1')"
    assert refusal(recording, "r1", "a") == "RUN_ID: no request of such a run is recorded of tenant a (got 'r1')"


def test_a_name_may_be_written_in_another_way() -> None:
    value = rb'{"tenant":"a","run_id":"r\u0031","workflow":"sum"}'
    recording = recorded([(partition_for("a", SHARDS), Rec(0, 1, b"a", value))])
    assert [each.offset for each in find(recording, "r1")] == [0]


def test_where_it_was_forwarded_from_is_told_and_where_it_stood_first_is_not_its_place() -> None:
    here = partition_for("a", SHARDS)
    away = (here + 1) % SHARDS
    origin = f"runs.requests:{away}:7"
    first = away, request("a", "r1", 7)[1]
    recording = recorded([first, request("a", "r1", 2, headers=((FORWARDED, origin.encode()),))])
    assert [(each.shard, each.offset, each.via) for each in find(recording, "r1")] == [(here, 2, origin)]


def test_a_cancel_is_no_request() -> None:
    value = encode_cancel(tenant="a", run_id="r1")
    recording = recorded([(partition_for("a", SHARDS), Rec(0, 1, b"a", value))])
    assert "no request" in refusal(recording, "r1")


def test_a_request_that_no_client_could_read_is_named() -> None:
    shard = partition_for("a", SHARDS)
    assert refusal(recorded([request("a", "r1", 5, readable=False)]), "r1") == (
        "RUN_ID: a request that names it could not be read, and was refused: "
        f"requests/{shard} offset 5: headers: no client can read them (got 'r1')"
    )
    broken = recorded([(shard, Rec(0, 1, b"a", b'{"tenant":"a","run_id":"r1"}'))])
    assert "workflow" in refusal(broken, "r1")


def journal(run_id: str, *, steps: int = 0) -> Rec:
    """The record of the step that dispatched a run, after so many others."""
    core = Shard(0, 1)
    for _ in range(steps):
        core.step([], 5)
    effects = core.step([make_submit("a", run_id, position=0)], 5)
    proof = Proof(core=1, state="", previous="")
    return Rec(0, 5, b"0", encode_journal(effects, shard=0, epoch=1, policy_version=-1, inputs=[], proof=proof))


def test_a_request_that_has_been_deleted_is_told_from_one_that_never_was() -> None:
    shard = partition_for("a", SHARDS)
    recording = recorded([request("a", "r9", 70)])
    recording.topics["journal", shard] = [journal("r1")]
    gone = (
        "RUN_ID: no request of such a run is recorded of tenant a; "
        f"of shard {shard} the record begins with offset 70: what was before has been deleted, or moved here"
    )
    assert refusal(recording, "r1", "a") == (
        f"{gone}; the journal tells of its attempt 1, dispatched in step 1 there (got 'r1')"
    )
    assert refusal(recording, "r2", "a") == f"{gone} (got 'r2')"
    assert refusal(recording, "default", "a") == f"{gone} (got 'default')", "the journal has that text, and no such run"
    assert f"of shard {shard} the record begins with offset 70" in refusal(recording, "r1")


def test_a_run_that_was_moved_here_is_told_from_one_that_never_was() -> None:
    shard = partition_for("a", SHARDS)
    recording = recorded([request("a", "r9", 0)])
    recording.topics["journal", shard] = [journal("r1", steps=3)]
    assert "dispatched in step 4 there" in refusal(recording, "r1", "a")
    recording.topics["journal", shard] = [journal("r1")]
    assert refusal(recording, "r1", "a") == ("RUN_ID: no request of such a run is recorded of tenant a (got 'r1')"), (
        "a whole record is not searched"
    )


def test_who_looks_for_it_is_told_how_far_the_search_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.audit.explain.requests._TELL_EVERY", 3)
    shard = partition_for("a", SHARDS)
    recording = recorded(request("a", f"r{number}", 10 + number) for number in range(8))
    told: list[tuple[str, int, int]] = []
    find(recording, "r7", "a", tell=lambda *what: told.append(what))
    assert told == [(f"requests/{shard}", done, 8) for done in (0, 3, 6, 8)]
