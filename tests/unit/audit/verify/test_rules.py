"""What was refused, let in, dispatched and settled is held against the rules: those that both topics claim were there.

Where both were altered nothing contradicts them but what was done, and that is what these are about.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from streams.audit.recording import MemoryRecording
from streams.audit.verify import verify
from streams.core.policy import Estimates, Limits, TenantRules, Window
from tests.recorded import first_policy
from tests.unit.audit.verify.silent import Silent
from tests.unit.audit.verify.tampered import Document
from tests.unit.audit.verify.tampering import altered, documents, restated

INTERVAL_MS = 1_000


@cache
def recording() -> MemoryRecording:
    """One shard under one policy that refuses all sorts of things, with workers of which many fall silent."""
    recorder = Silent(random.Random(4), 1, 6, abort_chance=0.0)
    policy = first_policy(6)
    tenants = dict(policy.tenants) | {
        "t1": TenantRules(weight=2, max_queued_runs=2),
        "t2": TenantRules(weight=1, paused=True),
        "t3": TenantRules(weight=2, max_runs_in_flight=2, max_tokens_in_flight=3_000),
    }
    del tenants["t5"]
    recorder.state_policy(
        replace(
            policy,
            tenants=tenants,
            closed=True,
            window=Window(runs=6, tokens=9_000),
            estimates=Estimates(source="hint"),
            limits=Limits(max_queued_runs=30, max_queued_bytes=1_000, max_run_tokens=1_800),
        )
    )
    for _ in range(200):
        recorder.file()
        recorder.file()
        recorder.tick()
    return recorder.recording


def test_nothing_is_wrong_with_it() -> None:
    report = verify(recording(), interval_ms=INTERVAL_MS)
    assert report.problems == []
    counted = Counter[str]()
    for each in documents(recording(), "journal", 0):
        counted.update(each["counts"])
    assert counted["lost"] > 10
    assert counted["late"] > 10


def sets(*path: str, to: object) -> Callable[[Document], None]:
    def change(policy: Document) -> None:
        place = policy
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = to

    return change


def removes(*path: str) -> Callable[[Document], None]:
    def change(policy: Document) -> None:
        place = policy
        for name in path[:-1]:
            place = place[name]
        del place[path[-1]]

    return change


CASES = [
    # refused, and not for that reason
    (sets("tenants", "t1", "max_queued_runs", to=50), "limits", "is refused as queue_full, and was not so"),
    (sets("tenants", "t2", "paused", to=False), "limits", "is refused as tenant_paused, and was not so"),
    (sets("closed", to=False), "limits", "is refused as unknown_tenant, and was not so"),
    (sets("limits", "max_run_tokens", to=None), "limits", "is refused as too_large, and was not so"),
    (sets("limits", "max_run_tokens", to=1_700), "limits", "names the limit 1800; it was 1700"),
    (sets("limits", "max_queued_runs", to=29), "limits", "overloaded"),
    # let in, and had to be refused
    (sets("tenants", "t1", "max_queued_runs", to=1), "limits", "was let in; it was queue_full"),
    (sets("tenants", "t0", "paused", to=True), "limits", "was let in; it was tenant_paused"),
    (removes("tenants", "t4"), "limits", "was let in; it was unknown_tenant"),
    (sets("limits", "max_queued_runs", to=3), "limits", "was let in; it was overloaded"),
    (sets("limits", "max_queued_bytes", to=5), "limits", "was let in; it was too_large"),
    (sets("classes", to=[{"name": "default", "default_estimate": 400}]), "limits", "was let in; it was unknown_class"),
    # dispatched above what may be in flight
    (sets("window", "runs", to=2), "window", "2 runs are in flight, and the window is 2"),
    (sets("window", "tokens", to=1_000), "window", "more do not fit 1000"),
    (sets("tenants", "t3", "max_runs_in_flight", to=1), "window", "1 runs of its tenant are in flight, 1 may be"),
    (sets("tenants", "t3", "max_tokens_in_flight", to=10), "window", "tokens of its tenant are in flight"),
    (sets("tenants", "t0", "paused", to=True), "window", "dispatched for a tenant that is paused"),
    # charged and tried otherwise
    (sets("estimates", "min_charge", to=900), "settlements", "900 spent"),
    (sets("leases", "lease_ms", to=3_100), "leases", "before its lease ran out"),
    (sets("leases", "lease_ms", to=3_100), "dispatches", "the lease is 3000 ms, asked was 3100"),
    (sets("leases", "max_attempts", to=1), "limits", "was tried again: attempts that count 1, allowed 1"),
    (sets("quantum", to=700), "deficits", "and 700 a round make"),
]


@pytest.mark.parametrize(("change", "check", "said"), CASES, ids=[f"{check}: {said}" for _, check, said in CASES])
def test_what_was_done_does_not_fit_other_rules(change: Callable[[Document], None], check: str, said: str) -> None:
    report = verify(restated(recording(), 0, 0, change), interval_ms=INTERVAL_MS)
    found = [each for each in report.problems if each.check == check and said in each.sentence]
    assert found, [each.sentence for each in report.problems][:20]
    assert found[0].step is not None


def test_a_deadline_that_has_not_passed_is_no_reason() -> None:
    """The request says now that it could have waited longer."""
    refusals = documents(recording(), "rejected", 0)
    refused = next(each for each in refusals if each["reason"] == "deadline_passed")
    offset = refused["position"]["offset"]
    index = next(index for index, each in enumerate(recording().topics["requests", 0]) if each.offset == offset)

    def later(document: Document) -> None:
        document["deadline_ms"] += 10_000

    report = verify(altered(recording(), "requests", 0, index, later), interval_ms=INTERVAL_MS)
    assert (report.problems[0].check, report.problems[0].step) == ("limits", refused["step"])
    assert "deadline_passed, and was not so" in report.problems[0].sentence
