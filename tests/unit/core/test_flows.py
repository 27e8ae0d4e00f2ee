"""A tenant's own caps."""

from __future__ import annotations

import pytest

from streams.core.flows import Flow, Tenant
from streams.core.policy import TenantRules
from streams.core.records import FlowRecord


def tenant(rules: TenantRules, runs: int, tokens: int) -> Tenant:
    made = Tenant("a", rules)
    made.flight_runs, made.flight_tokens = runs, tokens
    return made


@pytest.mark.parametrize(
    ("rules", "runs", "tokens", "room"),
    [
        (TenantRules(), 10**6, 10**9, True),
        (TenantRules(paused=True), 0, 0, False),
        (TenantRules(max_runs_in_flight=2), 1, 0, True),
        (TenantRules(max_runs_in_flight=2), 2, 0, False),
        (TenantRules(max_runs_in_flight=2), 5, 0, False),
        (TenantRules(max_tokens_in_flight=100), 1, 90, True),
        (TenantRules(max_tokens_in_flight=100), 1, 91, False),
        (TenantRules(max_tokens_in_flight=5), 0, 0, True),
        (TenantRules(max_tokens_in_flight=5), 1, 1, False),
    ],
    ids=[
        "no caps",
        "paused",
        "below the cap in runs",
        "at the cap in runs",
        "above a cap that was lowered",
        "fits the cap in tokens",
        "does not fit the cap in tokens",
        "bigger than the cap, alone",
        "bigger than the cap, not alone",
    ],
)
def test_room_for_a_run_of_ten_tokens(rules: TenantRules, runs: int, tokens: int, room: bool) -> None:
    assert tenant(rules, runs, tokens).has_room(10) is room


def test_a_flow_is_its_record_and_earns_by_weight() -> None:
    record = FlowRecord(class_="high", tenant="a", place=3, deficit=-7, accrued=2)
    flow = Flow(record, Tenant("a", TenantRules(weight=4)), quantum=25)
    assert (flow.key, flow.rate, flow.place, flow.deficit) == (("flow", "high", "a"), 100, 3, -7)
