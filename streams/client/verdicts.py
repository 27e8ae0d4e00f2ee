"""How a run ended, as a value; and the exceptions by which a function says so.

    raise TryAgain("the model is busy")       failed, another attempt may help
    raise GiveUp("no such document")          failed, no attempt will help
    raise HandBack("not on this machine")     given back unspent: no attempt is counted, nothing is charged

Any other exception counts as `TryAgain`: the run's `max_attempts` bounds how often.
"""

from __future__ import annotations

from asyncio import CancelledError
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.core.inputs import FAILED, RETURNED, SUCCEEDED

if TYPE_CHECKING:
    from streams.client.run import Run

# Why a run in progress is not wanted any more (`Run.unwanted`).
REVOKED: Final = "revoked"  # cancelled, or another attempt succeeded
DEADLINE: Final = "deadline"  # its deadline has passed
DRAINED: Final = "drained"  # this worker is shutting down and waits no longer


class TryAgain(Exception):
    """Raise it when the run failed and another attempt may help."""


class GiveUp(Exception):
    """Raise it when the run failed and no attempt will help."""


class HandBack(Exception):
    """Raise it when this worker cannot do the run; it goes back to its place, and no attempt is counted."""


class Unwanted(BaseException):
    """Raised by `Run.check` in a run that is not wanted any more.

    Not an `Exception`, so that a function's own `except Exception` does not swallow it.
    """


class Outcome(NamedTuple):
    """What is reported on an attempt that has ended."""

    status: str  # SUCCEEDED, FAILED or RETURNED of `streams.core.inputs`
    tokens: int | None = None  # in total; None: not known, the estimate stands
    retryable: bool = False
    error: str | None = None


def returned(error: str) -> Outcome:
    """Return the outcome of an attempt that this worker did not do."""
    return Outcome(RETURNED, error=error)


def judge_result(run: Run, result: object) -> Outcome:
    """Return the outcome of a function that returned: `int` is tokens in total, None leaves what `Run.spent` added up.

    Anything else is the mistake of a programmer: the work is done, but its cost is unknown, so the
    estimate stands and the outcome says what was wrong.
    """
    if result is None:
        return Outcome(SUCCEEDED, run.tokens)
    if isinstance(result, int) and not isinstance(result, bool) and result >= 0:
        return Outcome(SUCCEEDED, result)
    return Outcome(SUCCEEDED, run.tokens, error=f"returned {type(result).__name__}, not tokens (int >= 0) or None")


def judge_error(run: Run, error: BaseException) -> Outcome:
    """Return the outcome of a function that raised."""
    if run.unwanted is not None and isinstance(error, Unwanted | CancelledError):
        return given_up(run, run.unwanted)
    match error:
        case HandBack():
            return returned(_one_line(error))
        case GiveUp():
            return Outcome(FAILED, run.tokens, error=_one_line(error))
        case _:
            return Outcome(FAILED, run.tokens, retryable=True, error=_one_line(error))


def given_up(run: Run, why: str) -> Outcome:
    """Return the outcome of an attempt that was broken off because of `why` (REVOKED, DEADLINE, DRAINED)."""
    if why == DRAINED:
        return returned("the worker shut down")
    return Outcome(FAILED, run.tokens, error=why)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
