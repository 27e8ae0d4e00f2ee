"""Runs that end by other ways than at the door or by a worker: given up for others, taken out, removed."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from streams.audit.recording import MemoryRecording
from streams.audit.verify import verify
from streams.core import counts
from tests.unit.audit.verify.narrow import narrow
from tests.unit.audit.verify.tampered import Document
from tests.unit.audit.verify.tampering import altered, documents, dropped, mended, restated


@cache
def recording() -> MemoryRecording:
    return narrow()


def test_nothing_is_wrong_with_it() -> None:
    counted = Counter[str]()
    for each in documents(recording(), "journal", 0):
        counted.update(each["counts"])
    ways = (counts.DROPPED, counts.UNDELIVERABLE, counts.REMOVED, "refused.too_large", counts.REVOKED)
    assert all(counted[each] for each in ways), counted
    assert verify(recording(), interval_ms=1_000).problems == []


WORDS = {
    "gave way": "the most waiting for its weight",
    "taken out": "its record takes 900 bytes",
    "removed": "is no longer in policy",
    "too large": "more than the topics take",
}


def refusal(detail: str) -> tuple[int, Document]:
    """Index and text of a refusal, by its words."""
    for index, each in enumerate(documents(recording(), "rejected", 0)):
        if index and detail in each["detail"]:
            return index, each
    raise AssertionError(f"nobody was told: {detail}")


@pytest.mark.parametrize("why", WORDS)
def test_a_refusal_that_is_not_there_is_found(why: str) -> None:
    index, said = refusal(WORDS[why])
    problem = verify(dropped(recording(), "rejected", 0, index)).problems[0]
    assert (problem.check, problem.step) == ("refusals", said["step"])


@pytest.mark.parametrize("why", WORDS)
def test_a_refusal_that_the_journal_has_not_is_found(why: str) -> None:
    """An insider has taken it out of both."""
    index, said = refusal(WORDS[why])
    step = next(at for at, each in enumerate(documents(recording(), "journal", 0)) if each["step"] == said["step"])

    def change(document: Document) -> None:
        own = document["rejections"]
        place = own["run_id"].index(said["run_id"])
        for column in own.values():
            del column[place]

    given = mended(altered(dropped(recording(), "rejected", 0, index), "journal", 0, step, change), 0)
    assert verify(given).problems[0].step == said["step"]


def test_nobody_has_to_give_way_under_a_policy_that_refuses() -> None:
    def change(policy: Document) -> None:
        policy["limits"]["overload"] = "refuse"

    problems = verify(restated(recording(), 0, 0, change)).problems
    assert any(each.check == "limits" and "the policy says that nobody has to" in each.sentence for each in problems)


def test_a_tenant_that_is_named_was_not_removed() -> None:
    def change(policy: Document) -> None:
        policy["tenants"]["t0"] = {}

    problems = verify(restated(recording(), 0, 1, change)).problems
    assert any(each.check == "limits" and "a tenant that is not named, and it is" in each.sentence for each in problems)


@pytest.mark.parametrize(("why", "limit"), [("taken out", 801), ("too large", 31)])
def test_the_limit_of_the_topics_is_that_of_the_journal(why: str, limit: int) -> None:
    index, said = refusal(WORDS[why])

    def change(document: Document) -> None:
        document["limit"] = limit

    problem = verify(altered(recording(), "rejected", 0, index, change)).problems[0]
    assert (problem.check, problem.step) == ("limits", said["step"])
