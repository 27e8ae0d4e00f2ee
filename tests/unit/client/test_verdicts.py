from __future__ import annotations

from asyncio import CancelledError

import pytest

from streams.client.run import Run
from streams.client.verdicts import (
    DEADLINE,
    DRAINED,
    REVOKED,
    GiveUp,
    HandBack,
    Outcome,
    TryAgain,
    Unwanted,
    given_up,
    judge_error,
    judge_result,
)
from tests.unit.client.fakes import make_assignment


@pytest.mark.parametrize(
    ("result", "spent", "expected"),
    [
        (None, None, Outcome("succeeded", None)),
        (None, 7, Outcome("succeeded", 7)),
        (12, None, Outcome("succeeded", 12)),
        (12, 7, Outcome("succeeded", 12)),
        (0, 7, Outcome("succeeded", 0)),
        (-1, 7, Outcome("succeeded", 7, error="returned int, not tokens (int >= 0) or None")),
        (True, None, Outcome("succeeded", None, error="returned bool, not tokens (int >= 0) or None")),
        ("12", 7, Outcome("succeeded", 7, error="returned str, not tokens (int >= 0) or None")),
    ],
)
def test_a_result_is_tokens_or_leaves_what_was_spent(result: object, spent: int | None, expected: Outcome) -> None:
    run = Run(make_assignment())
    if spent is not None:
        run.spent(spent)
    assert judge_result(run, result) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TryAgain("busy"), Outcome("failed", 7, retryable=True, error="TryAgain: busy")),
        (GiveUp("no\nsuch  document"), Outcome("failed", 7, error="GiveUp: no such document")),
        (HandBack(), Outcome("returned", error="HandBack")),
        (KeyError("x"), Outcome("failed", 7, retryable=True, error="KeyError: 'x'")),
        (SystemExit(3), Outcome("failed", 7, retryable=True, error="SystemExit: 3")),
        (CancelledError(), Outcome("failed", 7, retryable=True, error="CancelledError")),
    ],
)
def test_an_exception_says_whether_to_try_again(error: BaseException, expected: Outcome) -> None:
    run = Run(make_assignment())
    run.spent(7)
    assert judge_error(run, error) == expected


@pytest.mark.parametrize("how", [Unwanted("x"), CancelledError()])
@pytest.mark.parametrize(
    ("why", "expected"),
    [
        (REVOKED, Outcome("failed", 7, error="revoked")),
        (DEADLINE, Outcome("failed", 7, error="deadline")),
        (DRAINED, Outcome("returned", error="the worker shut down")),
    ],
)
def test_what_ends_an_unwanted_run_is_why_it_is_unwanted(how: BaseException, why: str, expected: Outcome) -> None:
    run = Run(make_assignment())
    run.spent(7)
    run.abandon(why)
    assert judge_error(run, how) == expected == given_up(run, why)


def test_an_unwanted_run_may_still_fail_by_itself() -> None:
    run = Run(make_assignment())
    run.abandon(REVOKED)
    assert judge_error(run, GiveUp("broken")) == Outcome("failed", None, error="GiveUp: broken")
