"""How much faster a replay is than what it replays: runs put through at full rate, then replayed from the same Kafka.

What is replayed is the record of `bench e2e`'s full loop, made in the same minute on the same machine, so that the
ratio holds whatever the machine. It is replayed from the live topics, exported, and replayed from the directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import orjson
import typer

from streams import clock
from streams.audit.export import ExportedRecording, export
from streams.audit.kafka_recording import KafkaRecording
from streams.audit.replay import ReplayOptions, replay_shards
from streams.bench.e2e import BARE, FULL, E2eOptions, new_deployment, run_loop
from streams.bench.kafka import some_kafka
from streams.errors import FairstreamError

if TYPE_CHECKING:
    from streams.audit.recording import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBenchOptions:
    """What to measure."""

    runs: int = 120_000
    rounds: int = 3
    shards: int = 4
    tenants: int = 200
    window: int = 4_000  # runs in flight in all
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)  # shards replayed at once
    kafka: str | None = None  # host:port; None: a local one, for as long as it takes
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRates:
    """Runs a second, of one round."""

    recorded: int
    live: int  # replayed from Kafka
    exported: int  # replayed from an exported directory
    export: int  # written into one

    @property
    def ratio(self) -> float:
        """How many times faster than it was recorded: from the live topics."""
        return self.live / self.recorded


def run_replay(options: ReplayBenchOptions) -> int:
    """Measure, print; return the exit code (0, whatever the figures are)."""
    with some_kafka(options.kafka) as servers:
        rates = measure_replay(options, servers)
    if options.json:
        figures = [{**asdict(each), "ratio": each.ratio} for each in rates]
        typer.echo(orjson.dumps({"options": asdict(options), "rounds": figures}).decode())
    else:
        _show(options, rates)
    return 0


def measure_replay(options: ReplayBenchOptions, servers: str) -> list[ReplayRates]:
    """Record and replay, round by round: the machine's speed drifts, so a ratio is only taken within one.

    A loop before them only warms Kafka up: a cold broker takes three times as long, which would flatter the ratio.
    """
    load = _load(options)
    run_loop(BARE, new_deployment(BARE, servers, load), load)
    return [_round(options, servers) for _ in range(options.rounds)]


def _round(options: ReplayBenchOptions, servers: str) -> ReplayRates:
    load = _load(options)
    kafka = new_deployment(FULL, servers, load)
    recorded = run_loop(FULL, kafka, load).runs_per_s
    live = KafkaRecording(kafka)
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "export"
        return ReplayRates(
            recorded=recorded,
            live=_rate(options, lambda: _replay(live, options)),
            export=_rate(options, lambda: export(live, directory, now_ms=clock.now_ms())),
            exported=_rate(options, lambda: _replay(ExportedRecording(directory), options)),
        )


def _load(options: ReplayBenchOptions) -> E2eOptions:
    return E2eOptions(runs=options.runs, shards=options.shards, tenants=options.tenants, window=options.window)


def _rate(options: ReplayBenchOptions, work: Callable[[], object]) -> int:
    begun = clock.monotonic()
    work()
    return round(options.runs / (clock.monotonic() - begun))


def _replay(recording: Recording, options: ReplayBenchOptions) -> None:
    outcomes = replay_shards(
        recording, range(recording.shards), ReplayOptions(), jobs=options.jobs, tell=lambda _outcome: None
    )
    wrong = next((each for each in outcomes if not each.equal), None)
    if wrong is not None:
        raise FairstreamError(f"the replay differs: {wrong.divergence or wrong.refused}")
    decisions = sum(each.decisions for each in outcomes)
    if decisions != options.runs:
        raise FairstreamError(f"{decisions} decisions were replayed, {options.runs} runs were put through")


def _show(options: ReplayBenchOptions, rates: list[ReplayRates]) -> None:
    typer.echo(
        f"{options.runs:,} runs of {options.tenants} tenants, {options.shards} shards, {options.jobs} at once; "
        f"median of {options.rounds} rounds (least - most)"
    )
    for title, figures in (
        ("recorded", [each.recorded for each in rates]),
        ("replayed from Kafka", [each.live for each in rates]),
        ("exported", [each.export for each in rates]),
        ("replayed from a directory", [each.exported for each in rates]),
    ):
        typer.echo(f"  {title:<26}{median(figures):>9,.0f} runs/s   ({min(figures):,} - {max(figures):,})")
    ratios = [each.ratio for each in rates]
    typer.echo(f"  {'times as fast':<26}{median(ratios):>9.1f}          ({min(ratios):.1f} - {max(ratios):.1f})")
