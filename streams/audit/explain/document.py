"""The explanation as plain values for programs. Times are ms since the epoch, durations ms, costs tokens."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from streams.audit.explain import parts
from streams.audit.explain.story import tell

if TYPE_CHECKING:
    from streams.audit.explain.curve import Slices
    from streams.audit.explain.explanation import Explanation
    from streams.audit.explain.life import Answer, Attempt, Life


def document(explanation: Explanation) -> dict[str, Any]:
    """Return all of it. `run` is None if the request was not accepted; then `requests` says why."""
    life = explanation.life
    return {
        "tenant": explanation.tenant,
        "run_id": explanation.run_id,
        "shard": explanation.shard,
        "story": tell(explanation),
        "explained_offset": explanation.chosen.asked.offset,
        "requests": [_request(answer) for answer in explanation.answers],
        "run": _run(life) if life is not None else None,
        "record_ends": _plain(explanation.last),
        "divergence": _plain(explanation.divergence),
    }


def _request(answer: Answer) -> dict[str, Any]:
    asked, refusal = answer.asked, answer.refusal
    found: dict[str, Any] = {
        "offset": asked.offset,
        "at_ms": asked.at_ms,
        "forwarded_from": asked.via,
        "taken_in": _plain(answer.moment),
        "accepted": answer.life is not None or answer.taken_back,
    }
    if refusal is not None:
        found["refusal"] = {
            "reason": refusal.reason,
            "detail": refusal.detail,
            "limit": refusal.limit,
            "value": refusal.value,
            "retry_after_ms": refusal.retry_after_ms,
        }
    return found


def _run(life: Life) -> dict[str, Any]:
    divided, submit = life.divided, life.asked.submit
    return {
        "class": life.class_,
        "workflow": submit.workflow,
        "arrived_ms": life.arrived_ms,
        "accepted": _plain(life.accepted),
        "ended": _plain(life.ended),
        "end": life.end,
        "end_detail": life.rejection.detail if life.rejection is not None else None,
        "state": life.state if life.ended is None else "ended",
        "waited_ms": parts.waited_ms(divided),
        "time_ms": divided,
        "estimate": {
            "tokens": life.estimate,
            "request_said": submit.estimate,
            "max_tokens": submit.max_tokens,
            **_plain(life.cost),
        },
        "at_arrival": {
            "deficit": life.deficit,
            "round": life.round,
            "window_runs": life.window_runs,
            "window_tokens": life.window_tokens,
            "ahead": _plain(life.ahead),
            "tenant_rules": _plain(life.rules),
        },
        "attempts": [_attempt(attempt) for attempt in life.attempts],
        "waiting_ms": parts.added(life.waiting),
        "ahead_at_last": _plain(life.ahead_at_last),
        "ready_ms": life.ready_ms if life.ended is None and life.state == "delayed" else None,
        "outages": _plain(life.outages),
        "policies": _plain(life.policies),
        "served_meanwhile": _plain(life.served),
        "points": _plain(life.curve.points),
        "time_slices": _slices(life.phases),
        "token_slices": _slices(life.meanwhile.slices),
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.number,
        "dispatched": _plain(attempt.dispatched),
        "seq": attempt.seq,
        "round": attempt.round,
        "estimate": attempt.estimate,
        "deficit_before": attempt.deficit_before,
        "deficit_after": attempt.deficit_before - attempt.estimate,
        "waited_ms": attempt.waited,
        "waited_last": attempt.waited_last,
        "took_ms": parts.added(attempt.took),
        "ended": _plain(attempt.ended),
        "outcome": attempt.outcome,
        "actual": attempt.actual if attempt.amended is None else attempt.amended,
        "reported": attempt.reported or attempt.amended is not None,
        "revoked": attempt.revoked,
        "reports": _plain(attempt.reports),
    }


def _slices(slices: Slices) -> dict[str, Any]:
    return {"width_ms": slices.width_ms, "slices": [{"at_ms": at_ms, "amounts": amounts} for at_ms, amounts in slices]}


def _plain(value: Any) -> Any:
    """Return records as objects and lists, fields named as in the messages: `class`, which Python cannot call so."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name.rstrip("_"): _plain(each) for name, each in asdict(value).items()}
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
