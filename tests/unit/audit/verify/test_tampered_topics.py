"""What is done to the other topics is found where it was done, by what the journal says of the same things."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from streams.audit.recording import MemoryRecording
from streams.audit.verify import verify
from streams.core.inputs import SUCCEEDED
from streams.wire import Assignment, decode_dispatch
from tests.recorded import Recorder, policies
from tests.unit.audit.verify.tampered import (
    SHARD,
    Document,
    Path,
    changing,
    check,
    diverges_at,
    documents_or_nothing,
    first_of,
    journal,
    named,
    recording,
)
from tests.unit.audit.verify.tampering import altered, documents, doubled, dropped, records, restated

# --- the dispatch topic


def dispatch(has: Callable[[Any], bool]) -> tuple[int, int, int]:
    """Partition, index and step of a record of the dispatch topic of the shard."""
    for partition in range(2):
        for index, each in enumerate(records(recording(), "dispatch", partition)):
            given = decode_dispatch(each.value)
            if given.shard == SHARD and index > 0 and has(given):
                return partition, index, given.step
    raise AssertionError("there is none")


@pytest.mark.parametrize("name", ["tenant", "run_id", "attempt", "class", "estimate", "lease_ms", "workflow", "epoch"])
def test_an_altered_dispatch_is_found(name: str) -> None:
    partition, index, step = dispatch(lambda each: isinstance(each, Assignment))
    problem = first_of(check(altered(recording(), "dispatch", partition, index, changing(name))))
    assert (problem.check, problem.shard, problem.step, problem.topic) == ("dispatches", SHARD, step, "dispatch")
    assert (problem.partition, problem.offset) == (partition, records(recording(), "dispatch", partition)[index].offset)


def test_a_payload_that_is_not_the_request_s_is_found() -> None:
    partition, index, step = dispatch(lambda each: isinstance(each, Assignment))
    problem = first_of(check(altered(recording(), "dispatch", partition, index, changing("payload", "number"))))
    assert (problem.check, problem.step) == ("dispatches", step)


def test_an_altered_revocation_is_found() -> None:
    partition, index, step = dispatch(lambda each: not isinstance(each, Assignment))
    problem = first_of(check(altered(recording(), "dispatch", partition, index, changing("reason"))))
    assert (problem.check, problem.step) == ("dispatches", step)


def test_a_dropped_dispatch_is_found() -> None:
    partition, index, step = dispatch(lambda each: isinstance(each, Assignment))
    report = check(dropped(recording(), "dispatch", partition, index))
    assert [(each.check, each.shard, each.step) for each in report.problems] == [("dispatches", SHARD, step)]


def test_a_doubled_dispatch_is_found() -> None:
    partition, index, step = dispatch(lambda each: isinstance(each, Assignment))
    problem = first_of(check(doubled(recording(), "dispatch", partition, index)))
    assert (problem.check, problem.shard, problem.step) == ("dispatches", SHARD, step)
    assert problem.offset == records(recording(), "dispatch", partition)[index].offset + 1


# --- the rejected topic


def refusal(reason: str) -> tuple[int, int, int]:
    """Partition, index and step of a refusal of the shard; not the first: without that, it seems deleted by age."""
    for partition in range(2):
        for index, each in enumerate(documents(recording(), "rejected", partition)):
            if index and each["shard"] == SHARD and each["reason"] == reason:
                return partition, index, each["step"]
    raise AssertionError(f"none of {reason}")


@pytest.mark.parametrize("reason", ["expired", "duplicate", "tenant_paused", "invalid"])
def test_a_dropped_refusal_is_found(reason: str) -> None:
    partition, index, step = refusal(reason)
    report = check(dropped(recording(), "rejected", partition, index))
    assert [(each.check, each.shard, each.step) for each in report.problems] == [("refusals", SHARD, step)]


@pytest.mark.parametrize("reason", ["expired", "duplicate", "invalid"])
def test_a_doubled_refusal_is_found(reason: str) -> None:
    partition, index, step = refusal(reason)
    problem = first_of(check(doubled(recording(), "rejected", partition, index)))
    assert (problem.check, problem.shard, problem.step) == ("refusals", SHARD, step)


@pytest.mark.parametrize(
    ("path", "found"),
    [(("run_id",), "refusals"), (("limit",), "limits"), (("value",), "limits"), (("position", "offset"), "refusals")],
    ids=named,
)
def test_an_altered_refusal_is_found(path: Path, found: str) -> None:
    partition, index, step = refusal("expired")
    problem = first_of(check(altered(recording(), "rejected", partition, index, changing(*path))))
    assert (problem.check, problem.shard, problem.step) == (found, SHARD, step)


# --- the inputs


def step_that_took(topic: str, offset: int) -> int:
    for each in journal():
        for taken in each["inputs"]:
            if taken["topic"] == topic and taken["first"] <= offset <= taken["last"]:
                return int(each["step"])
    raise AssertionError("no step did")


def completion() -> tuple[int, int]:
    """Index of a completion that told what a run has cost, and the step that took it in."""
    settled = {(each, 1) for step in journal() for each in step["settlements"]["run_id"]}
    for index, each in enumerate(documents_or_nothing("completions")):
        final = each.get("status") == SUCCEEDED and each.get("tokens")
        if index > 30 and final and (each["run_id"], each["attempt"]) in settled:
            offset = records(recording(), "completions", SHARD)[index].offset
            return index, step_that_took("completions", offset)
    raise AssertionError("there is none")


@pytest.mark.parametrize("name", ["tokens", "attempt", "run_id"])
def test_an_altered_completion_is_found(name: str) -> None:
    index, step = completion()
    problem = first_of(check(altered(recording(), "completions", SHARD, index, changing(name))))
    assert (problem.check, problem.shard, problem.step) == ("settlements", SHARD, step)


def test_a_dropped_completion_is_found() -> None:
    index, step = completion()
    problem = first_of(check(dropped(recording(), "completions", SHARD, index)))
    assert (problem.shard, problem.step) == (SHARD, step)


def accepted() -> tuple[int, int, int]:
    """Index of a request that was let in and served, the step that took it in, the one that served it."""
    served = {run: each["step"] for each in reversed(journal()) for run in each["decisions"]["run_id"]}
    for index, each in enumerate(records(recording(), "requests", SHARD)):
        document = documents_or_nothing("requests")[index]
        if index > 20 and document.get("workflow") and document["run_id"] in served and document.get("estimate"):
            return index, step_that_took("requests", each.offset), served[document["run_id"]]
    raise AssertionError("there is none")


@pytest.mark.parametrize("path", [("workflow",), ("payload", "number")], ids=named)
def test_a_request_that_says_something_else_than_its_dispatch_is_found(path: Path) -> None:
    index, _, served = accepted()
    problem = first_of(check(altered(recording(), "requests", SHARD, index, changing(*path))))
    assert (problem.check, problem.shard, problem.step) == ("dispatches", SHARD, served)


def test_the_estimate_of_a_request_is_for_a_replay() -> None:
    """What comes of it depends on the history of the workflow."""

    def change(document: Document) -> None:
        document["estimate"], document["max_tokens"] = None, 1

    index, taken, _ = accepted()
    assert diverges_at(altered(recording(), "requests", SHARD, index, change)) == taken


def test_a_dropped_request_is_found() -> None:
    index, taken, _ = accepted()
    problem = first_of(check(dropped(recording(), "requests", SHARD, index)))
    assert (problem.check, problem.shard, problem.step) == ("inputs", SHARD, taken)


# --- the policy, and what follows from it


def test_an_altered_weight_in_the_policy_topic_is_found() -> None:
    change = changing("policy", "tenants", "t0", "weight")
    problem = first_of(check(altered(recording(), "policy", 0, 1, change)))
    assert (problem.check, problem.topic, problem.offset) == ("policies", "policy", 1)
    assert "weight" in problem.sentence
    assert problem.step == next(each["step"] for each in journal() if each.get("policies", [{}])[0].get("offset") == 1)


@cache
def busy() -> MemoryRecording:
    """One shard with three tenants that ask for more than there is, all the time."""
    recorder = Recorder(random.Random(1), 1, 3, abort_chance=0.0)
    recorder.state_policy(policies(3)[0])
    for _ in range(420):
        for _ in range(3):
            recorder.file()
        recorder.tick()
    return recorder.recording


@pytest.mark.parametrize("check_name", ["deficits", "bound", "shares"])
def test_a_weight_that_was_never_in_force_is_found(check_name: str) -> None:
    """Both topics were altered, so nothing contradicts them but what was done."""
    assert verify(busy(), interval_ms=5_000).problems == []

    def change(policy: Document) -> None:
        policy["tenants"]["t0"]["weight"] = 200

    report = verify(restated(busy(), 0, 0, change), interval_ms=5_000)
    found = [each for each in report.problems if each.check == check_name]
    assert found
    assert found[0].step is not None


# --- the state topic


def test_an_altered_row_is_found() -> None:
    own = records(recording(), "state", SHARD)
    index = max(index for index, each in enumerate(own) if each.key and b'"flow"' in each.key and each.value)
    own[index] = own[index]._replace(value=(own[index].value or b"").replace(b"[1,", b"[1,1", 1))
    report = check(recording().replaced({("state", SHARD): own}))
    assert {each.check for each in report.problems} == {"rows"}
    assert first_of(report).topic == "state"
