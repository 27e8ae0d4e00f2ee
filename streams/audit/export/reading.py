"""An exported directory, as a recording."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from streams.audit.export.files import read_file
from streams.audit.export.manifest import Manifest, Partition, read_manifest
from streams.audit.recording import Rec
from streams.errors import ConfigError


class ExportedRecording:
    """A `Recording`. Each file is checked against the manifest when it is read; of each reader one is in memory."""

    def __init__(self, directory: Path) -> None:
        """Read the manifest. Raises `ConfigError`."""
        self.manifest: Final[Manifest] = read_manifest(directory)
        self._directory: Final = directory
        self._partitions: Final[dict[tuple[str, int], Partition]] = {
            (each.topic, each.partition): each for each in self.manifest.partitions
        }

    @property
    def prefix(self) -> str:
        """See `Recording`."""
        return self.manifest.prefix

    @property
    def shards(self) -> int:
        """See `Recording`."""
        return self.manifest.shards

    def partitions(self, topic: str) -> int:
        """See `Recording`."""
        return self.manifest.topics.get(topic, 0)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
        """See `Recording`. Raises `ExportDamaged` when it comes to a file that is not what was exported."""
        files = self._partition(topic, partition).files
        for file in files[bisect_left(files, start, key=lambda each: each.last) :]:
            if stop is not None and file.first >= stop:
                return
            for record in read_file(self._directory, file):
                if stop is not None and record.offset >= stop:
                    return
                if record.offset >= start:
                    yield record

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See `Recording`."""
        found = self._partition(topic, partition)
        return found.first, found.next

    def _partition(self, topic: str, partition: int) -> Partition:
        found = self._partitions.get((topic, partition))
        if found is None:
            raise ConfigError(
                f"partition {partition} of {topic} was not exported, and this needs it", source=str(self._directory)
            )
        return found
