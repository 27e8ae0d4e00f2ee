"""A takeover of many queued runs: how long until every shard is served again, and what the runs take in memory.

Nothing is made up: a scheduler is fed requests, with a window so small that nearly all of them stay queued, and its
state topic is what it wrote. It is stopped, and a second one takes over. Beside it stands a consumer that reads the
same partitions to their end and decodes nothing: what no loader can be faster than.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import orjson
import typer

from streams import clock
from streams.admin.kafka import admin_client
from streams.admin.policy import publish_policy
from streams.admin.topics import Layout, ensure
from streams.app.settings import Settings
from streams.bench.kafka import some_kafka
from streams.bench.processes import Start, check_alive, finish, wait_until_ready, watch_start
from streams.bench.progress import counting_to
from streams.bench.resident import resident, settled
from streams.client.status import StatusReader
from streams.core.policy import Leases, Limits, Policy, Window
from streams.core.snapshot import ShardView
from streams.errors import FairstreamError
from streams.kafka import KafkaSettings, mapped_errors
from streams.local.owned import OwnedProcess
from streams.local.ports import free_ports
from streams.partition import bounds, open_reader, read_to_end
from streams.wire import PolicyChange, decode_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka.admin import AdminClient

_DEADLINE_S: Final = 900.0
_ANSWER_S: Final = 15.0
_LOOK_S: Final = 0.5
_MB: Final = 1_000_000
_NEVER_MS: Final = 3_600_000  # a lease that does not run out meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverOptions:
    """What to measure."""

    runs: int = 1_000_000
    shards: int = 4
    tenants: int = 200
    kafka: str | None = None  # host:port; None: a local one, for as long as it takes
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverReport:
    """Seconds and bytes of one takeover."""

    options: TakeoverOptions
    records: int  # in the state topic, those that later ones replace included
    payload_bytes: int  # of all queued runs
    start: Start  # of the process that takes over
    stepped_s: float  # from its start until the last shard's first step was written
    bare_s: float  # a consumer that decodes nothing
    empty_rss: int  # bytes, with nothing loaded
    peak_rss: int
    settled_rss: int

    @property
    def takeover_s(self) -> float:
        """From the group's assignment until every shard is served: fencing, loading, seeking."""
        return self.start.served_s - self.start.assigned_s

    @property
    def records_per_s(self) -> int:
        """Records of the state topic over the time of the takeover."""
        return round(self.records / self.takeover_s)

    @property
    def ratio(self) -> float:
        """The bare consumer's time over the takeover's."""
        return self.bare_s / self.takeover_s

    def bytes_a_run(self, rss: int) -> int:
        """Bytes of memory for each queued run, beside its payload."""
        return round((rss - self.empty_rss - self.payload_bytes) / self.options.runs)


def run_takeover(options: TakeoverOptions) -> int:
    """Measure, print; return the exit code (0, whatever the figures are)."""
    with some_kafka(options.kafka) as servers:
        report = measure_takeover(options, servers)
    if options.json:
        figures = {
            "takeover_s": report.takeover_s,
            "records_per_s": report.records_per_s,
            "ratio": report.ratio,
            "settled_bytes_a_run": report.bytes_a_run(report.settled_rss),
            "peak_bytes_a_run": report.bytes_a_run(report.peak_rss),
        }
        typer.echo(orjson.dumps({**asdict(report), **figures}).decode())
    else:
        _show(report)
    return 0


def measure_takeover(options: TakeoverOptions, servers: str) -> TakeoverReport:
    """Fill a deployment, read its state as fast as Kafka gives it, and take it over."""
    kafka = KafkaSettings(servers=servers, prefix=f"bench-takeover-{clock.now_ms()}.")
    ensure(admin_client(kafka), Layout(shards=options.shards, prefix=kafka.prefix))
    policy = Policy(
        name="bench",
        window=Window(runs=options.shards, tokens=None),
        limits=Limits(max_queued_runs=None, max_queued_bytes=None),
        leases=Leases(lease_ms=_NEVER_MS),
    )
    publish_policy(kafka, PolicyChange(policy=policy, author="bench", applied_ms=clock.now_ms()))
    with _scheduler(kafka, options) as (filled, port):
        wait_until_ready(filled, port, _DEADLINE_S)
        empty_rss = resident(filled.pid).now
        payload_bytes = _fill(kafka, options, filled)
    records, bare_s = _read_bare(kafka, options.shards)
    since = _ends(kafka, options.shards)
    admin, group = admin_client(kafka), Settings(kafka=servers, prefix=kafka.prefix).group_id
    begun_ms = clock.now_ms()
    with _scheduler(kafka, options) as (taking, port):
        start = watch_start(taking, port, _DEADLINE_S, assigned=lambda: _assigned(admin, group))
        stepped_ms = max(_first_step_ms(kafka, shard, offset) for shard, offset in enumerate(since))
        memory = settled(taking.pid)
    return TakeoverReport(
        options=options,
        records=records,
        payload_bytes=payload_bytes,
        start=start,
        stepped_s=(stepped_ms - begun_ms) / 1000,
        bare_s=bare_s,
        empty_rss=empty_rss,
        peak_rss=memory.peak,
        settled_rss=memory.now,
    )


