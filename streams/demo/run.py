"""Plays the demo from Kafka's start to the exit status."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from streams import clock
from streams.admin.kafka import admin_client, look
from streams.audit.export import export
from streams.audit.kafka_recording import KafkaRecording
from streams.demo.claims import Claim, judge
from streams.demo.deployment import deploy
from streams.demo.measure import Figures, measure
from streams.demo.observer import read_accounts
from streams.demo.options import DemoOptions
from streams.demo.player import play_story
from streams.demo.progress import watching
from streams.demo.show import WIDTH, show, to_json
from streams.demo.story import make_stories
from streams.errors import FairstreamError, Unavailable
from streams.kafka import DEFAULT_PREFIX, KafkaSettings, read_options
from streams.local.progress import say
from streams.simulate.story import Story

_READ_S: Final = 30.0  # for the rows of a shard: a second, on a machine that is not busy


def play_demo(options: DemoOptions) -> int:
    """Play the stories; see `entry.run_demo`."""
    begin = clock.monotonic()
    results: list[tuple[Figures, list[Claim]]] = []
    console = _console()
    with _kafka(options) as servers, _logs() as logs:
        for story in make_stories(options.story, options.seed):
            figures = _play(story, servers, options, logs)
            results.append((figures, judge(figures)))
            if not options.json:
                show(*results[-1], console)
    if options.json:
        sys.stdout.write(to_json(results).decode() + "\n")
    claims = [claim for _, each in results for claim in each]
    held = sum(claim.holds for claim in claims)
    say(f"{held} of {len(claims)} claims hold. The demo took {clock.monotonic() - begin:.0f} s.")
    return 0 if held == len(claims) else 1


def _play(story: Story, servers: str, options: DemoOptions, logs: Path) -> Figures:
    # Topics of its own for each run of the demo: on a Kafka of yours it finds nothing old and overwrites nothing.
    config = options.kafka_config
    kafka = _settings(servers, config, prefix=f"demo-{story.name}-{clock.now_ms()}.")
    folder = logs / story.name
    folder.mkdir()
    say(f"starting a scheduler and {story.slots} worker slots")
    with deploy(kafka, story, config=config, logs=folder) as deployment:
        say(f"playing: {story.title}")
        with watching(story) as watch:
            begin_ms = play_story(story, deployment, watch)
        records = deployment.observer.records
    if options.export is not None:
        say(f"keeping the topics: {options.export / story.name}")
        export(KafkaRecording(kafka), options.export / story.name, now_ms=clock.now_ms())
    return measure(story, records, read_accounts(kafka, _READ_S), begin_ms)


def _settings(servers: str, config: Path | None, prefix: str = DEFAULT_PREFIX) -> KafkaSettings:
    return KafkaSettings(servers=servers, prefix=prefix, options=read_options(config) if config else {})


def _require_kafka(kafka: KafkaSettings) -> None:
    try:
        look(admin_client(kafka))
    except Unavailable as error:
        raise Unavailable(
            f"no Kafka answers at {kafka.servers}; correct --kafka, or leave it out to have a local one"
        ) from error


def _console() -> Console:
    """On a terminal as wide as it is, but no wider than the tables need; elsewhere just as wide as they need."""
    console = Console()
    return Console(width=min(WIDTH, console.width) if console.is_terminal else WIDTH)


@contextmanager
def _kafka(options: DemoOptions) -> Iterator[str]:
    if options.kafka is not None:
        _require_kafka(_settings(options.kafka, options.kafka_config))
        yield options.kafka
        return
    from streams.local import LocalKafka  # noqa: PLC0415 - only this needs the `local` extra

    say("starting a real Kafka on this machine")
    with LocalKafka() as local:
        yield local.bootstrap


@contextmanager
def _logs() -> Iterator[Path]:
    """A folder for the processes' logs, kept if the demo fails."""
    folder = Path(tempfile.mkdtemp(prefix="fairstream-demo-"))
    try:
        yield folder
    except FairstreamError:
        say(f"the logs of the scheduler and of the fleet were kept: {folder}")
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
