"""The journal by itself, and the positions row that closes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from streams.audit.recording import MemoryRecording
from streams.rows import POSITIONS, PositionsRecord, decode, encode, encode_key
from tests.unit.audit.verify.tampered import SHARD, Document, check, first_of, journal, recording
from tests.unit.audit.verify.tampering import altered, mended, records

INDEX = 30


def sets(name: str, to: object) -> Callable[[Document], None]:
    return lambda document: document.__setitem__(name, to)


def sets_range(**to: int) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document["inputs"][0] |= to

    return change


CASES = [
    (INDEX, sets("epoch", 0), "steps", "it is of epoch 0, the one before of"),
    (INDEX, sets("now_ms", 1_700_000_000_000), "steps", "its time is 1700000000000 ms, that of the one before"),
    (INDEX, sets("step", 500), "steps", "step 500 follows step 30"),
    (INDEX, sets("shard", 1), "chain", "another shard's"),
    (0, sets("takeover", to=False), "steps", "the first step is no takeover"),
    (INDEX, sets("takeover", to=True), "steps", "takeover is True: epoch"),
]


@pytest.mark.parametrize(("index", "change", "kind", "said"), CASES, ids=[said for *_, said in CASES])
def test_a_step_that_does_not_follow_is_found(
    index: int, change: Callable[[Document], None], kind: str, said: str
) -> None:
    report = check(mended(altered(recording(), "journal", SHARD, index, change), SHARD))
    found = [each for each in report.problems if each.check == kind and said in each.sentence]
    assert [(each.shard, each.offset) for each in found] == [
        (SHARD, records(recording(), "journal", SHARD)[index].offset)
    ]


def test_a_first_step_that_names_one_before_it_is_found() -> None:
    problem = first_of(check(altered(recording(), "journal", SHARD, 0, sets("previous", "00ff"))))
    assert (problem.check, problem.step) == ("chain", 1)
    assert "00ff" in problem.sentence


def test_a_step_that_names_none_before_it_is_found() -> None:
    def change(document: Document) -> None:
        for name in ("core", "state", "previous"):
            del document[name]

    problem = first_of(check(altered(recording(), "journal", SHARD, INDEX, change)))
    assert (problem.check, problem.step) == ("chain", journal()[INDEX]["step"])


def test_a_range_that_ends_before_it_begins_is_found() -> None:
    index = next(index for index, each in enumerate(journal()) if index > INDEX and each["inputs"])
    report = check(mended(altered(recording(), "journal", SHARD, index, sets_range(first=9, last=3)), SHARD))
    assert any(each.check == "inputs" and "from 9 to 3" in each.sentence for each in report.problems)


def test_a_policy_that_is_applied_twice_is_found() -> None:
    index = next(index for index, each in enumerate(journal()) if index and each.get("policies"))

    def change(document: Document) -> None:
        document["inputs"][0] |= {"first": 0, "last": 0}

    problem = first_of(check(mended(altered(recording(), "journal", SHARD, index, change), SHARD)))
    assert (problem.check, problem.step) == ("inputs", journal()[index]["step"])
    assert "policy 0 was applied after" in problem.sentence


def positions(**changes: object) -> MemoryRecording:
    """The positions row says something else."""
    own, key = records(recording(), "state", SHARD), encode_key(SHARD, (POSITIONS,))
    index = max(index for index, each in enumerate(own) if each.key == key)
    row = decode((POSITIONS,), own[index].value or b"")
    assert isinstance(row, PositionsRecord)
    own[index] = own[index]._replace(value=encode(replace(row, **changes)))  # type: ignore[arg-type] # its fields
    return recording().replaced({("state", SHARD): own})


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"epoch": 0}, "steps", "the positions are of epoch 0"),
        ({"applied": {"requests": 3}}, "inputs", "requests were applied to"),
        ({"journal": "00"}, "chain", "closes the chain with no record here"),
    ],
)
def test_positions_that_are_not_the_journal_s_end_are_found(changes: dict[str, object], kind: str, said: str) -> None:
    report = check(positions(**changes))
    found = [each for each in report.problems if each.check == kind and said in each.sentence]
    assert [(each.topic, each.step) for each in found] == [("state", journal()[-1]["step"])]


def test_a_chain_that_is_closed_before_its_end_says_where() -> None:
    """Somebody has written a step more, and could not write the state."""
    own = records(recording(), "journal", SHARD)
    report = check(recording().replaced({("journal", SHARD): own[:-1]}))
    assert first_of(report).topic == "state"
    forged = own[-1]._replace(offset=own[-1].offset + 1, value=(own[-1].value or b"") + b" ")
    problem = first_of(check(recording().replaced({("journal", SHARD): [*own, forged]})))
    assert problem.step == journal()[-1]["step"]
