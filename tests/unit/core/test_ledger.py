"""The account of a flow: what each entry does to deficit, charged and actual."""

from __future__ import annotations

import pytest

from streams.core import ledger
from streams.core.records import FlowRecord
from tests.builders import make_flight


def account(deficit: int = 0, charged: int = 0, actual: int = 0) -> FlowRecord:
    return FlowRecord(class_="default", tenant="a", place=0, deficit=deficit, charged=charged, actual=actual)


def entries(flow: FlowRecord) -> tuple[int, int, int]:
    return flow.deficit, flow.charged, flow.actual


def test_a_charge_may_run_into_debt() -> None:
    flow = account(deficit=10)
    ledger.charge(flow, 25)
    assert entries(flow) == (-15, 25, 0)


@pytest.mark.parametrize(
    ("actual", "deficit"),
    [(100, 0), (40, 60), (0, 100), (10**9, 100 - 10**9)],
    ids=["exact", "refund", "nothing spent", "debt without a floor"],
)
def test_settling_corrects_the_charge_by_the_difference(actual: int, deficit: int) -> None:
    flow = account(deficit=100)
    ledger.charge(flow, 100)
    ledger.settle(flow, charged=100, actual=actual)
    assert entries(flow) == (deficit, actual, actual)


def test_amending_replaces_what_was_settled() -> None:
    flow = account()
    ledger.charge(flow, 100)
    ledger.settle(flow, charged=100, actual=30)
    ledger.amend(flow, before=30, actual=250)
    assert entries(flow) == (-250, 250, 250)


def test_a_heartbeat_charges_only_what_exceeds_the_charge() -> None:
    flow, attempt = account(), make_flight(estimate=100)
    ledger.charge(flow, 100)
    assert ledger.own_up(flow, attempt, 60) == 0
    assert (attempt.reported, attempt.charged) == (60, 100)
    assert ledger.own_up(flow, attempt, 130) == 30
    assert (attempt.reported, attempt.charged) == (130, 130)
    assert entries(flow) == (-130, 130, 0)


def test_heartbeats_out_of_order_change_nothing() -> None:
    flow, attempt = account(), make_flight(estimate=100)
    ledger.own_up(flow, attempt, 150)
    before = entries(flow)
    assert ledger.own_up(flow, attempt, 120) == 0
    assert ledger.own_up(flow, attempt, 150) == 0
    assert (attempt.reported, entries(flow)) == (150, before)


@pytest.mark.parametrize(
    ("balance", "tokens", "left"),
    [(-100, 30, -70), (-100, 100, 0), (-100, 500, 0), (0, 500, 0), (100, 30, 70), (100, 500, 0)],
)
def test_a_balance_fades_towards_zero_and_not_past_it(balance: int, tokens: int, left: int) -> None:
    assert ledger.fade(balance, tokens) == left
