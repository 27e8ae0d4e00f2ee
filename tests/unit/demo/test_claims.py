"""Every claim can fail: a demo that always says yes says nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from streams.demo.claims import judge, judged_tenants
from streams.demo.measure import Figures, measure
from streams.demo.records import Records
from streams.simulate.backlog import Interval
from streams.simulate.baselines import Fifo, RoundRobin
from streams.simulate.bound import Gap
from streams.simulate.story import Story
from streams.simulate.waits import Waits
from tests.unit.demo.recorded import BEGIN_MS, accounts, record


@pytest.fixture
def figures(story: Story, records: Records) -> Figures:
    return measure(story, records, accounts(story, records), BEGIN_MS)


def failing(figures: Figures) -> set[str]:
    return {claim.name for claim in judge(figures) if not claim.holds}


def test_all_hold_for_ours(figures: Figures) -> None:
    assert failing(figures) == set()


def test_fifo_in_our_place_is_caught(story: Story) -> None:
    records = record(story, Fifo(), handover_ms=2)
    figures = measure(story, records, accounts(story, records), BEGIN_MS)
    assert {"waits", "shares"} <= failing(figures)


def test_turns_by_count_in_our_place_are_caught(story: Story) -> None:
    records = record(story, RoundRobin(), handover_ms=2)
    assert "shares" in failing(measure(story, records, accounts(story, records), BEGIN_MS))


def test_a_slow_handover_is_caught(story: Story) -> None:
    records = record(story, handover_ms=40)
    assert "throughput" in failing(measure(story, records, accounts(story, records), BEGIN_MS))


def test_one_small_tenant_that_waits_too_long_is_enough(figures: Figures) -> None:
    fifo = figures.fifo_waits["tiny"].p95
    limit = replace(figures, waits={**figures.waits, "tiny": Waits(2, 0, 0, fifo // 5, 0)})
    above = replace(figures, waits={**figures.waits, "tiny": Waits(2, 0, 0, fifo // 5 + 1, 0)})
    assert failing(limit) == set()
    assert failing(above) == {"waits"}


def test_whom_fifo_does_not_keep_waiting_is_not_judged(figures: Figures) -> None:
    # 60 s of the story are 300 ms at its compression of 200.
    patient = replace(figures, fifo_waits={**figures.fifo_waits, "tiny": Waits(2, 0, 0, 299, 0)})
    assert set(judged_tenants(figures)) == {"little", "tiny"}
    assert judged_tenants(patient) == ["little"]
    assert "1 more" in judge(patient)[0].evidence


def test_nobody_to_judge_is_no_success(figures: Figures) -> None:
    nobody = dict.fromkeys(figures.fifo_waits, Waits(1, 0, 0, 0, 0))
    assert failing(replace(figures, fifo_waits=nobody)) == {"waits"}


@pytest.mark.parametrize(
    ("makespan_ms", "holds"), [(1_000, True), (1_052, True), (1_053, False), (953, True), (952, False)]
)
def test_throughput_within_five_percent_either_way(figures: Figures, makespan_ms: int, *, holds: bool) -> None:
    timed = replace(figures, makespan_ms=makespan_ms, fifo_makespan_ms=1_000)
    assert ("throughput" not in failing(timed)) is holds


def test_a_share_off_by_more_than_five_percent(figures: Figures) -> None:
    share = figures.shares["big"]
    for observed, holds in ((share.stated * 95 // 100 + 1, True), (share.stated * 94 // 100, False)):
        shares = {**figures.shares, "big": share._replace(observed=observed)}
        assert ("shares" not in failing(replace(figures, shares=shares))) is holds


def test_a_gap_above_its_bound(figures: Figures) -> None:
    assert failing(replace(figures, gaps=[Gap("big", "large", Fraction(101), Fraction(100), Interval(0, 1))])) == {
        "bound"
    }


def test_without_a_contest_shares_and_bound_are_not_shown(figures: Figures) -> None:
    assert failing(replace(figures, contest=None, shares={}, gaps=())) == {"shares", "bound"}


def test_a_token_lost(figures: Figures) -> None:
    ledgers = {**figures.ledgers, "tiny": replace(figures.ledgers["tiny"], charged=figures.ledgers["tiny"].charged - 1)}
    broken = replace(figures, ledgers=ledgers)
    assert failing(broken) == {"conservation"}
    assert "tiny" in next(claim.evidence for claim in judge(broken) if claim.name == "conservation")


def test_a_run_dispatched_twice_or_a_gap(figures: Figures) -> None:
    assert failing(replace(figures, attempts=figures.attempts + 1)) == {"once"}
    assert failing(replace(figures, gapless=False)) == {"once"}
