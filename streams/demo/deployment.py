"""One story's deployment: its topics, its policy, one scheduler, one fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streams import clock
from streams.admin.kafka import admin_client
from streams.admin.policy import publish_policy
from streams.admin.topics import Layout, ensure
from streams.client import Publisher
from streams.demo.observer import Observer
from streams.errors import StartFailed
from streams.kafka import KafkaSettings
from streams.local.owned import OwnedProcess
from streams.simulate.story import Story
from streams.wire import PolicyChange

REHEARSAL: Final = "rehearsal"  # the tenant whose runs show that everything works; it is in no story

_READY_S: Final = 60.0  # two Python processes, two groups, a takeover, on a machine that has more to do
_LOOK_S: Final = 0.1
_REHEARSALS: Final = 8
_TAIL: Final = 15  # lines of a log that are shown when its process has failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is running, and what has been seen of it."""

    kafka: KafkaSettings
    publisher: Publisher
    observer: Observer
    processes: Mapping[Path, OwnedProcess]  # by their logs

    def check(self) -> None:
        """Raise `StartFailed`, with the end of its log, if a process has ended."""
        for log, process in self.processes.items():
            status = process.exit_status
            if status is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
                what = f"the {log.stem} ended with exit status {status}; the end of its log:"
                raise StartFailed("\n".join([what, *lines]), log=log)


@contextmanager
def deploy(kafka: KafkaSettings, story: Story, *, config: Path | None, logs: Path) -> Iterator[Deployment]:
    """Set everything up and wait until runs go through it, from request to settlement; end it afterwards.

    Raises `StartFailed` if that takes too long, and what Kafka's absence raises.
    """
    ensure(admin_client(kafka), Layout(shards=1, dispatch_partitions=1, prefix=kafka.prefix))
    publish_policy(kafka, PolicyChange(story.policy, "fairstream demo", clock.now_ms()))
    with ExitStack() as stack:
        # The fleet is started last, so it ends first, and hands what it has not done back to a living scheduler.
        processes = {
            log: stack.enter_context(OwnedProcess(arguments, log))
            for log, arguments in _commands(kafka, story, config, logs)
        }
        deployment = Deployment(
            kafka=kafka,
            publisher=stack.enter_context(Publisher(kafka)),
            observer=stack.enter_context(Observer(kafka)),
            processes=processes,
        )
        _rehearse(deployment)
        yield deployment


def _commands(kafka: KafkaSettings, story: Story, config: Path | None, logs: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield what a person would type after `fairstream`, and where the output goes."""
    place = ["--kafka", kafka.servers, "--prefix", kafka.prefix]
    place += ["--kafka-config", str(config)] if config else []
    yield logs / "scheduler.log", ["scheduler", *place, "--shards", "1"]
    speed = ["--tokens-per-second", str(story.tokens_per_s), "--concurrency", str(story.slots)]
    yield logs / "fleet.log", ["worker", "--simulate", *speed, "--drain", "0", *place]


def _rehearse(deployment: Deployment) -> None:
    """Send some runs through everything and wait until they are settled: all connections are warm then."""
    records = deployment.observer.records
    for number in range(_REHEARSALS):
        deployment.publisher.submit(REHEARSAL, f"run-{number}", REHEARSAL, {"tokens": 1})

    def settled() -> bool:
        deployment.check()
        deployment.observer.poll(_LOOK_S)
        return records.succeeded >= _REHEARSALS

    try:
        clock.wait_until(settled, _READY_S, 0.0, what="the first runs through the scheduler")
    except TimeoutError as error:
        raise StartFailed(str(error)) from error
