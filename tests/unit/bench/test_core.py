"""The benchmarks of the core run, and show what they measured. What the figures are is no affair of a test."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streams.bench import core
from streams.bench.core import CoreOptions, is_compiled, measure_door, measure_order, run_core
from streams.bench.door import Door, DoorCase
from streams.bench.memory import footprint
from streams.bench.profiling import OUTSIDE, profile
from streams.bench.rounds import Figure, interleaved
from streams.errors import ConfigError
from tests.compiled import interpreted

SMALL = CoreOptions(runs=300, rounds=2, tenants=300, idle=300)


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Give the garbage collector back as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_rates_are_taken_in_turn_and_held_against_the_first() -> None:
    order: list[str] = []

    def measure(name: str, rates: Iterator[float]) -> float:
        order.append(name)
        return next(rates)

    fast, slow = iter([100.0, 400.0, 300.0]), iter([50.0, 100.0, 60.0])
    figures = interleaved({"fast": lambda: measure("fast", fast), "slow": lambda: measure("slow", slow)}, 3)
    assert order == ["fast", "slow"] * 3
    assert figures == [
        Figure(name="fast", median=300, least=100, most=400, ratio=1.0),
        Figure(name="slow", median=60, least=50, most=100, ratio=0.25),
    ]


def test_every_case_is_measured() -> None:
    for figures, number in ((measure_order(SMALL), 6), (measure_door(SMALL), 5)):
        assert len(figures) == number
        assert figures[0].ratio == 1
        assert all(0 < each.least <= each.median <= each.most for each in figures)


def test_a_door_keeps_every_tenant_backlogged_and_its_window_full() -> None:
    door = Door(DoorCase(tenants=30, idle=20, cost_in_quanta=1_000))
    for _ in range(20):
        assert door.advance() == 256
    found = door.shard.snapshot()
    assert found.shard.flight_runs == 256
    assert [flow.state for flow in found.flows].count("idle") == 20
    assert all(flow.queued_runs for flow in found.flows if flow.state != "idle")


def test_memory_is_counted_for_each_run_and_tenant() -> None:
    small, large = footprint(2_000), footprint(4_000)
    for few, many in ((small.queued_run, large.queued_run), (small.idle_tenant, large.idle_tenant)):
        assert 200 < few < 3_000
        assert many == pytest.approx(few, rel=0.2)


@interpreted
def test_a_profile_names_the_rooms_and_what_they_are_asked_for() -> None:
    found = profile(1_000)
    for spent in (found.rooms, found.functions):
        assert sum(each.share_ppm for each in spent) == pytest.approx(1_000_000, abs=len(spent))
        assert [each.share_ppm for each in spent] == sorted((each.share_ppm for each in spent), reverse=True)
    assert {"admission", "dispatching", "outcomes", "ring", "state", OUTSIDE} <= {each.name for each in found.rooms}
    admitted = next(each for each in found.functions if each.name == "admission: admit")
    assert admitted.calls >= 1


@interpreted
def test_a_profile_is_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_core(replace(SMALL, profile=True)) == 0
    assert OUTSIDE in capsys.readouterr().out
    assert run_core(replace(SMALL, profile=True, json=True)) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["rooms"]


def test_a_compiled_core_has_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "is_compiled", lambda: True)
    with pytest.raises(ConfigError, match="interpreted"):
        run_core(replace(SMALL, profile=True))


def test_the_report_is_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_core(SMALL) == 0
    said = capsys.readouterr().out
    assert "one queue, first come first served" in said
    assert "bytes a queued run" in said
    assert run_core(replace(SMALL, json=True)) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["options"]["idle"] == 300
    assert report["compiled"] is is_compiled()
    assert [each["name"] for each in report["order"]][:1] == ["ring"]
    assert len(report["door"]) == 5
    assert set(report["bytes"]) == {"queued_run", "idle_tenant"}
