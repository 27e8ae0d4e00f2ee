"""The comparison for programs: one JSON document with everything, and with the rules it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streams.audit.what_if.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.audit.what_if.change import Change
    from streams.audit.what_if.comparison import Distance, Side, WhatIf


def to_json(found: WhatIf) -> dict[str, Any]:
    """Return everything that `show` prints, and what it leaves out."""
    traffic, contest = found.traffic, found.contest
    return {
        "record": {
            "prefix": traffic.prefix,
            "shards": traffic.shards,
            "begin_ms": traffic.begin_ms,
            "runs": len(traffic.arrivals),
            "attempts": traffic.attempts,
            "tokens": sum(arrival.tokens for arrival in traffic.arrivals),
            "states": dict(traffic.states),
            "handover_ms": traffic.handover_ms,
            "policies": [{"from_ms": stated.at_ms, "name": stated.policy.name} for stated in traffic.policies],
            "left_out": totals(traffic.left_out),
            "unreadable_requests": traffic.unreadable,
            "steps_without_inputs": traffic.steps_cut,
        },
        "change": _change_json(found.change),
        "handover_ms": found.handover_ms,
        "contest": contest
        and {
            "from_ms": contest.interval.from_ms,
            "until_ms": contest.interval.until_ms,
            "tenants": contest.tenants,
        },
        "happened": _side_json(found.happened),
        "model": _side_json(found.model),
        "what_if": _side_json(found.other),
        "model_off_by": _distance_json(found.distance),
        "tenants": [_tenant_json(found, tenant) for tenant in tenants_of(found)],
        "rules": RULES,
    }


def tenants_of(found: WhatIf) -> list[str]:
    """Everyone of whom something is known, in the order of their first arrivals; who was left out altogether last."""
    played = dict.fromkeys(arrival.tenant for arrival in found.traffic.arrivals)
    return [*played, *(tenant for tenant in found.traffic.left_out if tenant not in played)]


def totals(by_tenant: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the runs of all tenants by their reasons."""
    summed: dict[str, int] = {}
    for reasons in by_tenant.values():
        for why, runs in reasons.items():
            summed[why] = summed.get(why, 0) + runs
    return summed


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "title": change.title,
        "policy": change.policy and change.policy.name,
        "fifo": change.fifo,
        "quantum": change.quantum,
        "window": change.window,
        "weights": dict(change.weights),
    }


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "makespan_ms": side.makespan_ms,
        "backlogged": list(side.backlogged),
        "jain_index": None if side.jain is None else float(side.jain),
        "served_runs": sum(waits.runs for waits in side.waits.values()),
        "refused": totals(side.refused),
        "waiting_runs": sum(side.waiting.values()),
    }


def _distance_json(off: Distance) -> dict[str, Any]:
    return {
        "p50_ms": {"half_within": off.half_p50, "farthest": off.p50[1], "tenant": off.p50[0]},
        "p95_ms": {"half_within": off.half_p95, "farthest": off.p95[1], "tenant": off.p95[0]},
        "share": {"tenant": off.share[0], "part": float(off.share[1])},
        "makespan": float(off.makespan),
    }


def _tenant_json(found: WhatIf, tenant: str) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "weight": {
            "happened": found.happened.policy.rules_for(tenant).weight,
            "what_if": found.other.policy.rules_for(tenant).weight,
        },
        "left_out": dict(found.traffic.left_out.get(tenant, {})),
        "happened": _tenant_side(found.happened, tenant),
        "model": _tenant_side(found.model, tenant),
        "what_if": _tenant_side(found.other, tenant),
    }


def _tenant_side(side: Side, tenant: str) -> dict[str, Any]:
    share, waits = side.shares.get(tenant), side.waits.get(tenant)
    return {
        "waits_ms": waits and waits._asdict(),
        "share_tokens": share
        and {"asked": share.asked, "stated": share.stated if side.stated else None, "observed": share.observed},
        "tokens": side.tokens.get(tenant, 0),
        "refused": dict(side.refused.get(tenant, {})),
        "waiting": side.waiting.get(tenant, 0),
    }
