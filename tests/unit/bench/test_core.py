"""The benchmarks of the core run, and show what they measured. What the figures are is no affair of a test."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from streams.bench.core import CoreOptions, measure_door, measure_order, run_core

SMALL = CoreOptions(runs=300, tenants=300, idle=300)


def test_every_case_has_a_rate_and_its_ratio_to_the_first() -> None:
    for rates in (measure_order(SMALL), measure_door(SMALL)):
        assert len(rates) == 5
        assert rates[0].ratio == 1
        for rate in rates:
            assert rate.per_s > 0
            assert rate.ratio == pytest.approx(rate.per_s / rates[0].per_s)


def test_the_report_is_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_core(SMALL) == 0
    assert "one queue, first come first served" in capsys.readouterr().out
    assert run_core(replace(SMALL, json=True)) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["options"] == {"runs": 300, "tenants": 300, "idle": 300, "json": True}
    assert [rate["name"] for rate in report["order"]][:1] == ["ring"]
    assert len(report["door"]) == 5
