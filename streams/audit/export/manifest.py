"""What an exported directory holds: `manifest.json`, by which every file in it is checked while it is read."""

from __future__ import annotations

import re
from errno import EINVAL
from pathlib import Path
from stat import S_ISREG
from typing import Final

import msgspec

from streams.errors import ConfigError

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
WHAT: Final = (
    "The topics of a fairstream deployment, for an audit: committed records in order of offset, a JSON object a line, "
    "gzipped. Read with `fairstream audit ... --from` this directory."
)

PIECE_BYTES: Final = 65_536  # of a file have a checksum of their own, so that damage has a place
# A bound on what a file can cost the memory of its reader: the largest record, with each byte escaped, and then some.
MAX_TEXT_BYTES: Final = 160 * 1024 * 1024
_FRAME_BYTES: Final = 1_024  # of gzip, at most, beside a thousandth of what cannot be compressed

_MAX_MANIFEST_BYTES: Final = 256 * 1024 * 1024  # a million files
_MAX_SHARDS: Final = 100_000  # more than any Kafka has partitions of a topic

_NAME: Final = re.compile(r"[a-z]+-[0-9]{1,6}-[0-9]{1,6}\.ndjson\.gz")
_BY_SHARD: Final = ("requests", "completions", "journal", "state")  # each has a partition for each shard


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One gzipped file of some records that follow each other."""

    name: str
    records: int
    first: int  # offset of its first record, and of its last
    last: int
    bytes: int  # of the file
    text_bytes: int  # unpacked
    sha256: str  # of the file
    crc32: list[int]  # of each `PIECE_BYTES` of the file


class Partition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One partition of one topic."""

    topic: str  # without the prefix
    partition: int
    first: int  # the first offset that was there, and the one after the last, when it was exported
    next: int
    files: list[File]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole export."""

    what: str
    format: int
    fairstream: str  # version of the one that wrote it
    core: int  # version of its core
    made_ms: int
    prefix: str
    shards: int
    since_ms: int | None  # of steps; None: from the beginning
    until_ms: int | None
    topics: dict[str, int]  # without the prefix -> number of partitions
    partitions: list[Partition]


def read_regular(path: Path, most: int) -> bytes:
    """Return what a file holds, and one byte more than `most` at most: whoever made it can make it any size.

    Raises `OSError`, also for what is no regular file: a pipe would be waited for, a device read without end.
    """
    if not S_ISREG(path.stat().st_mode):
        raise OSError(EINVAL, "no regular file", str(path))
    with path.open("rb") as file:
        return file.read(most + 1)


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write it, for people too."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (directory / MANIFEST).write_bytes(text + b"\n")


def read_manifest(directory: Path) -> Manifest:
    """Read it, and see that it can be true. Raises `ConfigError`."""
    path = directory / MANIFEST
    try:
        data = read_regular(path, _MAX_MANIFEST_BYTES)
    except OSError as error:
        raise ConfigError(
            f"is no export of `fairstream audit export`: {_missing(error)}", source=str(directory)
        ) from error
    if len(data) > _MAX_MANIFEST_BYTES:
        raise ConfigError(f"is no manifest: it has more than {_MAX_MANIFEST_BYTES} bytes", source=str(path))
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        form = _format(data)
        if form is not None and form != FORMAT:
            raise ConfigError(
                f"is an export of format {form}, and this fairstream reads {FORMAT}", source=str(path)
            ) from error
        raise ConfigError(f"is no manifest: {error}", source=str(path)) from error
    problem = _problem(found)
    if problem is not None:
        raise ConfigError(problem, source=str(path))
    return found


def _missing(error: OSError) -> str:
    if isinstance(error, NotADirectoryError):
        return "it is no directory"
    if isinstance(error, FileNotFoundError):
        where = Path(error.filename).parent
        return f"it has no {MANIFEST}" if where.is_dir() else "there is no such directory"
    return str(error)


def _format(data: bytes) -> object:
    """Return the format of a manifest that is not ours; None if it is none at all."""
    try:
        return msgspec.json.decode(data, type=dict[str, object]).get("format")
    except msgspec.MsgspecError:
        return None


def _problem(manifest: Manifest) -> str | None:
    """Return what cannot be true of it. That what it says is so, the files show when they are read."""
    if manifest.format != FORMAT:
        return f"is of format {manifest.format}, and this fairstream reads {FORMAT}"
    places = {(each.topic, each.partition) for each in manifest.partitions}
    known = all(0 <= number < manifest.topics.get(topic, 0) for topic, number in places)
    # Counted, not listed: a count may be any number.
    if not known or not len(places) == len(manifest.partitions) == sum(manifest.topics.values()):
        return "does not list each partition of its topics once"
    shards = manifest.shards
    if not 0 < shards <= _MAX_SHARDS or any(manifest.topics.get(topic, shards) != shards for topic in _BY_SHARD):
        return f"cannot be of {shards} shards"
    return next(filter(None, map(_problem_of, manifest.partitions)), None)


def _problem_of(partition: Partition) -> str | None:
    where = f"{partition.topic} {partition.partition}"
    end = partition.first
    if not 0 <= end <= partition.next:
        return f"{where}: cannot begin at {end} and end before {partition.next}"
    for file in partition.files:
        if not _NAME.fullmatch(file.name) or not file.name.startswith(f"{partition.topic}-{partition.partition}-"):
            return f"{where}: names a file that no export has: {file.name!r}"
        if not end <= file.first <= file.last < partition.next:
            return f"{where}: its files do not follow each other: {file.name!r}"
        if not 0 < file.records <= file.last - file.first + 1:
            return f"{where}: {file.name!r} cannot hold {file.records} records"
        if not 0 < file.text_bytes <= MAX_TEXT_BYTES:
            return f"{where}: {file.name!r} cannot be unpacked to {file.text_bytes} bytes"
        if not 0 < file.bytes <= file.text_bytes + file.text_bytes // 1_000 + _FRAME_BYTES:
            return f"{where}: {file.name!r} cannot have {file.bytes} bytes"
        end = file.last + 1
    return None
