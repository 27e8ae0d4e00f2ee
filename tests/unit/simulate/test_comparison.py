from fractions import Fraction

import pytest

from streams.core.policy import Limits, Policy, PriorityClass, TenantRules, Window
from streams.errors import ConfigError
from streams.simulate.baselines import Fifo
from streams.simulate.comparison import Comparison, compare, slots_over_time
from streams.simulate.contestants import CONTESTANTS, choose
from streams.simulate.pool import Outage
from streams.simulate.scenarios.competition import COMPETITIONS
from streams.simulate.story import Story
from streams.simulate.workload import Arrival
from tests.unit.simulate.stories import small_story


def runs(tenant: str, count: int, *, at_ms: int = 0, tokens: int = 100) -> list[Arrival]:
    return [Arrival(at_ms, tenant, f"{tenant}{number:03}", "work", tokens, tokens) for number in range(count)]


def story(*arrivals: Arrival, slots: int = 2, lasts_ms: int = 1_000, policy: Policy | None = None) -> Story:
    """One token per ms and slot."""
    return Story(
        name="s",
        title="t",
        arrivals=tuple(sorted(arrivals)),
        policy=policy or Policy(quantum=100, classes=(PriorityClass(name="default", default_estimate=100),)),
        slots=slots,
        tokens_per_s=1_000,
        compression=1,
        lasts_ms=lasts_ms,
    )


def test_figures_that_can_be_worked_out_by_hand() -> None:
    """Twenty runs of `a`, then four of `b`: in a second two slots work off twenty of them."""
    told = story(*runs("a", 20), *runs("b", 4, at_ms=1))
    figures = compare(told, ["fifo", "ours"])
    fifo, ours = figures.outcomes
    assert figures.asked == {"a": 2_000, "b": 400}
    assert {name: own[-1] for name, own in figures.ideal.items()} == {"a": 1_600, "b": 400}
    assert {name: own[-1] for name, own in fifo.worked.items()} == {"a": 2_000, "b": 0}
    assert {name: own[-1] for name, own in ours.worked.items()} == {"a": 1_600, "b": 400}
    assert ours.jain == 1
    assert fifo.jain == Fraction(1, 2)  # one of two has everything
    assert fifo.distance.tokens == 400
    assert fifo.makespan_ms == ours.makespan_ms == 1_200
    assert fifo.used == ours.used == 1
    assert fifo.throughput == 2_000
    assert fifo.waits["b"].longest == 1_099
    assert ours.waits["b"].longest < 500
    assert ours.all_waits is not None
    assert ours.all_waits.runs == 24
    assert figures.holds


def test_slots_that_are_idle_count_as_idle() -> None:
    (outcome,) = compare(story(*runs("a", 5), slots=2, lasts_ms=500), ["fifo"]).outcomes
    assert outcome.used == Fraction(500, 1_000)
    assert outcome.gap is None


def test_a_gap_above_its_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTESTANTS, "ours", lambda _: Fifo())
    assert not compare(small_story(), ["ours"]).holds


def test_who_is_at_a_cap_or_in_a_group_is_promised_no_bound() -> None:
    exact = (PriorityClass(name="default", default_estimate=10),)
    arrivals = [*runs("a", 200, tokens=10), *runs("b", 200, tokens=10)]
    for rules in (TenantRules(max_runs_in_flight=1), TenantRules(max_tokens_in_flight=10), TenantRules(group="g")):
        policy = Policy(quantum=10, classes=exact, tenants={"b": rules}, groups={"g": 1})
        (ours,) = compare(story(*arrivals, slots=8, policy=policy), ["ours"]).outcomes
        assert ours.gap is None


def test_who_is_refused_is_counted_by_reason() -> None:
    full = Policy(quantum=100, limits=Limits(max_queued_runs=3))
    (ours,) = compare(story(*runs("a", 10), policy=full), ["ours"]).outcomes
    assert set(ours.refused) == {"overloaded"}
    assert len(ours.served) + sum(ours.refused.values()) == 10


def test_small_tenants_have_waits_of_their_own() -> None:
    told = small_story()
    figures = compare(told, ["ours", "fifo"])
    ours, fifo = figures.outcomes
    assert told.small
    assert ours.small_waits is not None
    assert fifo.small_waits is not None
    assert ours.small_waits.p95 * 5 < fifo.small_waits.p95


@pytest.fixture(scope="module")
def losses() -> Comparison:
    return compare(COMPETITIONS["worker-loss"].story("worker-loss", 3), CONTESTANTS)


def test_runs_whose_workers_die_are_tried_again_and_the_shares_hold(losses: Comparison) -> None:
    told, ours = losses.story, losses.outcomes[0]
    assert ours.lost_attempts == 8
    assert ours.lost_tokens > 0
    assert len(ours.served) == len(told.arrivals)
    for tenant, own in losses.ideal.items():
        # But for what was lost, and a run in each slot.
        assert abs(ours.worked[tenant][-1] - own[-1]) < 0.02 * own[-1]
    assert losses.holds


def test_all_schedulers_lose_as_many_and_none_serves_them_twice(losses: Comparison) -> None:
    for outcome in losses.outcomes:
        assert outcome.lost_attempts == 8
        assert len({run.arrival for run in outcome.served}) == len(outcome.served) == len(losses.story.arrivals)


def test_the_ideal_has_the_slots_that_there_are(losses: Comparison) -> None:
    told = losses.story
    assert slots_over_time(told.slots, told.outages) == [(240_000, 4), (360_000, 8), (720_000, 4), (900_000, 8)]
    slot_ms = told.slots * told.until_ms - 4 * (120_000 + 180_000)
    worked = sum(own[-1] for own in losses.ideal.values())
    assert slot_ms - 0.01 * slot_ms < worked <= slot_ms  # one token per ms; the queues fill in the first half minute


def test_outages_add_up_and_leave_no_less_than_nothing() -> None:
    assert slots_over_time(3, [Outage(1, 5, 2), Outage(2, 4, 2)]) == [(1, 1), (2, 0), (4, 1), (5, 3)]


def test_ours_over_several_shards_is_bound_within_each_of_them() -> None:
    told = COMPETITIONS["many-shards"].story("many-shards", 1)
    (ours,) = compare(told, ["ours"]).outcomes
    assert ours.gap is not None
    assert ours.gap.holds
    assert ours.widest is not None
    assert ours.widest.observed >= ours.gap.observed
    assert len(ours.served) == len(told.arrivals)
    # What the picture of it is for: windows are divided evenly, whoever is in which shard.
    assert float(ours.jain) < 0.99


def test_the_same_story_gives_the_same_figures() -> None:
    assert compare(small_story(), ["ours"]) == compare(small_story(), ["ours"])


def test_schedulers_are_chosen_by_name_each_once() -> None:
    assert choose(["fifo", "ours", "fifo"]) == ("fifo", "ours")
    assert set(choose(CONTESTANTS)) == {"ours", "fifo", "round-robin", "no-restraint"}


@pytest.mark.parametrize("names", [["lifo"], [], [""]])
def test_a_scheduler_that_is_not_known_is_refused(names: list[str]) -> None:
    with pytest.raises(ConfigError, match="round-robin"):
        choose(names)


def test_the_window_of_another_policy_is_the_pools() -> None:
    told = small_story().under(Policy(name="other", quantum=5, window=Window(runs=1, tokens=900)))
    assert (told.policy.name, told.policy.window) == ("other", Window(runs=told.slots, tokens=900))
