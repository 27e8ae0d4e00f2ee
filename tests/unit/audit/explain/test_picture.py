"""The picture: of every kind of life, the same bytes each time, and small."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.audit.explain import parts
from streams.audit.explain.life import Life
from streams.audit.explain.picture import _BARS, _CAUSE_OF, _bar_ms, draw
from streams.core.inputs import STARTED, SUCCEEDED, Takeover
from streams.core.policy import TenantRules
from streams.errors import ConfigError
from tests.builders import make_policy
from tests.unit.audit.explain.watched import Watched


def drawn(shard: Watched, folder: Path) -> str:
    path = folder / "run.svg"
    draw(shard.explained(), path)
    return path.read_text(encoding="utf-8")


def waited(tenant: str = "a") -> Watched:
    shard = Watched(make_policy(runs=1), tenant=tenant)
    shard.submit("z", *[f"z{number}" for number in range(9)])
    shard.submit(tenant, "r", sent_ms=30)
    shard.step(Takeover(2), after_ms=500)
    for number in range(9):
        shard.finish(shard.dispatches[number], after_ms=1_000)
        if shard.dispatches[-1].tenant == tenant:
            break
    shard.report(STARTED, after_ms=10)
    shard.report(SUCCEEDED, after_ms=900, tokens=120)
    return shard


def test_every_part_has_a_cause_to_be_drawn_as() -> None:
    assert set(_CAUSE_OF) == set(parts.PARTS)


def test_it_shows_why_it_waited_and_who_was_served(tmp_path: Path) -> None:
    svg = drawn(waited(), tmp_path)
    for text in ("Run r of tenant a waited", "window full", "no scheduler", "running", "the window", ">z<"):
        assert text in svg
    assert len(svg) < 100_000


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    assert drawn(waited(), tmp_path) == drawn(waited(), tmp_path)


@pytest.mark.parametrize("steps", [0, 700])
def test_a_run_that_still_waits_for_however_long(steps: int, tmp_path: Path) -> None:
    shard = Watched(make_policy(runs=1, rules={"a": TenantRules(paused=False)}))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    for _ in range(steps):
        shard.step(after_ms=7)
    svg = drawn(shard, tmp_path)
    assert "is still waiting" in svg
    assert len(svg) < 100_000


def bars(life: Life) -> int:
    return -(-(life.seen_ms - life.arrived_ms) // _bar_ms(life))


def test_a_long_wait_has_few_bars() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    shard.step(after_ms=86_400_000)
    assert _BARS // 4 <= bars(shard.life()) <= _BARS


def test_a_name_is_no_formula_and_no_markup(tmp_path: Path) -> None:
    svg = drawn(waited("a$_$<b>\n"), tmp_path)
    assert "a$_$&lt;b&gt;\\n" in svg


def test_a_long_title_goes_on_in_the_next_line(tmp_path: Path) -> None:
    shard = Watched(make_policy(), tenant="a" * 60, run_id="r" * 60)
    shard.submit("a" * 60, "r" * 60)
    assert f">Run {'r' * 60} of tenant<" in drawn(shard, tmp_path)


def test_a_window_without_places_has_no_line(tmp_path: Path) -> None:
    shard = Watched(make_policy(runs=None, tokens=100))
    shard.submit("z", "z1", cost=60)
    shard.submit("a", "r", cost=60)
    shard.finish(shard.dispatches[0], after_ms=10)
    assert "the window" not in drawn(shard, tmp_path)


def test_a_refused_run_cannot_be_drawn(tmp_path: Path) -> None:
    shard = Watched(make_policy(rules={"a": TenantRules(paused=True)}))
    shard.submit("a", "r")
    with pytest.raises(ConfigError, match="was not accepted"):
        draw(shard.explained(), tmp_path / "run.svg")
