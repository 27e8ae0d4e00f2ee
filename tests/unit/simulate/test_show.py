import io
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from streams.core.policy import TenantRules
from streams.simulate.bound import Gap
from streams.simulate.comparison import Comparison, compare
from streams.simulate.contestants import CONTESTANTS
from streams.simulate.document import document
from streams.simulate.picture import draw
from streams.simulate.scenarios.catalogue import SEED, find_scenario
from streams.simulate.show import SHOWN, WIDTH, show, shown_tenants
from streams.simulate.traces import bundled
from streams.simulate.workload import Arrival
from tests.unit.simulate.stories import small_story


@pytest.fixture(scope="module")
def figures() -> Comparison:
    return compare(small_story(), CONTESTANTS)


def printed(figures: Comparison) -> str:
    out = io.StringIO()
    show(figures, Console(file=out, width=WIDTH))
    return out.getvalue()


def with_many_tenants(figures: Comparison) -> Comparison:
    told = figures.story
    more = tuple(Arrival(n, f"t{n:03}", f"t{n}", "work", 1 + n, 1) for n in range(100))
    return compare(replace(told, arrivals=tuple(sorted(told.arrivals + more))), ["ours", "fifo"])


def test_every_tenant_and_scheduler_is_shown_within_the_width(figures: Comparison) -> None:
    text = printed(figures)
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert all(name in text for name in (*CONTESTANTS, *figures.asked))
    assert "…" not in text
    assert "yes the gap" in text
    assert "4 slots of 100 tokens/s for 0:40 min" in text  # in the story's own time, as are all waits


def test_a_row_is_what_was_found(figures: Comparison) -> None:
    (row,) = [line.split() for line in printed(figures).splitlines() if line.startswith("few ")]
    ours = figures.outcomes[0]
    assert row[:3] == ["few", "1", "6"]
    share = 100 * ours.worked["few"][-1] / sum(own[-1] for own in ours.worked.values())
    assert row[5:8] == [f"{share:.1f}", "%", f"{ours.waits['few'].p95 / 100:.1f}"]


def test_of_many_tenants_those_that_ask_for_most_are_shown(figures: Comparison) -> None:
    many = with_many_tenants(figures)
    shown = shown_tenants(many)
    assert len(shown) == SHOWN
    assert {"flood", "large", "few", "t099"} <= set(shown)
    assert "t000" not in shown
    assert f"{len(many.asked) - SHOWN} tenants that ask for less are not shown" in printed(many)


def test_what_was_lost_and_refused_is_shown_where_there_is_any(figures: Comparison) -> None:
    assert "lost and tried again" not in printed(figures)
    assert "refused" not in printed(figures)
    first, *others = figures.outcomes
    text = printed(replace(figures, outcomes=[replace(first, lost_attempts=7, refused={"overloaded": 4}), *others]))
    assert [line.split() for line in text.splitlines() if "lost" in line or "refused" in line] == [
        ["attempts", "lost", "and", "tried", "again", "7", "0", "0", "0"],
        ["runs", "refused", "4", "0", "0", "0"],
    ]


def test_that_the_ideal_knows_nothing_of_caps_is_told(figures: Comparison) -> None:
    assert "weights alone" not in printed(figures)
    rules = {"few": TenantRules(max_runs_in_flight=1)}
    held = replace(figures.story, policy=replace(figures.story.policy, tenants=rules))
    assert "not that few may be held back" in printed(replace(figures, story=held))


def test_a_broken_bound_is_shouted(figures: Comparison) -> None:
    ours = figures.outcomes[0]
    assert ours.gap is not None
    gap: Gap = ours.gap._replace(observed=Fraction(10**9))
    broken = replace(figures, outcomes=[replace(ours, gap=gap)])
    assert not broken.holds
    assert "NO  the gap" in printed(broken)


def test_without_ours_there_is_no_verdict(figures: Comparison) -> None:
    assert "no bound to keep" in printed(replace(figures, outcomes=figures.outcomes[1:]))
    assert "no bound to keep" in printed(replace(figures, outcomes=[replace(figures.outcomes[0], gap=None)]))


def test_what_a_stranger_called_a_tenant_cannot_move_the_cursor(figures: Comparison) -> None:
    story = figures.story
    arrivals = tuple(each._replace(tenant="\x1b[2J") if each.tenant == "few" else each for each in story.arrivals)
    text = printed(compare(replace(story, arrivals=arrivals), ["ours"]))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_the_document_says_everything_in_the_storys_own_time(figures: Comparison) -> None:
    found = json.loads(orjson.dumps(document(figures)))
    assert found["holds"] is True
    assert [each["scheduler"] for each in found["schedulers"]] == list(CONTESTANTS)
    few = next(each for each in found["tenants"] if each["tenant"] == "few")
    ours = figures.outcomes[0]
    assert few["waits_ms"]["ours"]["p95"] == ours.waits["few"].p95 * 10
    assert few["observed"]["ours"] == ours.worked["few"][-1]
    assert sum(each["asked"] for each in found["tenants"]) == found["tokens"]
    assert found["schedulers"][0]["nearest_to_bound"]["holds"] is True
    assert [each["nearest_to_bound"] for each in found["schedulers"][1:]] == [None] * 3, "they promise none"
    widest = [each["widest_gap"]["observed_tokens_per_weight"] for each in found["schedulers"]]
    assert widest == [float(each.widest.observed) for each in figures.outcomes if each.widest]
    assert f"{round(widest[0]):,}" in next(line for line in printed(figures).splitlines() if "widest gap" in line)
    assert found["until_ms"] == 40_000


def test_the_picture_is_the_same_each_time_and_names_all_it_draws(figures: Comparison, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw(figures, tmp_path / name)
    picture = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert picture == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert all(f"{name} (" in picture for name in figures.asked)
    assert "FIFO: tokens served" in picture
    assert "fairstream (deficit round robin): tokens served" in picture


def test_a_picture_without_ours_or_with_it_alone(figures: Comparison, tmp_path: Path) -> None:
    draw(replace(figures, outcomes=figures.outcomes[:1]), tmp_path / "ours.svg")
    draw(replace(figures, outcomes=figures.outcomes[2:]), tmp_path / "others.svg")
    assert "fairstream" not in (tmp_path / "others.svg").read_text(encoding="utf-8").partition("<defs>")[2]
    assert "FIFO" not in (tmp_path / "ours.svg").read_text(encoding="utf-8")


def test_a_picture_of_one_run(figures: Comparison, tmp_path: Path) -> None:
    one = replace(figures.story, arrivals=figures.story.arrivals[:1], lasts_ms=None)
    alone = compare(replace(one, arrivals=(one.arrivals[0]._replace(at_ms=0),)), CONTESTANTS)
    draw(alone, tmp_path / "one.svg")
    assert "p95 wait" in (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert "there is no bound to keep" in printed(alone)


def test_the_picture_of_the_readme_is_what_the_command_draws() -> None:
    """But for fonts, which are the machine's: so its words are looked at, and its size."""
    told = find_scenario("meridian").story(SEED)
    picture = bundled("meridian.svg").read_text(encoding="utf-8")
    assert all(f">{tenant} ({weight})<" in picture for tenant, weight in told.weights.items())
    assert f"meridian: {told.title}" in picture
    assert len(picture) < 150_000


def test_a_picture_of_many_tenants_draws_those_that_ask_for_most(figures: Comparison, tmp_path: Path) -> None:
    draw(with_many_tenants(figures), tmp_path / "many.svg")
    picture = (tmp_path / "many.svg").read_text(encoding="utf-8")
    assert "flood (1)" in picture
    assert "t000 (1)" not in picture
