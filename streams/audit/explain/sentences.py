"""What a life was made of, a sentence each: for `story`, which says in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from streams.audit.explain import parts
from streams.audit.explain.words import counted, listed, percent, span
from streams.core.inputs import RETURNED
from streams.core.outcomes import LOST
from streams.core.run_view import OF_CLASS, OF_TENANT
from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.explain.life import Attempt, Life
    from streams.audit.explain.meanwhile import Served
    from streams.core.inputs import Submit
    from streams.core.run_view import CostView

_NAMED: Final = 3  # parts, tenants and attempts that are told of one by one


def where_it_went(divided: dict[str, int], waited: int) -> str:
    waits = sorted(((ms, part) for part, ms in divided.items() if part in parts.WAITS), key=lambda each: -each[0])
    told = [f"{span(ms)} ({ms / waited:.0%}) {parts.WORDS[part]}" for ms, part in waits[:_NAMED]]
    rest = sum(ms for ms, _ in waits[_NAMED:])
    if rest:
        told.append(f"{span(rest)} in other ways")
    return f"Of the wait, it spent {listed(told)}."


def what_ended_it(life: Life) -> str:
    if not life.attempts:
        return ""
    first = life.attempts[0]
    return f" It was dispatched by step {first.dispatched.step}, when {parts.ENDS[first.waited_last]}."


def who_went(served: list[Served], tenant: str, life: Life) -> str:
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


def its_tenant(tenant: str, life: Life) -> Iterator[str]:
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
        f"A round then gave its tenant {quantum * weight:,} tokens (quantum {quantum:,} times weight {weight}), and "
        f"before it stood {life.ahead.tokens:,} tokens of its own: it went {rounds} after it came."
    )


def its_tries(life: Life) -> Iterator[str]:
    """Tell of the attempts that were not the last one."""
    told = [f"attempt {each.number} {_outcome(each)}" for each in life.attempts[:-1]]
    if len(told) > _NAMED:
        told = [*told[:_NAMED], f"{len(told) - _NAMED:,} more came to nothing"]
    if told:
        yield f"It was dispatched {counted(len(life.attempts), 'time')}: {listed(told)}."


def _outcome(attempt: Attempt) -> str:
    report = attempt.reports[-1] if attempt.reports else None
    if report is None:
        return "was taken up by no worker"
    worker = visible(report.worker) if report.worker else "a worker"
    if attempt.outcome == LOST:
        return f"was taken up by {worker}, and its lease ran out"
    if attempt.outcome == RETURNED:
        return f"was returned by {worker}"
    error = f" ({visible(report.error)})" if report.error else ""
    return f"{attempt.outcome} at {worker}{error}"


def its_cost(life: Life) -> str:
    estimate = f"It was estimated at {counted(life.estimate, 'token')}, {_source(life.cost, life.asked.submit)}"
    costs = [each.actual for each in life.attempts if each.actual is not None]
    if not costs:
        return f"{estimate}."
    silent = sum(not each.reported for each in life.attempts if each.actual is not None)
    said = ""
    if silent:
        said = " (no usage was reported)" if silent == len(costs) else f" (no usage was reported for {silent} of them)"
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


def what_changed(life: Life) -> Iterator[str]:
    if life.outages:
        away = sum(outage.end_ms - outage.begin_ms for outage in life.outages)
        times = counted(len(life.outages), "time")
        yield f"The shard changed hands {times} meanwhile, and had no scheduler for {span(away)}."
    if life.policies:
        names = listed([f"{visible(each.name)} v{each.version} (step {each.moment.step})" for each in life.policies])
        yield f"The policy was changed meanwhile: {names}."
