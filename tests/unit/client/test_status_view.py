from __future__ import annotations

from dataclasses import replace

from streams.client.status_view import overview, spent_so_far
from streams.core.snapshot import ClassView, FlowView, ShardView
from streams.wire import Status

NOW_MS = 100_000

FLOW = FlowView(
    tenant="a",
    class_="default",
    plan="pro",
    group=None,
    weight=2,
    state="active",
    skip="turn",
    queued_runs=1,
    queued_tokens=10,
    flight_runs=1,
    flight_tokens=5,
    deficit=-3,
    rounds_to_go=0,
    charged=60,
    actual=50,
    dispatched=4,
    ended=3,
    oldest_submitted_ms=40_000,
    stated_share_ppm=250_000,
    lag=-7,
    ratio_ppm=1_100_000,
    error_p50_ppm=250_000,
    error_p90_ppm=3_000_000,
)
CLASS = ClassView(
    class_="default",
    place=0,
    weight=3,
    min_share=0,
    stated_share_ppm=750_000,
    deficit=-40,
    round=12,
    known_flows=3,
    active_flows=2,
    blocked_flows=1,
    queued_runs=4,
    queued_tokens=400,
    gap=120,
    bound=900,
    past_charged=0,
    past_dispatched=0,
    past_ended=0,
)
SHARD = ShardView(
    shard=0,
    shards=2,
    epoch=1,
    step=9,
    now_ms=99_000,
    seq=4,
    policy_name="p",
    policy_version=2,
    quantum=100,
    window_runs=8,
    window_tokens=None,
    flight_runs=1,
    flight_tokens=5,
    queued_runs=1,
    queued_bytes=0,
    known_flows=2,
    active_flows=1,
    histories=1,
    attempt_ms=100,
    waiting_for="window_runs",
    moved_ms=99_000,
    stuck=False,
)


def flow(tenant: str, *, shard: int = 0, class_: str = "default", spent: int = 50, queued: int = 10) -> Status:
    view = replace(FLOW, tenant=tenant, class_=class_, actual=spent, queued_tokens=queued)
    return Status(shard, 99_000, view)


def shares(statuses: list[Status], **options: object) -> dict[str, float | None]:
    seen = overview(statuses, NOW_MS, **options)  # type: ignore[arg-type] # options by name
    return {row.tenant: row.observed_share for row in seen.tenants}


def test_a_row_shows_stated_beside_observed() -> None:
    [row] = overview([Status(0, 99_000, FLOW)], NOW_MS).tenants
    assert (row.stated_share, row.observed_share) == (0.25, 1.0)
    assert (row.queued_runs, row.queued_tokens, row.flight_runs, row.flight_tokens) == (1, 10, 1, 5)
    assert (row.deficit, row.spent, row.ended, row.oldest_wait_ms) == (-3, 50, 3, 60_000)


def test_observed_shares_are_of_the_same_class_and_shard() -> None:
    statuses = [flow("a", spent=30), flow("b", spent=10), flow("c", class_="batch"), flow("d", shard=1)]
    assert shares(statuses) == {"a": 0.75, "b": 0.25, "c": 1.0, "d": 1.0}


def test_observed_shares_can_count_from_a_moment() -> None:
    since = spent_so_far([flow("a", spent=30), flow("b", spent=10)])
    statuses = [flow("a", spent=40), flow("b", spent=40), flow("new", spent=10)]
    assert shares(statuses, since=since) == {"a": 0.2, "b": 0.6, "new": 0.2}


def test_what_forgotten_tenants_spent_counts_too() -> None:
    before = [flow("a", spent=30), flow("gone", spent=10), Status(0, 1, CLASS)]
    now = [flow("a", spent=60), Status(0, 1, replace(CLASS, past_charged=20))]
    assert shares(now) == {"a": 0.75}
    assert shares(now, since=spent_so_far(before)) == {"a": 0.75}


def test_a_class_has_its_share_of_its_shard() -> None:
    other = replace(CLASS, class_="batch", place=1, stated_share_ppm=0, past_charged=10)
    statuses = [Status(0, 1, other), Status(0, 1, CLASS), flow("a", spent=30), flow("b", shard=1, spent=90)]
    first, second = overview(statuses, NOW_MS).classes
    assert (first.class_, first.stated_share, first.observed_share) == ("default", 0.75, 0.75)
    assert (first.gap, first.bound, first.deficit, first.blocked_flows) == (120, 900, -40, 1)
    assert (second.class_, second.stated_share, second.observed_share) == ("batch", None, 0.25)


def test_a_class_of_a_shard_that_spent_nothing_has_no_observed_share() -> None:
    [row] = overview([Status(0, 1, CLASS)], NOW_MS).classes
    assert row.observed_share is None


def test_how_well_costs_are_guessed_is_told_as_parts() -> None:
    [row] = overview([Status(0, 1, FLOW)], NOW_MS).tenants
    assert (row.cost_ratio, row.cost_error_p50, row.cost_error_p90) == (1.1, 0.25, 3.0)


def test_nothing_spent_is_no_share() -> None:
    assert shares([flow("a", spent=0)]) == {"a": None}


def test_a_tenant_that_is_not_active_has_no_stated_share() -> None:
    [row] = overview([Status(0, 1, replace(FLOW, state="idle", stated_share_ppm=0))], NOW_MS).tenants
    assert row.stated_share is None


def test_one_tenant_is_shown_by_itself_with_its_share_of_all() -> None:
    assert shares([flow("a", spent=30), flow("b", spent=10)], tenant="b") == {"b": 0.25}


def test_the_longest_queue_comes_first() -> None:
    statuses = [flow("c", queued=1), flow("b", queued=1), flow("a", queued=0), flow("d", queued=9)]
    assert [row.tenant for row in overview(statuses, NOW_MS).tenants] == ["d", "b", "c", "a"]


def test_nobody_waits() -> None:
    [row] = overview([Status(0, 1, replace(FLOW, oldest_submitted_ms=None))], NOW_MS).tenants
    assert row.oldest_wait_ms is None


def test_shards_are_shown_in_their_order_with_their_age() -> None:
    seen = overview([Status(1, 1, replace(SHARD, shard=1, now_ms=NOW_MS + 5)), Status(0, 99_000, SHARD)], NOW_MS)
    assert [(row.shard, row.age_ms) for row in seen.shards] == [(0, 1_000), (1, 0)]


def test_a_shard_says_when_something_last_moved() -> None:
    moved, never = replace(SHARD, moved_ms=97_000), replace(SHARD, moved_ms=0)
    assert [overview([Status(0, 1, view)], NOW_MS).shards[0].moved_ago_ms for view in (moved, never)] == [3_000, None]
