"""A run explained from a whole recording: which request is meant, where the replay begins, and where it must end."""

from __future__ import annotations

from functools import cache

import orjson
import pytest

from streams.audit.explain import document, explain, tell
from streams.audit.explain.explanation import _start
from streams.audit.explain.requests import find
from streams.audit.recording import MemoryRecording
from streams.errors import CheckpointWrong, ConfigError, NotReplayable
from streams.wire import decode_journal, partition_for
from tests.checkpointed import ends_of_steps, take, take_forged
from tests.recorded import record


@cache
def recorded() -> MemoryRecording:
    return record(1, ticks=60)


@cache
def requests() -> list[tuple[str, str]]:
    """(run, tenant) of the readable requests of the tenants' own shards, in order."""
    found = []
    for shard in range(recorded().shards):
        for each in recorded().read("requests", shard):
            value = each.value or b""
            message = orjson.loads(value) if each.readable and b'"workflow"' in value else {}
            if message and partition_for(message["tenant"], recorded().shards) == shard:
                found.append((message["run_id"], message["tenant"]))
    return found


@cache
def late() -> tuple[str, str, int]:
    """A run that was accepted in the middle of its shard's life: name, tenant, shard."""
    for run_id, tenant in requests()[len(requests()) // 3 :]:
        explained = explain(recorded(), run_id, tenant=tenant)
        if explained.life is not None and explained.life.accepted.step > 20 and explained.life.attempts:
            return run_id, tenant, explained.shard
    raise AssertionError("the recording is too short")


def with_checkpoint(before_step: int, shard: int) -> MemoryRecording:
    return take(recorded(), shard, ends_of_steps(recorded(), shard)[before_step - 2])


def test_from_a_checkpoint_it_is_the_same_explanation() -> None:
    run_id, tenant, shard = late()
    whole = explain(recorded(), run_id, tenant=tenant)
    assert whole.life is not None
    recording = with_checkpoint(whole.life.accepted.step - 9, shard)
    start = _start(recording, whole.chosen.asked)
    assert start is not None
    assert document(explain(recording, run_id, tenant=tenant)) == document(whole)

    journal = recording.topics["journal", shard]
    kept = [each for each in journal if decode_journal(each.value).step > start.step]
    assert document(explain(recording.replaced({("journal", shard): kept}), run_id, tenant=tenant)) == document(whole)
    with pytest.raises(NotReplayable):
        explain(recorded().replaced({("journal", shard): kept}), run_id, tenant=tenant)


def test_nothing_is_explained_from_a_checkpoint_that_the_journal_contradicts() -> None:
    run_id, tenant, shard = late()
    whole = explain(recorded(), run_id, tenant=tenant)
    assert whole.life is not None
    forged = take_forged(recorded(), shard, ends_of_steps(recorded(), shard)[whole.life.accepted.step - 10])
    with pytest.raises(CheckpointWrong, match="the journal says"):
        explain(forged, run_id, tenant=tenant)


def test_a_checkpoint_that_knows_the_run_is_too_late_whatever_its_time() -> None:
    run_id, tenant, shard = late()
    asked = find(recorded(), run_id, tenant)[0]
    explained = explain(recorded(), run_id, tenant=tenant)
    assert explained.life is not None
    step = explained.life.accepted.step
    early = take(recorded(), shard, ends_of_steps(recorded(), shard)[step - 10])
    both = take(early, shard, ends_of_steps(recorded(), shard)[step + 5])
    start = _start(both, asked._replace(at_ms=1 << 60))  # its producer's clock was ahead
    assert start is not None
    assert start.step < step
    assert _start(both, asked._replace(at_ms=0)) == start, "nor if nobody knows when it was written"
    late_only = take(recorded(), shard, ends_of_steps(recorded(), shard)[step + 5])
    assert _start(late_only, asked._replace(at_ms=1 << 60)) is None


def test_where_the_record_diverges_the_explanation_ends() -> None:
    run_id, tenant, shard = late()
    whole = explain(recorded(), run_id, tenant=tenant)
    assert whole.life is not None
    journal = list(recorded().topics["journal", shard])
    place = next(n for n, each in enumerate(journal) if decode_journal(each.value).step == whole.life.accepted.step + 1)
    message = orjson.loads(journal[place].value or b"")
    message["now_ms"] -= 1
    journal[place] = journal[place]._replace(value=orjson.dumps(message))
    cut = explain(recorded().replaced({("journal", shard): journal}), run_id, tenant=tenant)
    assert cut.divergence is not None
    assert cut.divergence.step == whole.life.accepted.step + 1
    assert cut.last == whole.life.accepted
    assert cut.life is not None
    assert cut.life.ended is None
    assert document(cut)["divergence"]["field"]


def test_a_run_that_ends_in_the_step_that_diverges_has_not_ended_as_far_as_is_known() -> None:
    run_id, tenant, shard = late()
    whole = explain(recorded(), run_id, tenant=tenant)
    assert whole.life is not None
    assert whole.life.ended is not None
    ended = whole.life.ended
    journal = list(recorded().topics["journal", shard])
    place = next(n for n, each in enumerate(journal) if decode_journal(each.value).step == ended.step)
    message = orjson.loads(journal[place].value or b"")
    message["counts"]["succeeded"] = 77
    journal[place] = journal[place]._replace(value=orjson.dumps(message))
    cut = explain(recorded().replaced({("journal", shard): journal}), run_id, tenant=tenant)
    assert cut.divergence is not None
    assert cut.divergence.step == ended.step
    assert cut.life is not None
    assert cut.life.ended is None
    assert sum(cut.life.divided.values()) == cut.life.seen_ms - cut.life.arrived_ms
    assert tell(cut)


def test_another_request_for_the_run_can_be_asked_about() -> None:
    twice = [name for name in requests() if len(find(recorded(), *name)) == 2]
    both = [explain(recorded(), run_id, tenant=tenant) for run_id, tenant in twice]
    accepted = next(each for each in both if each.answers[0].life is not None)
    run_id, tenant = accepted.run_id, accepted.tenant
    first, second = find(recorded(), run_id, tenant)
    assert accepted.chosen.asked == first
    duplicate = explain(recorded(), run_id, tenant=tenant, offset=second.offset)
    assert duplicate.chosen.refusal is not None
    assert duplicate.chosen.refusal.reason == "duplicate"
    with pytest.raises(ConfigError) as caught:
        explain(recorded(), run_id, tenant=tenant, offset=9_999)
    assert str(caught.value) == (
        f"--offset: no request for this run stands there; its requests: {first.offset}, {second.offset} (got 9999)"
    )


def test_a_refused_run_has_no_life_and_says_so() -> None:
    refused = [explain(recorded(), run_id, tenant=tenant) for run_id, tenant in requests()[::5]]
    told = [document(each) for each in refused if each.chosen.refusal is not None]
    assert told
    for each in told:
        assert each["run"] is None
        assert each["requests"][0]["refusal"]["reason"]


def test_an_empty_journal_tells_nothing() -> None:
    run_id, tenant, shard = late()
    explained = explain(recorded().replaced({("journal", shard): []}), run_id, tenant=tenant)
    assert (explained.last, explained.life, explained.chosen.moment) == (None, None, None)


def test_requests_that_a_checkpoint_before_a_time_has_behind_it_are_not_read() -> None:
    run_id, tenant, shard = late()
    whole = explain(recorded(), run_id, tenant=tenant)
    assert whole.life is not None
    step = whole.life.accepted.step
    recording = with_checkpoint(step - 9, shard)
    told: list[str] = []
    since_ms = whole.chosen.asked.at_ms
    found = explain(recording, run_id, tenant=tenant, since_ms=since_ms, tell=lambda what, *_: told.append(what))
    assert document(found) == document(whole)
    assert set(told) == {f"requests/{shard}", "journal"}
    after = take(recorded(), shard, ends_of_steps(recorded(), shard)[step + 2])
    with pytest.raises(ConfigError, match="no request"):
        explain(after, run_id, tenant=tenant, since_ms=1 << 60)
    assert explain(after, run_id, tenant=tenant, since_ms=1).run_id == run_id, "no checkpoint is that old"
