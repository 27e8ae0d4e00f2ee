"""A comparison for programs: everything that is shown, and what is not, as plain values. Times are the story's own."""

from __future__ import annotations

from typing import Any

from streams.simulate.bound import Gap
from streams.simulate.comparison import Comparison, Outcome
from streams.simulate.contestants import OURS
from streams.simulate.story import Story
from streams.simulate.waits import Waits


def document(comparison: Comparison) -> dict[str, Any]:
    """Return what `fairstream simulate --json` prints. Names that end in `_ms` are milliseconds, shares are tokens."""
    story = comparison.story
    return {
        "name": story.name,
        "title": story.title,
        "holds": comparison.holds,
        "runs": len(story.arrivals),
        "tokens": sum(comparison.asked.values()),
        "slots": story.slots,
        "shards": story.shards,
        "tokens_per_s_and_slot": story.tokens_per_s / story.compression,
        "until_ms": story.until_ms * story.compression,
        "outages": [
            {
                "from_ms": each.at_ms * story.compression,
                "until_ms": each.until_ms * story.compression,
                "slots": each.slots,
            }
            for each in story.outages
        ],
        "quantum": story.policy.quantum,
        "tenants": [_tenant(comparison, tenant) for tenant in comparison.asked],
        "schedulers": [_outcome(story, outcome) for outcome in comparison.outcomes],
    }


def _tenant(comparison: Comparison, tenant: str) -> dict[str, Any]:
    story = comparison.story
    return {
        "tenant": tenant,
        "weight": comparison.weights[tenant],
        "asked": comparison.asked[tenant],
        "stated": comparison.ideal[tenant][-1],
        "small": tenant in comparison.small,
        "observed": {outcome.scheduler: outcome.worked[tenant][-1] for outcome in comparison.outcomes},
        "waits_ms": {outcome.scheduler: _waits(story, outcome.waits.get(tenant)) for outcome in comparison.outcomes},
    }


def _outcome(story: Story, outcome: Outcome) -> dict[str, Any]:
    return {
        "scheduler": outcome.scheduler,
        "jain_index": float(outcome.jain),
        "furthest_from_ideal": {
            "tokens": outcome.distance.tokens,
            "tenant": outcome.distance.tenant,
            "at_ms": outcome.distance.at_ms * story.compression,
        },
        "widest_gap": _gap(story, outcome.widest) if outcome.widest else None,
        "nearest_to_bound": _bound(story, outcome.gap) if outcome.gap and outcome.scheduler == OURS else None,
        "waits_ms": _waits(story, outcome.all_waits),
        "small_waits_ms": _waits(story, outcome.small_waits),
        "makespan_ms": outcome.makespan_ms * story.compression,
        "tokens_per_s": outcome.throughput / story.compression,
        "slots_used": float(outcome.used),
        "lost": {"attempts": outcome.lost_attempts, "tokens": outcome.lost_tokens},
        "refused": dict(outcome.refused),
    }


def _gap(story: Story, gap: Gap) -> dict[str, Any]:
    return {
        "tenants": [gap.first, gap.second],
        "observed_tokens_per_weight": float(gap.observed),
        "from_ms": gap.interval.from_ms * story.compression,
        "until_ms": gap.interval.until_ms * story.compression,
    }


def _bound(story: Story, gap: Gap) -> dict[str, Any]:
    return _gap(story, gap) | {"bound_tokens_per_weight": float(gap.bound), "holds": gap.holds}


def _waits(story: Story, waits: Waits | None) -> dict[str, int] | None:
    if waits is None:
        return None
    scale = story.compression
    return {
        "runs": waits.runs,
        "first": waits.first * scale,
        "p50": waits.p50 * scale,
        "p95": waits.p95 * scale,
        "longest": waits.longest * scale,
    }
