"""The explanation in a few sentences, for whoever asks why a run took so long and knows nothing of rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streams.audit.explain import parts
from streams.audit.explain.life import CANCELLED
from streams.audit.explain.sentences import (
    its_cost,
    its_tenant,
    its_tries,
    what_changed,
    what_ended_it,
    where_it_went,
    who_went,
)
from streams.audit.explain.words import counted, listed, moment, span
from streams.core.inputs import FAILED, SUCCEEDED
from streams.core.reasons import DEADLINE_PASSED, EXPIRED
from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.explain.explanation import Explanation
    from streams.audit.explain.life import Answer, Life
    from streams.audit.explain.requests import Asked


def tell(explanation: Explanation) -> list[str]:
    """Return the story, a sentence or two to an item, the most important first."""
    name = f"Run {visible(explanation.run_id)} of tenant {visible(explanation.tenant)}"
    life = explanation.life
    told = _refused(name, explanation) if life is None else _lived(name, explanation, life)
    return [*told, *_other_requests(explanation)]


# --- a run that never was


def _refused(name: str, explanation: Explanation) -> Iterator[str]:
    answer = explanation.chosen
    where = f"requests/{explanation.shard} offset {answer.asked.offset}"
    if answer.moment is None:
        upto = f"step {explanation.last.step}" if explanation.last is not None else "the beginning"
        yield f"{name} was asked for ({where}), and no step of the record has taken that in: it ends with {upto}."
        return
    step, at_ms = answer.moment
    if answer.refusal is None:
        yield f"{name} was taken in and taken back by the same step: {step}, at {moment(at_ms)} ({where})."
        return
    refusal = answer.refusal
    yield f"{name} was refused at {moment(at_ms)} (step {step}, {where}): {visible(refusal.detail)}."
    again = (
        "another try would not have helped"
        if refusal.retry_after_ms is None
        else f"another try made sense after {span(refusal.retry_after_ms)}"
    )
    yield f"The reason is {refusal.reason}; {again}."
    yield from _deadline(answer.asked, refusal.reason)


def _deadline(asked: Asked, reason: str | None) -> Iterator[str]:
    """Tell of a deadline that was missed; the reason's own words have it as a number."""
    if reason in {EXPIRED, DEADLINE_PASSED} and asked.submit.deadline_ms is not None:
        yield f"Its deadline was {moment(asked.submit.deadline_ms)}."


def _other_requests(explanation: Explanation) -> Iterator[str]:
    others = [answer for answer in explanation.answers if answer is not explanation.chosen]
    if others:
        told = listed([f"offset {answer.asked.offset} ({_fate(answer)})" for answer in others])
        yield f"It was asked for {counted(len(others) + 1, 'time')}; the other requests: {told}."


def _fate(answer: Answer) -> str:
    if answer.refusal is not None:
        return answer.refusal.reason
    if answer.life is not None:
        return f"another run, which {_end(answer.life)}"
    return "taken back at once" if answer.taken_back else "not taken in yet"


# --- one that was accepted


def _lived(name: str, explanation: Explanation, life: Life) -> Iterator[str]:
    divided = life.divided
    waited = parts.waited_ms(divided)
    yield f"{name} {_summary(life, waited, divided)}"
    yield from _deadline(life.asked, life.end)
    yield _arrival(life, explanation.shard)
    if waited:
        yield where_it_went(divided, waited) + what_ended_it(life)
    served = life.served
    if any(each.runs for each in served):
        yield who_went(served, explanation.tenant, life)
    yield from its_tenant(explanation.tenant, life)
    yield from its_tries(life)
    yield its_cost(life)
    yield from what_changed(life)
    yield from _still_waiting(life)


def _summary(life: Life, waited: int, divided: dict[str, int]) -> str:
    spent = f"waited {span(waited)}, ran {span(divided.get(parts.RUNNING, 0))}"
    if silent := divided.get(parts.SILENT, 0):
        spent += f", lost {span(silent)} until a silent worker was given up"
    tries = f"at attempt {life.attempts[-1].number}" if len(life.attempts) > 1 else ""
    if life.ended is None:
        state = {"in_flight": "is in flight", "overdue": "is past its deadline"}.get(life.state, "is still waiting")
        return f"{state} at the end of the record; it has waited {span(waited)} so far."
    if life.end in {SUCCEEDED, FAILED}:
        how = f"{life.end} {tries}".rstrip()
        return f"{spent} and {how}{_why_failed(life)}."
    if life.end == CANCELLED:
        return f"{spent} and was cancelled by its tenant."
    detail = visible(life.rejection.detail) if life.rejection is not None else ""
    return f"{spent} and was rejected ({life.end}): {detail}."


def _end(life: Life) -> str:
    if life.end is None:
        return "has not ended"
    return life.end if life.end in {SUCCEEDED, FAILED} else f"ended as {life.end}"


def _why_failed(life: Life) -> str:
    if life.end != FAILED:
        return ""
    error = next((report.error for report in reversed(life.attempts[-1].reports) if report.error), None)
    return f" ({visible(error)}), not to be tried again" if error else ", not to be tried again"


def _arrival(life: Life, shard: int) -> str:
    asked = life.asked
    where = f"requests/{shard} offset {asked.offset}, taken in by step {life.accepted.step}"
    via = f", forwarded from {visible(asked.via)}" if asked.via is not None else ""
    begin = f"It came at {moment(life.arrived_ms)} ({where}{via})"
    if life.ahead is None:
        return f"{begin} and was dispatched by that step: nothing stood before it that could go."
    ahead = life.ahead
    waiting = (
        (ahead.runs, ahead.tokens, "of its own tenant and class"),
        (ahead.before_runs, ahead.before_tokens, "of classes listed before its own"),
        (ahead.others_runs, ahead.others_tokens, "of other tenants in its class"),
    )
    told = [f"{counted(runs, 'run')} {whose} ({counted(tokens, 'token')})" for runs, tokens, whose in waiting if runs]
    return f"{begin} and found {listed(told)} waiting." if told else f"{begin} and found nothing else waiting."


def _still_waiting(life: Life) -> Iterator[str]:
    ahead = life.ahead_at_last
    if ahead is None:
        return
    stand = "stands" if ahead.runs == 1 else "stand"
    before = f"{counted(ahead.runs, 'run')} of its own tenant and class {stand} before it"
    if life.state == "delayed":
        yield f"{before}, and it may not go before {moment(life.ready_ms)}."
    elif life.state == "overdue":
        yield "One of the next steps will refuse it."
    elif ahead.rounds is None:
        yield f"{before}; its tenant earns nothing now, so nobody can say when it goes."
    else:
        when = f"about {counted(ahead.rounds, 'round')}" if ahead.rounds else "the round under way"
        yield f"{before}; if nothing else comes, it goes in {when}."
