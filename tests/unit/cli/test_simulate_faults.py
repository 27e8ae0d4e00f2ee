"""`fairstream simulate faults` and `published`: what they are asked for, what they print, and how they exit."""

from __future__ import annotations

import orjson
import pytest
from typer.testing import CliRunner

from streams.cli.tree import app
from streams.simulate.faulty.world import Setting
from streams.simulate.published.difference import Difference
from streams.simulate.published.figures import ELSEWHERE, Outcome, Row
from tests.simulation.faulty_builds import builds

SMALL = ("--shards=2", "--processes=2", "--tenants=3", "--ticks=12")


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["simulate", *arguments])
    return done.exit_code, done.stdout


def test_a_sound_deployment() -> None:
    status, out = run("faults", "--seed=2", "--seeds=2", *SMALL)
    assert status == 0
    assert "2 deployments of 2 shards" in out
    assert "Everything held after every step." in out


def test_as_json() -> None:
    status, out = run("faults", "--seed=2", "--seeds=2", *SMALL, "--json")
    document = orjson.loads(out)
    assert status == 0
    assert document["sound"] is True
    assert [each["seed"] for each in document["outcomes"]] == [2, 3]
    assert (document["tenants"], document["ticks"]) == (3, 12)


def test_without_options_it_is_the_setting_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Setting] = []

    def instead(_seeds: object, _load: object, setting: Setting, _done: object) -> None:
        asked.append(setting)
        raise SystemExit(0)

    monkeypatch.setattr("streams.simulate.faulty.campaign.run", instead)
    run("faults")
    assert asked == [Setting()]


def test_what_is_wrong_ends_it_with_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.app.in_memory.load", builds()["old memory"][0])
    status, out = run("faults", "--seed=3")
    assert status == 1
    assert "seed 3: shard " in out


def test_the_published_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome(753.3, 430.2, 757.3)
    row = Row("FIFO", Difference(760, 434), outcome, (outcome,), dict.fromkeys(ELSEWHERE, outcome))
    monkeypatch.setattr("streams.simulate.published.figures.reproduce", lambda **_: [row])
    status, out = run("published")
    assert (status, "760 / 434  753 / 430" in out) == (0, True)
    status, out = run("published", "--json")
    (said,) = orjson.loads(out)
    assert status == 0
    assert said["published"] == {"largest": 760, "mean": 434}
    assert said["here"] == {"largest": 753.3, "mean": 430.2, "took_s": 757.3, "moments": []}
