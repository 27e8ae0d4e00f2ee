"""The figures that stand in the README, pinned; and what the table says of them."""

import io
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from rich.console import Console

from streams.simulate.published.difference import Difference
from streams.simulate.published.engine import Answer, Pool, serve
from streams.simulate.published.figures import (
    CALIBRATED,
    ELSEWHERE,
    NEARBY,
    RUNS,
    SCHEDULERS,
    Outcome,
    Row,
    Scheduler,
    outcome_of,
    reproduce,
    requests,
)
from streams.simulate.published.picture import draw
from streams.simulate.published.show import show
from tests.unit.simulate.published.recorded import RUNS as RECORDED
from tests.unit.simulate.published.recorded import recorded

PINNED = {
    "FIFO": (753, 430, 757),
    "virtual token counter": (358, 233, 760),
    "the same, lengths predicted": (483, 259, 757),
    "ours, 24 runs in flight": (332, 220, 781),
    "ours, 28 runs in flight": (368, 239, 763),
    "ours, 32 runs in flight": (460, 259, 760),
    "ours, 28 runs, costs stated": (469, 259, 767),
}


@cache
def played(scheduler: Scheduler) -> tuple[Answer, ...]:
    return serve(requests(), scheduler.make(), CALIBRATED)


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda each: each.name)
def test_the_figures(scheduler: Scheduler) -> None:
    found = outcome_of(played(scheduler))
    assert (round(found.largest), round(found.mean), round(found.took_s)) == PINNED[scheduler.name]
    assert max(found.moments) == found.largest


def test_fifo_is_reproduced_within_two_percent() -> None:
    """The one that was fitted, by the time it takes; its difference was not."""
    fifo = SCHEDULERS[0]
    assert fifo.published is not None
    found = outcome_of(played(fifo))
    assert found.took_s == pytest.approx(757.7, rel=0.002)
    assert found.largest == pytest.approx(fifo.published.largest, rel=0.02)
    assert found.mean == pytest.approx(fifo.published.mean, rel=0.02)


@pytest.mark.parametrize(("run", "index"), RECORDED)
def test_the_model_follows_the_engine_request_by_request(run: str, index: int) -> None:
    """Half of the requests end within 4 s of when they ended on the engine, where half of them took 20 s and more."""
    ended = {each.request: each.ended_us for each in recorded(run)}
    off = [abs(each.ended_us - ended[each.request]) / 1_000_000 for each in played(SCHEDULERS[index])]
    took = [(until_us - request.at_us) / 1_000_000 for request, until_us in ended.items()]
    assert median(off) < 4
    assert median(took) > 20


def test_every_pool_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[Pool] = []

    def instead(_requests: object, _queue: object, pool: Pool) -> tuple[Answer, ...]:
        pools.append(pool)
        return played(SCHEDULERS[0])

    monkeypatch.setattr("streams.simulate.published.figures.serve", instead)
    told: list[None] = []
    (row,) = reproduce(SCHEDULERS[:1], lambda: told.append(None))
    assert pools == [CALIBRATED, *NEARBY, *ELSEWHERE.values()]
    assert len(told) == len(pools) == RUNS
    assert len(row.nearby) == len(NEARBY)
    assert row.elsewhere.keys() == ELSEWHERE.keys()
    assert CALIBRATED in NEARBY


def test_the_table_fits() -> None:
    outcome = Outcome(1_234.4, 567.6, 757.7)
    rows = [
        Row(each.name, each.published, outcome, (outcome,) * 2, dict.fromkeys(ELSEWHERE, outcome))
        for each in SCHEDULERS
    ]
    out = io.StringIO()
    show(rows, Console(file=out, width=100))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert "…" not in out.getvalue()
    assert Difference(760, 434) == rows[0].published
    assert any("760 / 434" in line and "1234 / 568" in line and "1234 to 1234" in line for line in lines)


def test_the_picture_is_the_same_each_time(tmp_path: Path) -> None:
    rows = [
        Row(each.name, each.published, outcome, (outcome, higher), {})
        for each in SCHEDULERS
        for outcome in (Outcome(500.0, 250.0, 757.0, tuple(map(float, range(19)))),)
        for higher in (outcome._replace(moments=tuple(map(float, range(1, 20)))),)
    ]
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    draw(rows, first)
    draw(rows, second)
    text = first.read_text(encoding="utf-8")
    assert text == second.read_text(encoding="utf-8")
    assert "FIFO: mean 250 (published: 434)" in text
    assert "ours, 28 runs in flight: mean 250" in text
    assert "ours, 32 runs in flight" not in text
