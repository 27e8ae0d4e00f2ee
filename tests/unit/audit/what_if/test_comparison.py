"""Whether what is said of a change is what the change does, on records made by hand and on recorded ones."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from streams.audit.what_if import Change, Traffic, WhatIf, compare, make_traffic, read_record, show, to_json
from streams.core.policy import Limits, Policy, PriorityClass, TenantRules, Window
from streams.errors import ConfigError, FairstreamError
from tests.recorded import record
from tests.unit.audit.what_if.tape import POLICY, Tape

FLOOD = 40  # runs of the greedy tenant; the other has five


def flooded(policy: Policy = POLICY) -> Tape:
    """`greedy` files all of its runs at once, `modest` five behind them; served one after the other, FIFO-like."""
    tape = Tape(policy)
    for run in range(FLOOD):
        tape.request(0, f"g{run}", tenant="greedy")
    for run in range(5):
        tape.request(1, f"m{run}", tenant="modest")
    return tape


def played(change: Change, policy: Policy = POLICY) -> WhatIf:
    """The flood as FIFO on two slots would have served it, and then changed."""
    tape = flooded(policy)
    names = [("greedy", f"g{run}") for run in range(FLOOD)] + [("modest", f"m{run}") for run in range(5)]
    for number, (tenant, run_id) in enumerate(names):
        tape.serve_filed(5 + number // 2 * 100, run_id, tenant=tenant, lasts_ms=100)
    return compare(make_traffic(read_record(tape.recording)), change)


def test_fifo_is_what_happened_where_fifo_happened() -> None:
    found = played(Change(fifo=True))
    assert found.happened.waits["modest"].p50 - found.other.waits["modest"].p50 == 5, "the first step came after 5 ms"
    assert found.other.makespan_ms == found.happened.makespan_ms - 5


def test_the_real_core_serves_the_modest_tenant_at_its_turn() -> None:
    found = played(Change(quantum=50))
    assert found.other.waits["modest"].longest < found.happened.waits["modest"].first
    assert found.other.tokens == found.happened.tokens
    assert found.other.turned_away == 0


def test_weights_bind_and_stand_beside_what_they_give() -> None:
    found = played(Change(weights={"modest": 3}))
    tenants = {each["tenant"]: each for each in to_json(found)["tenants"]}
    assert tenants["modest"]["weight"] == {"happened": 1, "what_if": 3}
    assert found.other.waits["modest"].longest <= found.model.waits["modest"].longest


def test_whom_the_other_policy_refuses_is_counted_by_reason() -> None:
    closed = replace(POLICY, closed=True, tenants={"modest": TenantRules()})
    found = played(Change(policy=closed))
    assert found.other.refused == {"greedy": {"unknown_tenant": FLOOD}}
    assert (found.other.waits["modest"].runs, "greedy" in found.other.waits) == (5, False)
    document = to_json(found)
    assert document["what_if"]["refused"] == {"unknown_tenant": FLOOD}
    assert document["what_if"]["served_runs"] == 5
    assert document["tenants"][0]["what_if"]["waits_ms"] is None


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (replace(POLICY, default=TenantRules(max_queued_runs=10)), "queue_full"),
        (replace(POLICY, limits=Limits(max_queued_runs=10)), "overloaded"),
        (replace(POLICY, default=TenantRules(paused=True)), "tenant_paused"),
    ],
)
def test_limits_of_the_other_policy_hold(policy: Policy, reason: str) -> None:
    found = played(Change(policy=policy))
    refused = sum(reasons[reason] for reasons in found.other.refused.values())
    assert refused >= FLOOD - 12
    assert refused + sum(waits.runs for waits in found.other.waits.values()) == FLOOD + 5


def test_what_was_in_time_may_come_too_late() -> None:
    tape = Tape()
    for run in range(4):
        tape.request(0, f"r{run}", deadline_ms=tape.ms(150))
    for run in range(4):
        tape.serve_filed(run // 2 * 100, f"r{run}", lasts_ms=100)
    found = compare(make_traffic(read_record(tape.recording)), Change(window=1))
    assert found.model.refused == {}
    assert found.other.refused == {"a": {"expired": 2}}, "they would have begun at 200 and 300"
    assert found.other.waits["a"].longest == 100


def test_a_cap_of_the_other_policy_holds() -> None:
    capped = replace(POLICY, tenants={"greedy": TenantRules(max_runs_in_flight=1)})
    found = played(Change(policy=capped))
    assert found.other.waits["modest"].first <= 5
    assert found.other.makespan_ms >= FLOOD * 100, "one after the other"


def test_another_window_is_another_pool() -> None:
    found = played(Change(window=1))
    assert found.other.makespan_ms == (FLOOD + 5) * 100


def test_the_handover_delays_the_start_and_holds_the_slot() -> None:
    tape = flooded()
    names = [("greedy", f"g{run}") for run in range(FLOOD)] + [("modest", f"m{run}") for run in range(5)]
    for number, (tenant, run_id) in enumerate(names):
        tape.serve_filed(5 + number // 2 * 100, run_id, tenant=tenant, lasts_ms=100)
    traffic = make_traffic(read_record(tape.recording))
    slow = compare(traffic, Change(fifo=True), handover_ms=25).other
    assert slow.makespan_ms == 23 * (100 + 25)
    assert slow.waits["greedy"].first == 25


def test_shares_are_stated_by_the_weights_of_each_side() -> None:
    found = played(Change(weights={"greedy": 3}))
    assert found.contest is not None
    assert found.contest.tenants == ("greedy", "modest")
    assert found.happened.stated
    assert found.happened.shares["greedy"].weight == 1
    assert found.other.shares["greedy"].weight == 3


def test_where_weights_were_changed_shares_are_of_the_longer_part() -> None:
    """A share has one weight: the one before the change says nothing of what was divided after it."""
    tape = flooded()
    heavier = replace(POLICY, tenants={"modest": TenantRules(weight=3)})
    for turn in range(5):
        if turn == 1:
            tape.step(60, policy=heavier)
        for tenant, run in (("greedy", f"g{turn}"), ("modest", f"m{turn}")):
            tape.serve_filed(5 + turn * 100, run, tenant=tenant, lasts_ms=90)
    found = compare(make_traffic(read_record(tape.recording)), Change(quantum=50))
    assert found.contest is not None
    assert found.contest.interval == (60, 405), "backlogged from 1 on"
    assert found.happened.shares["modest"].weight == 3


def test_where_weights_stayed_a_change_of_policy_parts_nothing() -> None:
    tape = flooded()
    for turn in range(5):
        if turn == 1:
            tape.step(60, policy=replace(POLICY, quantum=7))
        for tenant, run in (("greedy", f"g{turn}"), ("modest", f"m{turn}")):
            tape.serve_filed(5 + turn * 100, run, tenant=tenant, lasts_ms=90)
    found = compare(make_traffic(read_record(tape.recording)), Change(quantum=50))
    assert found.contest is not None
    assert found.contest.interval == (1, 405)


def test_where_nobody_would_have_contended_no_share_is_stated() -> None:
    """Each would have got what it asked for: that it is what was stated would say nothing."""
    found = played(Change(window=10))
    assert found.happened.divided
    assert (found.other.divided, found.other.jain) == (False, None)
    assert to_json(found)["what_if"]["backlogged"] == []
    assert "No share is stated for what if" in shown(found)
    slower = played(Change(window=1, weights={"greedy": 50}))
    assert to_json(slower)["what_if"]["backlogged"] == ["greedy", "modest"]
    assert "No share is stated" not in shown(slower)


def test_that_fifo_has_the_window_of_all_shards_is_told() -> None:
    several = make_traffic(read_record(record(4, ticks=60)))
    assert "FIFO has all of it for one queue" in shown(compare(several, Change(fifo=True)))
    assert "FIFO" not in shown(compare(several, Change(window=3)))
    assert "one queue" not in shown(played(Change(fifo=True)))


def test_where_classes_divide_no_share_is_stated() -> None:
    classes = (PriorityClass(name="default"), PriorityClass(name="batch"))
    tape = Tape(replace(POLICY, classes=classes))
    for run in range(4):
        for tenant, class_ in (("a", "default"), ("b", "batch")):
            tape.request(0, f"{tenant}{run}", tenant=tenant, class_=class_)
    for run in range(4):
        for tenant in ("a", "b"):
            tape.serve_filed(10 + run * 100, f"{tenant}{run}", tenant=tenant, lasts_ms=100)
    found = compare(make_traffic(read_record(tape.recording)), Change(quantum=5))
    assert found.contest is not None
    assert (found.happened.stated, found.happened.jain) == (False, None)
    assert to_json(found)["tenants"][0]["happened"]["share_tokens"]["stated"] is None


@pytest.mark.parametrize("rules", [TenantRules(max_runs_in_flight=1), TenantRules(group="g")])
def test_where_a_tenant_is_held_back_no_share_is_stated(rules: TenantRules) -> None:
    groups = {"g": 1} if rules.group else {}
    found = played(Change(policy=replace(POLICY, tenants={"greedy": rules}, groups=groups)))
    assert (found.happened.stated, found.other.stated) == (True, False)


def test_a_tenant_that_is_not_there_gets_no_weight() -> None:
    with pytest.raises(ConfigError, match="nothing is recorded"):
        played(Change(weights={"gredy": 2}))


def test_an_interval_without_runs_is_told() -> None:
    tape = Tape()
    tape.served(0, "r")
    with pytest.raises(FairstreamError, match="no run to play"):
        make_traffic(read_record(tape.recording), until_ms=5)


def test_one_lonely_tenant_has_no_shares_to_compare() -> None:
    tape = Tape()
    tape.served(0, "r")
    found = compare(make_traffic(read_record(tape.recording)), Change(fifo=True))
    assert found.contest is None
    assert found.happened.shares == {}
    assert found.distance.p95 == ("a", 0)
    assert "no shares to compare" in shown(found)


@pytest.fixture(scope="module", params=[4, 5])
def traffic(request: pytest.FixtureRequest) -> Traffic:
    return make_traffic(read_record(record(request.param, ticks=60)))


@pytest.mark.parametrize(
    "change",
    [Change(fifo=True), Change(quantum=50), Change(window=3), Change(policy=Policy(window=Window(runs=6)))],
    ids=lambda change: change.title,
)
def test_every_run_is_served_refused_or_told_to_wait(traffic: Traffic, change: Change) -> None:
    found = compare(traffic, change)
    for side in (found.happened, found.model, found.other):
        assert sum(waits.runs for waits in side.waits.values()) + side.turned_away == len(traffic.arrivals)
    assert found.happened.turned_away == 0
    assert to_json(found)["record"]["runs"] == len(traffic.arrivals)


def test_the_same_record_gives_the_same_document() -> None:
    recorded = record(6, ticks=30)
    first, second = (to_json(compare(make_traffic(read_record(recorded)), Change(quantum=9))) for _ in "12")
    assert first == second


def test_people_see_everybody_and_how_far_the_model_is_off() -> None:
    text = shown(played(Change(weights={"modest": 3})))
    for needed in (
        "what if: weights modest=3",
        "greedy",
        "modest",
        "1 → 3",
        "The model is off by",
        "backlogged all the",
    ):
        assert needed in text


def test_who_would_wait_for_good_is_told_and_inputs_that_are_gone_are() -> None:
    tape = Tape()
    tape.served(0, "gone")
    for run in range(4):
        tape.request(200, f"r{run}")
    tape.step(250, policy=replace(POLICY, default=TenantRules(paused=True)))
    for run in range(4):  # the window was wider than ours will be: all of them had begun before the pause
        tape.serve_filed(250, f"r{run}")
    tape.recording.topics["requests", 0] = tape.recording.topics["requests", 0][1:]
    found = compare(make_traffic(read_record(tape.recording)), Change(window=1))
    assert (found.model.waiting, found.other.waiting) == ({"a": 2}, {"a": 3})
    text = shown(found)
    assert "Never begun, their tenants being paused: 3 runs." in text
    assert "1 steps" in text
    assert to_json(found)["what_if"]["waiting_runs"] == 3


def test_of_many_tenants_those_with_most_tokens_are_shown() -> None:
    tape = Tape()
    for number in range(45):
        tape.served(number * 1_000, "r", tenant=f"tenant-{number:02}", tokens=100 + number)
    text = shown(compare(make_traffic(read_record(tape.recording)), Change(fifo=True)))
    assert "tenant-04" not in text
    assert "tenant-05" in text
    assert "5 more tenants" in text


def test_on_a_narrow_terminal_no_number_is_cut() -> None:
    found = played(Change(weights={"modest": 3}))
    wide, narrow = shown(found), shown(found, width=80)
    assert "…" not in narrow
    tables = narrow.split("Waits go")[0]
    assert [tables.count(f"{name} wait") for name in ("first", "p50", "p95", "longest")] == [1, 1, 1, 1]
    assert len(narrow.splitlines()) > len(wide.splitlines())


def test_who_arrived_outside_is_counted_and_not_listed() -> None:
    tape = Tape()
    tape.served(0, "early", tenant="before")
    tape.served(1_000, "r")
    traffic = make_traffic(read_record(tape.recording), since_ms=tape.ms(500))
    text = shown(compare(traffic, Change(fifo=True)))
    assert "Left out, since they arrived before or after: 1 runs." in text
    assert "before " not in text.split("Waits go")[0]


def test_names_that_others_chose_are_not_obeyed() -> None:
    tape = Tape()
    tape.served(0, "r", tenant="[red]a\x1b[2J")
    text = shown(compare(make_traffic(read_record(tape.recording)), Change(fifo=True)))
    assert "[red]a\\x1b[2J" in text
    assert "\x1b" not in text


def shown(found: WhatIf, width: int = 110) -> str:
    console = Console(file=StringIO(), width=width, highlight=False)
    show(found, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()
