"""The explanation in a few sentences, for whoever asks why a run took so long and knows nothing of rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from streams.audit.explain import parts
from streams.audit.explain.life import CANCELLED
from streams.audit.explain.words import counted, listed, moment, percent, span
from streams.core.inputs import FAILED, SUCCEEDED
from streams.core.run_view import OF_CLASS, OF_TENANT
from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.explain.explanation import Explanation
    from streams.audit.explain.life import Answer, Life
    from streams.audit.explain.meanwhile import Served
    from streams.core.inputs import Submit
    from streams.core.run_view import CostView

_NAMED: Final = 3  # parts, and tenants, that the story tells of


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
    yield _arrival(life, explanation.shard)
    if waited:
        yield _where_it_went(divided, waited)
    served = life.served
    if any(each.runs for each in served):
        yield _meanwhile(served, explanation.tenant, life)
    yield from _tenant(explanation.tenant, life)
    yield _cost(life)
    yield from _disturbances(life)
    yield from _still_waiting(life)


def _summary(life: Life, waited: int, divided: dict[str, int]) -> str:
    ran = divided.get(parts.RUNNING, 0)
    tries = f"at attempt {life.attempts[-1].number}" if len(life.attempts) > 1 else ""
    if life.ended is None:
        state = {"in_flight": "is in flight", "overdue": "is past its deadline"}.get(life.state, "is still waiting")
        return f"{state} at the end of the record; it has waited {span(waited)} so far."
    if life.end in {SUCCEEDED, FAILED}:
        how = f"{life.end} {tries}".rstrip()
        return f"waited {span(waited)}, ran {span(ran)} and {how}{_why_failed(life)}."
    if life.end == CANCELLED:
        return f"waited {span(waited)}, ran {span(ran)} and was cancelled by its tenant."
    detail = visible(life.rejection.detail) if life.rejection is not None else ""
    return f"waited {span(waited)}, ran {span(ran)} and was rejected ({life.end}): {detail}."


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


def _where_it_went(divided: dict[str, int], waited: int) -> str:
    waits = sorted(((ms, part) for part, ms in divided.items() if part in parts.WAITS), key=lambda each: -each[0])
    told = [f"{span(ms)} ({ms / waited:.0%}) {parts.WORDS[part]}" for ms, part in waits[:_NAMED]]
    rest = sum(ms for ms, _ in waits[_NAMED:])
    if rest:
        told.append(f"{span(rest)} in other ways")
    return f"Of the wait, it spent {listed(told)}."


def _meanwhile(served: list[Served], tenant: str, life: Life) -> str:
    runs = sum(each.runs for each in served)
    own = [each for each in served if each.tenant == tenant and each.class_ == life.class_]
    others = [each for each in served if each not in own and each.runs]
    told = [_share(each, visible(each.tenant), life) for each in others[:_NAMED]]
    if len(others) > _NAMED:
        rest = sum(each.share_ppm for each in others[_NAMED:])
        told.append(f"{counted(len(others) - _NAMED, 'other tenant')} {percent(rest)}")
    told += [_share(each, "its own tenant", life) for each in own]
    return f"Meanwhile {counted(runs, 'run')} went before it; of their tokens {listed(told)}."


def _share(each: Served, name: str, life: Life) -> str:
    stated = f"weight {each.weight}" if each.weight is not None else "new"
    if each.class_ != life.class_:
        stated = f"class {visible(each.class_)}"
    elif each.stated_share_ppm:
        of = " of its class" if len(life.arrival.classes) > 1 else ""
        stated += f", stated share {percent(each.stated_share_ppm)}{of}"
    return f"{name} got {percent(each.share_ppm)} ({stated})"


def _tenant(tenant: str, life: Life) -> Iterator[str]:
    if life.deficit < 0:
        yield f"When it came, {visible(tenant)} owed {-life.deficit:,} tokens, which its rounds had to pay first."
    if not life.attempts or life.attempts[0].round == life.round:
        return
    rounds = counted(life.attempts[0].round - life.round, "round")
    quantum, weight = life.arrival.shard.quantum, life.rules.weight
    if life.rules.group is not None or life.ahead is None:
        yield f"It went {rounds} after it came."
        return
    yield (
        f"A round gave its tenant {quantum * weight:,} tokens (quantum {quantum:,} times weight {weight}), and before "
        f"it stood {life.ahead.tokens:,} tokens of its own: it went {rounds} after it came."
    )


def _cost(life: Life) -> str:
    estimate = f"It was estimated at {counted(life.estimate, 'token')}, {_source(life.cost, life.asked.submit)}"
    costs = [each.actual for each in life.attempts if each.actual is not None]
    if not costs:
        return f"{estimate}."
    said = "" if all(each.reported for each in life.attempts if each.actual is not None) else " (no usage was reported)"
    attempts = "" if len(costs) == 1 else f" over {counted(len(costs), 'attempt')}"
    ratio = f", {sum(costs) / life.estimate:.1f} times that" if sum(costs) != life.estimate else ""
    return f"{estimate}; it cost {sum(costs):,}{attempts}{ratio}{said}."


def _source(cost: CostView, submit: Submit) -> str:
    """Say where an estimate comes from, as `streams.core.estimator` decides it."""
    bound = f", within its max_tokens {submit.max_tokens:,}" if submit.max_tokens is not None else ""
    if submit.estimate is not None and cost.source == "hint":
        return f"as its request said{bound}"
    if submit.estimate is not None and cost.source == "max":
        bound = f" or the {submit.estimate:,} of its request, if that is more{bound}"
    prior = {OF_CLASS: "the default of its class", OF_TENANT: "the mean of its tenant's other workflows"}.get(
        cost.prior_from, "the mean of its workflow over all tenants"
    )
    if not cost.count:
        return f"from {prior} ({cost.prior:,}), its tenant having no history of that workflow{bound}"
    return (
        f"from {counted(cost.count, 'run')} of that workflow of its tenant (mean {cost.mean:,}) and, as "
        f"{counted(cost.prior_runs, 'run')} more, {prior} ({cost.prior:,}){bound}"
    )


def _disturbances(life: Life) -> Iterator[str]:
    if life.outages:
        away = sum(outage.end_ms - outage.begin_ms for outage in life.outages)
        times = counted(len(life.outages), "time")
        yield f"The shard changed hands {times} meanwhile, and had no scheduler for {span(away)}."
    if life.policies:
        names = listed([f"{visible(each.name)} v{each.version} (step {each.moment.step})" for each in life.policies])
        yield f"The policy was changed meanwhile: {names}."


def _still_waiting(life: Life) -> Iterator[str]:
    ahead = life.ahead_at_last
    if ahead is None:
        return
    before = f"{counted(ahead.runs, 'run')} of its own tenant and class stand before it"
    if ahead.rounds is None:
        yield f"{before}; its tenant earns nothing now, so nobody can say when it goes."
    else:
        yield f"{before}; if nothing else comes, it goes in about {counted(ahead.rounds, 'round')}."
