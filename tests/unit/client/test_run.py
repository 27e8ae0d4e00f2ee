from __future__ import annotations

import pytest

from streams.client.run import Run
from streams.client.verdicts import DEADLINE, REVOKED, Unwanted
from tests.unit.client.fakes import make_assignment


def test_it_shows_the_assignment() -> None:
    run = Run(
        make_assignment("r9", attempt=4, deadline_ms=99, body=b'{"max_tokens":8,"payload":[1],"headers":{"a":"b"}}')
    )
    assert (run.tenant, run.run_id, run.workflow, run.attempt) == ("acme", "r9", "summarise", 4)
    assert (run.payload, run.headers, run.max_tokens, run.deadline_ms) == ([1], {"a": "b"}, 8, 99)
    assert run.key == ("acme", "r9", 4)


def test_what_was_spent_adds_up() -> None:
    run = Run(make_assignment())
    seen = [run.tokens]
    for tokens in (0, 3, 4):
        run.spent(tokens)
        seen.append(run.tokens)
    assert seen == [None, 0, 3, 7]


def test_nothing_can_be_spent_back() -> None:
    run = Run(make_assignment())
    run.spent(3)
    with pytest.raises(ValueError, match="-1"):
        run.spent(-1)
    assert run.tokens == 3


def test_the_first_reason_to_abandon_stands() -> None:
    run = Run(make_assignment())
    run.check()
    run.abandon(DEADLINE)
    run.abandon(REVOKED)
    assert run.unwanted == DEADLINE
    with pytest.raises(Unwanted, match=DEADLINE):
        run.check()


def test_unwanted_passes_through_except_exception() -> None:
    assert not issubclass(Unwanted, Exception)
