"""What is done to the journal is found where it was done: naively, or by an insider who makes the chain right again.

The table says what arithmetic finds by itself, and what only a replay does: of that the arithmetic says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from tests.unit.audit.verify.tampered import (
    SHARD,
    Document,
    Path,
    again_in_step,
    changing,
    check,
    diverges_at,
    first_of,
    full,
    index_of,
    journal,
    named,
    recording,
)
from tests.unit.audit.verify.tampering import altered, doubled, dropped, mended, swapped

DECIDED, SETTLED = full("decisions", "seq"), full("settlements", "tenant")
REFUSED, REVOKED = full("rejections", "tenant"), full("revokes", "seq")
TAKEN_IN, RULED = full("inputs"), full("policies")

# What an insider changes in a journal record: (where the record is, the field, who finds it).
FIELDS: Final[list[tuple[Callable[[Document], object], Path, str]]] = [
    (DECIDED, ("step",), "verify"),
    (DECIDED, ("epoch",), "verify"),
    (DECIDED, ("takeover",), "verify"),
    (lambda each: each["rejections"]["reason"] == ["expired"], ("now_ms",), "verify"),
    (DECIDED, ("policy_version",), "verify"),
    (DECIDED, ("core",), "replay"),
    (DECIDED, ("state",), "replay"),
    (TAKEN_IN, ("inputs", 0, "first"), "verify"),
    (TAKEN_IN, ("inputs", 0, "last"), "verify"),
    *(
        (DECIDED, ("decisions", name, 0), "verify")
        for name in ("seq", "tenant", "run_id", "class", "attempt", "estimate")
    ),
    *((SETTLED, ("settlements", name, 0), "verify") for name in ("tenant", "run_id", "attempt", "outcome", "estimate")),
    *((SETTLED, ("settlements", name, 0), "verify") for name in ("actual", "reported")),
    *((REFUSED, ("rejections", name, 0), "verify") for name in ("tenant", "run_id", "reason", "position")),
    *((REVOKED, ("revokes", name, 0), "verify") for name in ("seq", "tenant", "run_id", "attempt", "reason")),
    (full("counts", "dispatched"), ("counts", "dispatched"), "verify"),
    (full("counts", "accepted"), ("counts", "accepted"), "verify"),
    (full("counts", "expired"), ("counts", "expired"), "verify"),
    (full("counts", "succeeded"), ("counts", "succeeded"), "replay"),
    (RULED, ("policies", 0, "author"), "verify"),
    (RULED, ("policies", 0, "applied_ms"), "verify"),
    (RULED, ("policies", 0, "offset"), "verify"),
    (RULED, ("policies", 0, "policy", "quantum"), "verify"),
    (RULED, ("policies", 0, "policy", "tenants", "t0", "weight"), "verify"),
]


def test_the_recording_has_nothing_wrong() -> None:
    assert check(recording()).problems == []


@pytest.mark.parametrize(("where", "path", "_by"), FIELDS, ids=named)
def test_a_field_that_is_altered_breaks_the_chain(where: Callable[[Document], object], path: Path, _by: str) -> None:
    index = index_of(where)
    step = journal()[index]["step"]
    report = check(altered(recording(), "journal", SHARD, index, changing(*path)))
    chain = [each for each in report.problems if each.check == "chain"]
    assert [(each.shard, each.step) for each in chain] == [(SHARD, step + 1)], "the one after names another before it"


@pytest.mark.parametrize(("where", "path", "by"), FIELDS, ids=named)
def test_a_field_that_an_insider_alters_is_found(where: Callable[[Document], object], path: Path, by: str) -> None:
    index = index_of(where)
    step = journal()[index]["step"]
    given = mended(altered(recording(), "journal", SHARD, index, changing(*path)), SHARD)
    report = check(given)
    assert not any(each.check == "chain" for each in report.problems)
    if by == "verify":
        assert first_of(report).shard == SHARD
        assert first_of(report).step in {step, shown_by(path, index)}
    else:
        assert report.problems == []
        assert diverges_at(given) == step


def shown_by(path: Path, index: int) -> int:
    """The step at which two records contradict each other, where one by itself is right as well."""
    document = journal()[index]
    if path == ("step",):
        return int(document["step"]) + 1  # so it says
    if path == ("inputs", 0, "last"):
        topic = document["inputs"][0]["topic"]
        later = (each for each in journal()[index + 1 :] if any(taken["topic"] == topic for taken in each["inputs"]))
        return int(next(later)["step"])
    return int(document["step"])


@pytest.mark.parametrize("name", ["deficit", "round"])
def test_a_deficit_is_held_against_the_one_before_it(name: str) -> None:
    index = index_of(lambda each: again_in_step(each) is not None)
    place = again_in_step(journal()[index])
    assert place is not None
    given = mended(altered(recording(), "journal", SHARD, index, changing("decisions", name, place)), SHARD)
    problem = first_of(check(given))
    assert (problem.check, problem.shard, problem.step) == ("deficits", SHARD, journal()[index]["step"])


@pytest.mark.parametrize("name", ["deficit", "round"])
def test_a_flow_s_first_deficit_is_for_a_replay(name: str) -> None:
    """What a flow comes in with is in no topic: a debt that has faded, or nothing."""
    index = next(index for index, each in enumerate(journal()) if DECIDED(each))
    given = mended(altered(recording(), "journal", SHARD, index, changing("decisions", name, 0)), SHARD)
    assert diverges_at(given) == journal()[index]["step"]


PLACES: Final = {"first": 0, "middle": 30, "last": -1}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("insider", [False, True], ids=["naive", "insider"])
def test_a_dropped_step_is_found(place: str, insider: bool) -> None:
    index = PLACES[place] % len(journal())
    given = dropped(recording(), "journal", SHARD, index)
    problem = first_of(check(mended(given, SHARD) if insider else given))
    step = journal()[index]["step"]
    # Of the last one nothing is left but what it took in, and what it sent.
    expected = {"first": {step, step + 1}, "middle": {step, step + 1}, "last": {step, step - 1}}
    assert problem.shard == SHARD
    assert problem.step in expected[place]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("insider", [False, True], ids=["naive", "insider"])
def test_a_doubled_step_is_found(place: str, insider: bool) -> None:
    index = PLACES[place] % len(journal())
    given = doubled(recording(), "journal", SHARD, index)
    report = check(mended(given, SHARD) if insider else given)
    assert (first_of(report).shard, first_of(report).step) == (SHARD, journal()[index]["step"])
    assert {each.check for each in report.problems} <= {"chain", "steps"}, "it is followed once, and the rest is right"


@pytest.mark.parametrize("place", ["first", "middle"])
@pytest.mark.parametrize("insider", [False, True], ids=["naive", "insider"])
def test_swapped_steps_are_found(place: str, insider: bool) -> None:
    given = swapped(recording(), "journal", SHARD, PLACES[place])
    problem = first_of(check(mended(given, SHARD) if insider else given))
    step = journal()[PLACES[place]]["step"]
    assert problem.shard == SHARD
    assert problem.step in {step, step + 1}


def test_the_last_step_altered_breaks_with_the_positions_row() -> None:
    given = altered(recording(), "journal", SHARD, len(journal()) - 1, changing("state"))
    problem = first_of(check(given))
    assert (problem.check, problem.topic, problem.step) == ("chain", "state", journal()[-1]["step"])


def test_the_hash_of_the_last_step_is_that_of_the_rows() -> None:
    given = mended(altered(recording(), "journal", SHARD, len(journal()) - 1, changing("state")), SHARD)
    problem = first_of(check(given))
    assert (problem.check, problem.step) == ("rows", journal()[-1]["step"])


@pytest.mark.parametrize("index", [10, 25, 40])
def test_what_follows_a_gap_proves_nothing_wrong(index: int) -> None:
    """Else one record that is missing would be found in a hundred places."""
    step = journal()[index]["step"]
    found = check(dropped(recording(), "journal", SHARD, index)).problems
    assert {each.step for each in found} <= {step, step + 1}
