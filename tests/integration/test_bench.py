"""The benchmarks on a real Kafka: every run is put through or taken over, and a part that ends is told."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streams.bench.e2e import E2eOptions, measure_e2e
from streams.bench.journal import RUNS_A_STEP, JournalOptions, run_journal
from streams.bench.processes import finish, wait_until_ready
from streams.bench.replay import ReplayBenchOptions, measure_replay
from streams.bench.takeover import TakeoverOptions, measure_takeover
from streams.errors import FairstreamError
from streams.local import LocalKafka
from streams.local.owned import OwnedProcess
from streams.local.ports import free_ports


@pytest.fixture
def collector() -> Iterator[None]:
    """Give the garbage collector back as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.slow
def test_both_loops_settle_every_run(kafka: LocalKafka) -> None:
    report = measure_e2e(E2eOptions(runs=300, rounds=1, shards=2, tenants=7, window=100), kafka.bootstrap)
    assert len(report.full) == len(report.bare) == len(report.ratios) == 1
    for rate in (*report.full, *report.bare):
        assert rate.runs_per_s == round(300 / rate.seconds)
        assert rate.steps * rate.runs_per_step == pytest.approx(300)


def test_what_the_journal_costs_is_measured_in_steps_of_every_size(
    kafka: LocalKafka, capsys: pytest.CaptureFixture[str], collector: None
) -> None:
    small = JournalOptions(runs=20, rounds=2, tenants=30, kafka=kafka.bootstrap)
    assert run_journal(small) == 0
    assert "memory: " in capsys.readouterr().out
    assert run_journal(replace(small, json=True)) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"options", "python", "compiled", "steps", "hash_bytes_a_run"}
    assert report["options"]["tenants"] == 30
    assert [each["runs_a_step"] for each in report["steps"]] == list(RUNS_A_STEP)
    for each in report["steps"]:
        assert 0 < each["state_us"] + each["record_us"] < each["step_us"] < each["committed_us"]
        assert 0 < each["committed_share"] < each["share"] < 1
    bytes_a_run = [each["journal_bytes"] for each in report["steps"]]
    assert bytes_a_run[0] > bytes_a_run[-1], "a large step has one record for all of its runs"


def test_a_takeover_is_measured_from_its_process_to_the_first_steps(kafka: LocalKafka) -> None:
    report = measure_takeover(TakeoverOptions(runs=300, shards=2, tenants=7), kafka.bootstrap)
    assert report.payload_bytes % 300 == 0
    assert report.payload_bytes > 300 * 200, "all of them are held, each with its payload"
    assert report.records > 300
    assert 0 < report.start.assigned_s < report.start.served_s
    assert report.stepped_s > 0
    assert 0 < report.empty_rss < report.peak_rss
    assert report.settled_rss <= report.peak_rss


def test_what_is_recorded_is_replayed_from_kafka_and_from_a_directory(kafka: LocalKafka) -> None:
    [rates] = measure_replay(ReplayBenchOptions(runs=300, rounds=1, shards=2, tenants=7, jobs=1), kafka.bootstrap)
    assert min(rates.recorded, rates.live, rates.export, rates.exported) > 0
    assert rates.ratio == rates.live / rates.recorded


def test_a_part_that_ends_badly_is_told() -> None:
    with OwnedProcess(["serve"], module="streams.bench.load") as fleet:
        with pytest.raises(FairstreamError, match="the fleet ended with exit status 1"):
            finish(fleet, "the fleet", 30)
        with pytest.raises(FairstreamError, match="the scheduler ended"):
            wait_until_ready(fleet, free_ports(1)[0], 30)
