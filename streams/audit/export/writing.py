"""Writes what an auditor needs into a directory, so that nobody needs access to Kafka."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streams import __version__
from streams.audit.export.files import FileWriter
from streams.audit.export.manifest import FORMAT, WHAT, File, Manifest, Partition, write_manifest
from streams.audit.export.window import Window
from streams.audit.recording import Rec, Recording
from streams.core.version import VERSION
from streams.errors import ConfigError

TOPICS: Final = Window.ORDER

_TELL_EVERY: Final = 1_000  # records

Progress = Callable[[str, int, int], None]  # topic, records written of it, records expected of it at most


def export(
    recording: Recording,
    directory: Path,
    *,
    now_ms: int,
    topics: Sequence[str] = TOPICS,
    window: Window | None = None,
    progress: Progress = lambda _topic, _done, _of: None,
) -> Manifest:
    """Write a directory and return its manifest. It is there when it is complete, and not before.

    Without a `window` everything is taken. `topics` that the deployment does not have are left out.

    Raises:
        ConfigError: there is something already, it cannot be written, or a topic's name is none.
    """
    unknown = [topic for topic in topics if topic not in TOPICS]
    if unknown:
        raise ConfigError(f"export some of {', '.join(TOPICS)}", field="topics", value=unknown[0])
    with _refused(directory):
        _refuse_full(directory)
        partial = directory.with_name(f".{directory.name}.partial-{os.getpid()}")
        partial.mkdir(parents=True)
        try:
            found = [topic for topic in TOPICS if topic in topics and recording.partitions(topic)]
            taken = window or Window(recording)
            partitions = [
                each
                for topic in found
                if taken.includes(topic)
                for each in _topic(recording, partial, topic, taken, progress)
            ]
            manifest = _manifest(recording, taken, partitions, now_ms)
            write_manifest(partial, manifest)
            _refuse_full(directory)
            partial.rename(directory)
        except BaseException:
            shutil.rmtree(partial)
            raise
    return manifest


@contextmanager
def _refused(directory: Path) -> Iterator[None]:
    """Turn a directory that takes no file (no right, no room) into a `ConfigError`."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot be written: {error}", field="directory", value=str(directory)) from error


def _refuse_full(directory: Path) -> None:
    if not directory.name:  # "." would be taken away from under the shell that stands in it
        raise ConfigError("name a directory that is not there yet", field="directory", value=str(directory))
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(
            "is not empty; name a directory that is not there yet", field="directory", value=str(directory)
        )


def _topic(recording: Recording, folder: Path, topic: str, window: Window, progress: Progress) -> Iterator[Partition]:
    """Write one topic."""
    numbers = range(recording.partitions(topic))
    expected = sum(stop - first for first, stop in (window.bounds(topic, number) for number in numbers))
    done = 0
    for number in numbers:
        first, _ = window.bounds(topic, number)
        records = _counted(window.records(topic, number), done, lambda so_far: progress(topic, so_far, expected))
        files = list(_files(folder, f"{topic}-{number}", records))
        done += sum(file.records for file in files)
        yield Partition(topic, number, first, files[-1].last + 1 if files else first, files)
    progress(topic, expected, expected)


def _manifest(recording: Recording, window: Window, partitions: Sequence[Partition], now_ms: int) -> Manifest:
    return Manifest(
        what=WHAT,
        format=FORMAT,
        fairstream=__version__,
        core=VERSION,
        made_ms=now_ms,
        prefix=recording.prefix,
        shards=recording.shards,
        since_ms=window.since_ms,
        until_ms=window.until_ms,
        topics=dict(Counter(each.topic for each in partitions)),
        partitions=list(partitions),
    )


def _files(folder: Path, name: str, records: Iterator[Rec]) -> Iterator[File]:
    """Write records into as many files as it takes."""
    for number, record in enumerate(records):
        with FileWriter(folder / f"{name}-{number}.ndjson.gz") as writer:
            writer.write(record)
            while not writer.full and (more := next(records, None)) is not None:
                writer.write(more)
        yield writer.written


def _counted(records: Iterator[Rec], done: int, tell: Callable[[int], None]) -> Iterator[Rec]:
    for number, record in enumerate(records, start=done + 1):
        if number % _TELL_EVERY == 0:
            tell(number)
        yield record
