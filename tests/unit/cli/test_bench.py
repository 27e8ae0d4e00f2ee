"""What `fairstream bench` hands to the measurement."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from typer.testing import CliRunner

from streams.bench.core import CoreOptions
from streams.bench.e2e import E2eOptions
from streams.bench.journal import JournalOptions
from streams.bench.replay import ReplayBenchOptions
from streams.bench.takeover import TakeoverOptions
from streams.cli.tree import app


def asked_for(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> E2eOptions:
    asked: list[E2eOptions] = []

    def run_e2e(options: E2eOptions) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr("streams.bench.e2e.run_e2e", run_e2e)
    result = CliRunner().invoke(app, ["bench", "e2e", *arguments])
    assert result.exit_code == 0, result.output
    [options] = asked
    return options


def test_without_options_the_measurement_has_its_own_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_for(monkeypatch) == E2eOptions()


def test_every_number_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = E2eOptions(runs=9, rounds=1, shards=2, tenants=3, window=4, kafka="here:1")
    arguments = [f"--{name}={value}" for name, value in asdict(chosen).items() if name != "json"]
    assert asked_for(monkeypatch, *arguments) == chosen
    assert asked_for(monkeypatch, "--json") == E2eOptions(json=True)


def test_of_the_core_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[CoreOptions] = []

    def run_core(options: CoreOptions) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr("streams.bench.core.run_core", run_core)
    numbers = ["--runs=9", "--rounds=2", "--tenants=3", "--idle=4"]
    for arguments in ([], [*numbers, "--profile"], ["--json"]):
        assert CliRunner().invoke(app, ["bench", "core", *arguments]).exit_code == 0
    chosen = CoreOptions(runs=9, rounds=2, tenants=3, idle=4, profile=True)
    assert asked == [CoreOptions(), chosen, CoreOptions(json=True)]


def test_of_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[JournalOptions] = []

    def run_journal(options: JournalOptions) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr("streams.bench.journal.run_journal", run_journal)
    for arguments in ([], ["--runs=9", "--rounds=2", "--tenants=3"], ["--json"]):
        assert CliRunner().invoke(app, ["bench", "journal", *arguments]).exit_code == 0
    assert asked == [JournalOptions(), JournalOptions(runs=9, rounds=2, tenants=3), JournalOptions(json=True)]


def test_and_of_a_takeover(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[TakeoverOptions] = []

    def run_takeover(options: TakeoverOptions) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr("streams.bench.takeover.run_takeover", run_takeover)
    for arguments in ([], ["--runs=9", "--shards=2", "--tenants=3", "--kafka=here:1"], ["--json"]):
        assert CliRunner().invoke(app, ["bench", "takeover", *arguments]).exit_code == 0
    chosen = TakeoverOptions(runs=9, shards=2, tenants=3, kafka="here:1")
    assert asked == [TakeoverOptions(), chosen, TakeoverOptions(json=True)]


def test_and_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ReplayBenchOptions] = []

    def run_replay(options: ReplayBenchOptions) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr("streams.bench.replay.run_replay", run_replay)
    numbers = ["--runs=9", "--rounds=1", "--shards=2", "--tenants=3", "--window=4", "--jobs=5", "--kafka=here:1"]
    for arguments in ([], numbers, ["--json"]):
        assert CliRunner().invoke(app, ["bench", "replay", *arguments]).exit_code == 0
    chosen = ReplayBenchOptions(runs=9, rounds=1, shards=2, tenants=3, window=4, jobs=5, kafka="here:1")
    assert asked == [ReplayBenchOptions(), chosen, ReplayBenchOptions(json=True)]


def test_no_rounds_at_all_is_refused() -> None:
    assert CliRunner().invoke(app, ["bench", "e2e", "--rounds", "0"]).exit_code == 2
