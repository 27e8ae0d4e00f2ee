"""Whole runs per second: request -> dispatch -> completion -> settled, everything on this machine.

The same loop is then run over a shard that schedules nothing (`streams.bench.bare`): the same Kafka, producer,
fleet, runtime, records and transactions. The ratio says what scheduling costs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Final

import orjson
import typer

from streams import clock
from streams.admin.kafka import admin_client
from streams.admin.policy import publish_policy
from streams.admin.topics import Layout, ensure
from streams.bench.kafka import some_kafka
from streams.bench.processes import finish, wait_until_ready
from streams.bench.settled import read_settlements
from streams.core.policy import Policy, Window
from streams.kafka import KafkaSettings
from streams.local.owned import OwnedProcess
from streams.local.ports import free_ports
from streams.wire import PolicyChange

_DEADLINE_S: Final = 300.0
BARE: Final = "bare"
FULL: Final = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class E2eOptions:
    """What to measure."""

    runs: int = 60_000
    rounds: int = 3
    shards: int = 4
    tenants: int = 200
    window: int = 4_000  # runs in flight in all; small windows measure the round trip instead
    kafka: str | None = None  # host:port; None: a local one, for as long as it takes
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRate:
    """One loop's figures."""

    runs_per_s: int
    seconds: float  # from the first request to the last run settled
    steps: int  # that settled a run
    runs_per_step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class E2eReport:
    """Both loops, round by round: the machine's speed drifts, so a ratio is only taken within a round."""

    options: E2eOptions
    full: tuple[LoopRate, ...]
    bare: tuple[LoopRate, ...]

    @property
    def ratios(self) -> list[float]:
        """Full over bare, for each round."""
        return [full.runs_per_s / bare.runs_per_s for full, bare in zip(self.full, self.bare, strict=True)]


def run_e2e(options: E2eOptions) -> int:
    """Measure both loops, print rates and ratio; return the exit code (0, whatever the figures are)."""
    with some_kafka(options.kafka) as servers:
        report = measure_e2e(options, servers)
    if options.json:
        typer.echo(orjson.dumps({**asdict(report), "ratios": report.ratios}).decode())
    else:
        _show(report)
    return 0


def measure_e2e(options: E2eOptions, servers: str) -> E2eReport:
    """Run the loops in turn, after one that only warms Kafka up: a cold broker takes three times as long."""

    def loop(name: str) -> LoopRate:
        return run_loop(name, new_deployment(name, servers, options), options)

    loop(BARE)
    rounds = [(loop(FULL), loop(BARE)) for _ in range(options.rounds)]
    return E2eReport(options=options, full=tuple(full for full, _ in rounds), bare=tuple(bare for _, bare in rounds))


def _show(report: E2eReport) -> None:
    options = report.options
    typer.echo(
        f"{options.runs:,} runs of {options.tenants} tenants, {options.shards} shards, window {options.window:,}; "
        f"median of {options.rounds} rounds (least - most)"
    )
    for title, rates in (("full loop", report.full), ("without scheduling", report.bare)):
        speeds = [rate.runs_per_s for rate in rates]
        runs = fmean(rate.runs_per_step for rate in rates)
        spread = f"({min(speeds):,} - {max(speeds):,})"
        typer.echo(f"  {title:<20} {median(speeds):>8,.0f} runs/s   {spread:<18} {runs:.0f} runs a step")
    typer.echo(
        f"  {'ratio':<20} {median(report.ratios):>8.2f}          ({min(report.ratios):.2f} - {max(report.ratios):.2f})"
    )


def new_deployment(name: str, servers: str, options: E2eOptions) -> KafkaSettings:
    """Make the topics of one loop, and state its policy."""
    kafka = KafkaSettings(servers=servers, prefix=f"bench-{name}-{clock.now_ms()}.")
    ensure(admin_client(kafka), Layout(shards=options.shards, prefix=kafka.prefix))
    policy = Policy(name="bench", window=Window(runs=options.window, tokens=None))
    publish_policy(kafka, PolicyChange(policy=policy, author="bench", applied_ms=clock.now_ms()))
    return kafka


def run_loop(name: str, kafka: KafkaSettings, options: E2eOptions) -> LoopRate:
    """Put the runs through the loop of that name, in a deployment of its own."""
    place, runs, port = (kafka.servers, kafka.prefix), str(options.runs), free_ports(1)[0]
    scheduling = [name, *place, str(options.shards), str(port)]
    with OwnedProcess(scheduling, module="streams.bench.scheduler") as scheduler:
        wait_until_ready(scheduler, port, _DEADLINE_S)
        with (
            OwnedProcess(["serve", *place, runs], module="streams.bench.load") as fleet,
            OwnedProcess(["feed", *place, runs, str(options.tenants)], module="streams.bench.load") as producer,
        ):
            finish(producer, "the producer", _DEADLINE_S)
            finish(fleet, "the fleet", _DEADLINE_S)
        settled = read_settlements(kafka, options.shards, options.runs, _DEADLINE_S)
    seconds = (settled.last_ms - settled.first_ms) / 1000
    return LoopRate(
        runs_per_s=round(options.runs / seconds),
        seconds=seconds,
        steps=settled.steps,
        runs_per_step=options.runs / settled.steps,
    )
