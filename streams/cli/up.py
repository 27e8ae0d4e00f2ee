"""`fairstream up`."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streams.cli import options
from streams.cli.output import remark, say, say_json
from streams.errors import FairstreamError, NotInstalled, StartFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from streams.kafka import KafkaSettings

_READY_S: Final = 60.0  # a scheduler's start on a busy machine: Faust, a group, fencing, loading
_LOOK_S: Final = 0.2


def up(
    *,
    kafka: Annotated[
        str | None, typer.Option("--kafka", metavar="HOST:PORT", help="Use this Kafka instead of a local one.")
    ] = None,
    shards: options.Shards = 1,
    dispatch_partitions: options.DispatchPartitions = 8,
    data_dir: Annotated[
        Path | None, typer.Option(help="Keep the local Kafka's data here, for next time; without it temporary.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the local Kafka; without it a free one.")
    ] = None,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Run everything on this machine: a local Kafka, topics, a policy and one scheduler. Ctrl-C ends all of it."""
    from streams import clock
    from streams.demo.entry import missing_extras
    from streams.local.owned import OwnedProcess

    missing = missing_extras(local=kafka is None)
    if missing:
        raise NotInstalled(f"`fairstream up` needs more: pip install 'fairstream[{','.join(missing)}]'")
    stopping = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopping.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    with ExitStack() as stack:
        servers = kafka or _start_kafka(stack, data_dir, port)
        settings = options.kafka_settings(servers, prefix, kafka_config)
        _prepare(settings, shards, dispatch_partitions)
        since_ms = clock.now_ms()
        arguments = ["scheduler", "--kafka", servers, "--prefix", prefix, "--shards", str(shards)]
        arguments += ["--dispatch-partitions", str(dispatch_partitions)]
        arguments += ["--kafka-config", str(kafka_config)] if kafka_config else []
        process = stack.enter_context(OwnedProcess([*arguments, *(["--verbose"] if verbose else [])]))
        _wait_until_ready(settings, shards, since_ms, lambda: process.exit_status is None, stopping)
        if not stopping.is_set():
            _tell(settings, json=json)
        while not stopping.wait(_LOOK_S):
            if process.exit_status is not None:
                raise FairstreamError(f"the scheduler ended with exit status {process.exit_status}; see its log above")
    remark("stopped")


def _start_kafka(stack: ExitStack, data_dir: Path | None, port: int | None) -> str:
    from streams.local import LocalKafka

    remark("starting a local Kafka")
    return stack.enter_context(LocalKafka(data_dir=data_dir, port=port)).bootstrap


def _prepare(kafka: KafkaSettings, shards: int, dispatch_partitions: int) -> None:
    """Topics, and a policy if there is none yet: one that somebody has applied stays."""
    from streams import clock
    from streams.admin.kafka import admin_client
    from streams.admin.policy import load_policy, publish_policy, read_policy
    from streams.admin.topics import Layout, ensure
    from streams.resources import config_path
    from streams.wire import PolicyChange

    ensure(admin_client(kafka), Layout(shards=shards, dispatch_partitions=dispatch_partitions, prefix=kafka.prefix))
    if read_policy(kafka) is None:
        publish_policy(kafka, PolicyChange(load_policy(config_path("policy.toml")), "fairstream up", clock.now_ms()))


def _wait_until_ready(
    kafka: KafkaSettings, shards: int, since_ms: int, running: Callable[[], bool], stopping: threading.Event
) -> None:
    """Wait until every shard has made a step since then, or we are told to stop."""
    from streams import clock
    from streams.client.status import StatusReader
    from streams.core.snapshot import ShardView

    with StatusReader(kafka) as reader:

        def ready() -> bool:
            reader.follow(_LOOK_S)
            if not running():
                raise StartFailed("the scheduler did not start; its log above says why")
            serving = {
                status.shard
                for status in reader.statuses
                if isinstance(status.view, ShardView) and status.at_ms >= since_ms
            }
            return stopping.is_set() or len(serving) >= shards

        try:
            clock.wait_until(ready, _READY_S, what="the scheduler's first steps")
        except TimeoutError as error:
            raise StartFailed(f"{error}; its log above may say why") from error


def _tell(kafka: KafkaSettings, *, json: bool) -> None:
    if json:
        say_json({"kafka": kafka.servers, "prefix": kafka.prefix}, indent=False)
        return
    other = "" if kafka.prefix == options.DEFAULT_PREFIX else f" FAIRSTREAM_PREFIX={kafka.prefix}"
    say(
        f"""
ready. In another terminal:

    export FAIRSTREAM_KAFKA={kafka.servers}{other}
    fairstream worker --simulate --tokens-per-second 1000
    fairstream submit --tenant acme --workflow summarise --payload '{{"tokens": 2000}}'
    fairstream status --watch

Ctrl-C ends it."""
    )