def _show(report: TakeoverReport) -> None:
    options, start = report.options, report.start
    typer.echo(f"{options.runs:,} queued runs of {options.tenants} tenants, {options.shards} shards in one process")
    for title, seconds in (
        ("all shards served", f"{start.served_s:.1f} s after the process began"),
        ("each has taken a step", f"{report.stepped_s:.1f} s"),
        ("since the group gave them", f"{report.takeover_s:.1f} s, {report.records_per_s:,} records/s"),
        ("a reader that decodes nothing", f"{report.bare_s:.1f} s, ratio {report.ratio:.2f}"),
        ("longest silence of the loop", f"{start.silence_s:.2f} s"),
    ):
        typer.echo(f"  {title:<32} {seconds}")
    for title, rss in (("memory, settled", report.settled_rss), ("memory, at its peak", report.peak_rss)):
        each = report.bytes_a_run(rss)
        typer.echo(f"  {title:<32} {rss / _MB:,.0f} MB, {each:,} bytes a queued run beside its payload")


@contextmanager
def _scheduler(kafka: KafkaSettings, options: TakeoverOptions) -> Iterator[tuple[OwnedProcess, int]]:
    port = free_ports(1)[0]
    arguments = ["full", kafka.servers, kafka.prefix, str(options.shards), str(port)]
    with OwnedProcess(arguments, module="streams.bench.scheduler") as process:
        yield process, port


def _fill(kafka: KafkaSettings, options: TakeoverOptions, scheduler: OwnedProcess) -> int:
    """Feed the scheduler until it holds every run, and return the bytes of their payloads."""
    feed = ["feed", kafka.servers, kafka.prefix, str(options.runs), str(options.tenants)]
    with (
        OwnedProcess(feed, module="streams.bench.load") as producer,
        StatusReader(kafka) as status,
        counting_to(options.runs, "runs queued") as show,
    ):

        def held() -> int | None:
            check_alive(scheduler)
            status.follow(_LOOK_S)
            views = [each.view for each in status.statuses if isinstance(each.view, ShardView)]
            queued = sum(view.queued_runs + view.flight_runs for view in views)
            show(queued)
            return sum(view.queued_bytes for view in views) if queued == options.runs else None

        try:
            found = clock.wait_until(held, _DEADLINE_S, 0.0, what=f"{options.runs:,} queued runs")
        except TimeoutError as error:
            raise FairstreamError(str(error)) from error
        finish(producer, "the producer", _DEADLINE_S)
    assert found is not None
    return found


def _assigned(admin: AdminClient, group: str) -> bool:
    """Whether the group has given its partitions to somebody."""
    with mapped_errors("looking at the group"):
        found = admin.describe_consumer_groups([group], request_timeout=_ANSWER_S)[group].result()
    return any(member.assignment.topic_partitions for member in found.members)


def _read_bare(kafka: KafkaSettings, shards: int) -> tuple[int, float]:
    """Return how many records the state has, and how long it takes to see them all."""
    begun = clock.monotonic()
    with open_reader(kafka, "bench-reader") as consumer:
        records = sum(1 for shard in range(shards) for _ in read_to_end(consumer, kafka.topics.state, shard))
    return records, clock.monotonic() - begun


def _ends(kafka: KafkaSettings, shards: int) -> list[int]:
    with open_reader(kafka, "bench-reader") as consumer:
        return [bounds(consumer, kafka.topics.journal, shard)[1] for shard in range(shards)]


def _first_step_ms(kafka: KafkaSettings, shard: int, offset: int) -> int:
    """Return when the first step from `offset` of the journal on was written; waits for it."""
    with open_reader(kafka, "bench-reader") as consumer:

        def first() -> int | None:
            steps = list(read_to_end(consumer, kafka.topics.journal, shard, offset))
            assert not steps or decode_journal(steps[0].value()).takeover
            return steps[0].timestamp()[1] if steps else None

        try:
            found = clock.wait_until(first, _DEADLINE_S, what=f"shard {shard}'s first step")
        except TimeoutError as error:
            raise FairstreamError(str(error)) from error
    assert found is not None
    return found
