"""Whole runs per second: request -> dispatch -> completion -> settled, everything on this machine.

The same loop is then run over a shard that schedules nothing (`streams.bench.bare`): the same Kafka, producer,
fleet, runtime, records and transactions. The ratio says what scheduling costs.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

import orjson
import typer

from streams import clock
from streams.admin.kafka import admin_client
from streams.admin.policy import publish_policy
from streams.admin.topics import Layout, ensure
from streams.bench.processes import child, finish, wait_until_ready
from streams.bench.settled import wait_for_settlements
from streams.core.policy import Policy, Window
from streams.kafka import KafkaSettings
from streams.local.ports import free_ports
from streams.wire import PolicyChange

if TYPE_CHECKING:
    from collections.abc import Iterator

GOAL_PER_S: Final = 3_000
_DEADLINE_S: Final = 300.0
_BARE: Final = "bare"
_FULL: Final = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class E2eOptions:
    """What to measure."""

    runs: int = 60_000
    shards: int = 4
    tenants: int = 200
    window: int = 4_000  # runs in flight in all; small windows measure the round trip instead
    kafka: str | None = None  # host:port; None: a local one, for as long as it takes
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRate:
    """One loop's figures."""

    name: str
    runs_per_s: int
    seconds: float  # from the first request published to the last run settled
    steps: int
    runs_per_step: float


def run_e2e(options: E2eOptions) -> int:
    """Measure both loops, print rates and ratio; return the exit code (0, whatever the figures are)."""
    with ExitStack() as stack:
        servers = options.kafka
        if servers is None:
            from streams.local import LocalKafka  # noqa: PLC0415 - only this needs the `local` extra

            servers = stack.enter_context(LocalKafka(heap_mb=512, full_jit=True)).bootstrap
        rates = list(_measure(replace(options, kafka=servers), servers))
    full, bare = rates
    ratio = full.runs_per_s / bare.runs_per_s
    if options.json:
        report = {"options": asdict(options), "loops": [asdict(rate) for rate in rates], "ratio": ratio}
        typer.echo(orjson.dumps(report).decode())
        return 0
    typer.echo(f"{options.runs} runs of {options.tenants} tenants, {options.shards} shards, window {options.window}")
    for rate in rates:
        typer.echo(
            f"  {rate.name:<12} {rate.runs_per_s:>7} runs/s   "
            f"({rate.seconds:.1f} s, {rate.steps} steps of {rate.runs_per_step:.0f} runs)"
        )
    typer.echo(f"  ratio        {ratio:>7.2f}          (goal: {GOAL_PER_S} runs/s)")
    return 0


def _measure(options: E2eOptions, servers: str) -> Iterator[LoopRate]:
    for name in (_FULL, _BARE):
        kafka = KafkaSettings(servers=servers, prefix=f"bench-{name}-{clock.now_ms()}.")
        layout = Layout(shards=options.shards, prefix=kafka.prefix)
        ensure(admin_client(kafka), layout)
        policy = Policy(name="bench", window=Window(runs=options.window, tokens=None))
        publish_policy(kafka, PolicyChange(policy=policy, author="bench", applied_ms=clock.now_ms()))
        yield _loop(name, kafka, options)


def _loop(name: str, kafka: KafkaSettings, options: E2eOptions) -> LoopRate:
    place, runs = (kafka.servers, kafka.prefix), str(options.runs)
    port = free_ports(1)[0]
    with child(["streams.bench.scheduler", name, *place, str(options.shards), str(port)]) as scheduler:
        wait_until_ready(scheduler, port, _DEADLINE_S)
        with child(["streams.bench.load", "serve", *place, runs]) as fleet:
            begun_ms = clock.now_ms()
            with child(["streams.bench.load", "feed", *place, runs, str(options.tenants)]) as producer:
                finish(producer, _DEADLINE_S)
            finish(fleet, _DEADLINE_S)
        settled = wait_for_settlements(kafka, options.shards, options.runs, _DEADLINE_S)
    seconds = (settled.last_ms - begun_ms) / 1000
    return LoopRate(
        name=name,
        runs_per_s=round(options.runs / seconds),
        seconds=seconds,
        steps=settled.steps,
        runs_per_step=options.runs / settled.steps,
    )
