"""A recording in a directory: the same records, in files that are what the manifest says or are not read."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from errno import ENOSPC
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.audit.export import TOPICS, ExportedRecording, files
from streams.audit.export import export as write
from streams.audit.export.files import FileWriter
from streams.audit.export.manifest import MANIFEST, Manifest
from streams.audit.recording import MemoryRecording, Rec
from streams.audit.replay import ReplayOptions, replay_shards
from streams.core.version import VERSION
from streams.errors import ConfigError, ExportDamaged
from tests.unit.audit.replay.played import recorded


def export(recording: MemoryRecording, directory: Path, **more: Any) -> Manifest:
    return write(recording, directory, now_ms=1_764_000_000_000, **more)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "export"


def test_what_is_read_is_what_was_exported(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROLL_BYTES", 20_000)
    recording = recorded()
    manifest = export(recording, directory)
    found = ExportedRecording(directory)
    assert found.manifest == manifest
    assert (found.prefix, found.shards) == ("runs.", 2)
    assert (manifest.core, manifest.made_ms, manifest.since_ms) == (VERSION, 1_764_000_000_000, None)
    assert sorted(path.name for path in directory.iterdir()) == sorted(
        [MANIFEST, *(file.name for each in manifest.partitions for file in each.files)]
    )
    assert any(len(each.files) > 2 for each in manifest.partitions)
    for topic in ("checkpoints", "board"):
        assert found.partitions(topic) == recording.partitions(topic) == 0
    for (topic, partition), records in recording.topics.items():
        assert found.partitions(topic) == recording.partitions(topic)
        assert found.bounds(topic, partition) == recording.bounds(topic, partition)
        assert [*found.read(topic, partition)] == records
        middle, later = records[len(records) // 3].offset, records[len(records) // 2].offset + 1
        for limits in ((middle, None), (middle, later), (middle + 1, later - 1), (later, middle), (10**9, None)):
            assert [*found.read(topic, partition, *limits)] == [*recording.read(topic, partition, *limits)]


def test_a_directory_is_replayed_as_the_recording_is(directory: Path) -> None:
    export(recorded(), directory)
    outcomes = [
        replay_shards(each, (0, 1), ReplayOptions(), jobs=jobs, tell=lambda _: None)
        for each, jobs in ((recorded(), 1), (ExportedRecording(directory), 2))
    ]
    assert all(each.equal for each in outcomes[1])
    assert [each.state for each in outcomes[0]] == [each.state for each in outcomes[1]]


def test_progress_is_told_up_to_the_whole(directory: Path) -> None:
    told: dict[str, list[tuple[int, int]]] = {}
    export(recorded(), directory, progress=lambda topic, done, of: told.setdefault(topic, []).append((done, of)))
    assert [*told] == [topic for topic in TOPICS if topic != "checkpoints"]
    assert all(steps == sorted(steps) and steps[-1][0] == steps[-1][1] for steps in told.values())


def test_only_some_topics(directory: Path) -> None:
    manifest = export(recorded(), directory, topics=("journal", "dispatch"))
    assert manifest.topics == {"journal": 2, "dispatch": 2}
    found = ExportedRecording(directory)
    assert [*found.read("dispatch", 0)] == [*recorded().read("dispatch", 0)]
    assert found.partitions("requests") == 0
    with pytest.raises(ConfigError, match="partition 0 of requests was not exported"):
        found.bounds("requests", 0)


def test_a_topic_that_there_is_not(directory: Path) -> None:
    with pytest.raises(ConfigError, match=r"topics: export some of checkpoints, state, .* \(got 'jurnal'\)"):
        export(recorded(), directory, topics=("journal", "jurnal"))
    assert not directory.exists()


@pytest.mark.parametrize("make", [lambda path: path.write_text(""), lambda path: (path / "x").mkdir(parents=True)])
def test_nothing_is_written_over(directory: Path, make: Callable[[Path], object]) -> None:
    make(directory)
    with pytest.raises(ConfigError, match=r"directory: is not empty; ") as caught:
        export(recorded(), directory)
    assert caught.value.value == str(directory)
    assert [path.name for path in directory.parent.iterdir()] == ["export"]


def test_an_empty_directory_is_used(directory: Path) -> None:
    directory.mkdir()
    export(recorded(), directory)
    assert ExportedRecording(directory).shards == 2


def test_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"directory: cannot be written: ") as caught:
        export(recorded(), tmp_path / "file" / "export")
    assert caught.value.value == str(tmp_path / "file" / "export")


def test_not_into_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"directory: name a directory that is not there yet \(got '\.'\)"):
        export(recorded(), Path())


def test_no_room_is_told_and_leaves_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_writer: FileWriter, _record: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(FileWriter, "write", write)
    with pytest.raises(ConfigError, match=r"directory: cannot be written: .*No space left on device"):
        export(recorded(), directory)
    assert not [*directory.parent.iterdir()]


def test_an_export_that_fails_leaves_nothing(directory: Path) -> None:
    def fail(topic: str, _done: int, _of: int) -> None:
        if topic == "requests":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(recorded(), directory, progress=fail)
    assert list(directory.parent.iterdir()) == []


# --- damage


@pytest.fixture
def journal(directory: Path) -> Path:
    """A file of the export."""
    export(recorded(), directory)
    return directory / "journal-0-0.ndjson.gz"


def read(path: Path) -> list[Rec]:
    return [*ExportedRecording(path.parent).read("journal", 0)]


def test_a_flipped_byte_is_named_with_file_and_place(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (0, 5_000, journal.stat().st_size - 1):
        data = bytearray(journal.read_bytes())
        data[place] ^= 1
        journal.write_bytes(data)
        first, last = (recorded().topics["journal", 0][index].offset for index in (0, -1))
        with pytest.raises(ExportDamaged) as damaged:
            read(journal)
        assert f"{journal}: bytes 0 to {len(data) - 1} are not what was exported" in str(damaged.value)
        assert f"records of offsets {first} to {last}" in str(damaged.value)
        data[place] ^= 1
        journal.write_bytes(data)
    assert read(journal) == recorded().topics["journal", 0]


def test_the_place_is_a_piece_of_a_large_file(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("files", "manifest"):
        monkeypatch.setattr(f"streams.audit.export.{module}.PIECE_BYTES", 1_000)
    export(recorded(), directory)
    path = directory / "journal-0-0.ndjson.gz"
    data = bytearray(path.read_bytes())
    data[4_321] ^= 0x80
    path.write_bytes(data)
    with pytest.raises(ExportDamaged, match="bytes 4000 to 4999 are not what was exported"):
        read(path)


def test_a_file_that_is_cut_longer_or_gone(journal: Path) -> None:
    data = journal.read_bytes()
    for wrong in (data[:-1], data + b"\0", b""):
        journal.write_bytes(wrong)
        with pytest.raises(ExportDamaged, match=f"has {len(wrong)} bytes, and the manifest says {len(data)}"):
            read(journal)
    journal.unlink()
    with pytest.raises(ExportDamaged, match="cannot be read"):
        read(journal)


@pytest.mark.parametrize("name", [MANIFEST, "journal-0-0.ndjson.gz"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_read(journal: Path, name: str, make: Callable[[Path], object]) -> None:
    """A pipe would be waited for, a device read without end."""
    path = journal.parent / name
    path.unlink()
    make(path)
    with pytest.raises((ConfigError, ExportDamaged), match="no regular file"):
        read(journal)


def test_no_more_is_read_of_a_file_than_the_manifest_says(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1 << 36
    os.truncate(journal, size)
    with pytest.raises(ExportDamaged, match=f"has {size} bytes, and the manifest says"):
        read(journal)
    monkeypatch.setattr("streams.audit.export.manifest._MAX_MANIFEST_BYTES", 1_000)
    with pytest.raises(ConfigError, match="more than 1000 bytes"):
        read(journal)


def test_files_that_nobody_asks_for_are_not_read(journal: Path) -> None:
    journal.unlink()
    assert [*ExportedRecording(journal.parent).read("journal", 1)] == recorded().topics["journal", 1]


def lie(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Let the manifest say something else of a file."""
    manifest_path = path.parent / MANIFEST
    manifest = orjson.loads(manifest_path.read_bytes())
    [entry] = [file for each in manifest["partitions"] for file in each["files"] if file["name"] == path.name]
    change(entry)
    manifest_path.write_bytes(orjson.dumps(manifest))


def rewrite(path: Path, lines: list[bytes]) -> None:
    """Put other lines into a file, and make hashes and sizes right again."""
    text = b"".join(lines)
    data = gzip.compress(text)
    path.write_bytes(data)
    sums = {"sha256": hashlib.sha256(data).hexdigest(), "crc32": [zlib.crc32(data)]}
    lie(path, lambda entry: entry.update(bytes=len(data), text_bytes=len(text), **sums))


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def test_a_manifest_that_lies_is_found(journal: Path) -> None:
    rewrite(journal, lines_of(journal)[:-1])
    with pytest.raises(ExportDamaged, match=r"holds \d+ records, and the manifest says"):
        read(journal)
    lie(journal, lambda entry: entry.update(records=entry["records"] - 1))
    assert len(read(journal)) == len(recorded().topics["journal", 0]) - 1  # by hand and all of it: replay finds that
    lie(journal, lambda entry: entry.update(last=entry["first"] + entry["records"]))
    with pytest.raises(ExportDamaged, match=r"line \d+ has offset \d+, and the manifest says"):
        read(journal)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: [*lines[:3], b"no record\n", *lines[4:]], "line 4 is no record"),
        (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], "line 5 has offset"),
        (lambda lines: [*lines[:3], lines[2], *lines[4:]], "line 4 has offset"),
    ],
)
def test_lines_that_are_no_records_in_order(
    journal: Path, change: Callable[[list[bytes]], list[bytes]], why: str
) -> None:
    rewrite(journal, change(lines_of(journal)))
    with pytest.raises(ExportDamaged, match=why):
        read(journal)


def test_a_file_that_unpacks_to_more_than_it_says_is_not_unpacked(journal: Path) -> None:
    size = len(gzip.decompress(journal.read_bytes()))
    lie(journal, lambda entry: entry.update(text_bytes=size - 1))
    with pytest.raises(ExportDamaged, match=f"unpacked to other than the {size - 1} bytes"):
        read(journal)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "../../secret-0-0.ndjson.gz"}, "names a file that no export has"),
        ({"name": "journal-1-0.ndjson.gz"}, "names a file that no export has"),
        ({"name": "requests-0-0.ndjson.gz"}, "names a file that no export has"),
        ({"bytes": 10**12}, "cannot have 1000000000000 bytes"),
        ({"bytes": 0}, "cannot have 0 bytes"),
        ({"first": 10**9}, "its files do not follow each other"),
        ({"records": 10**9}, "cannot hold 1000000000 records"),
        ({"records": 0}, "cannot hold 0 records"),
        ({"text_bytes": 10**12}, "cannot be unpacked to 1000000000000 bytes"),
    ],
)
def test_a_manifest_that_cannot_be_true_is_refused(journal: Path, change: dict[str, Any], why: str) -> None:
    lie(journal, lambda entry: entry.update(change))
    with pytest.raises(ConfigError, match=f"{MANIFEST}: journal 0: .*{why}"):
        ExportedRecording(journal.parent)


NO_COUNTS = (0, -3, 1, 3, 10**18)  # of the shards of a recording that has two


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda manifest: manifest.update(format=2, more=1), "is an export of format 2, and this fairstream reads 1"),
        (lambda manifest: manifest.update(format=2), "of format 2, and this fairstream reads 1"),
        (lambda manifest: manifest["partitions"].pop(), "does not list each partition of its topics once"),
        (lambda manifest: manifest["topics"].update(requests=10**12), "does not list each partition"),
        (lambda manifest: manifest.pop("shards"), "is no manifest"),
        *(
            (lambda manifest, shards=shards: manifest.update(shards=shards), f"cannot be of {shards} shards")
            for shards in NO_COUNTS
        ),
        (lambda manifest: manifest["partitions"][2].update(first=-1), "cannot begin at -1"),
        (lambda manifest: manifest["partitions"][2].update(next=-1), "and end before -1"),
    ],
)
def test_nor_is_one_that_is_not_ours(journal: Path, change: Callable[[dict[str, Any]], object], why: str) -> None:
    path = journal.parent / MANIFEST
    manifest = orjson.loads(path.read_bytes())
    change(manifest)
    path.write_bytes(orjson.dumps(manifest))
    with pytest.raises(ConfigError, match=why):
        ExportedRecording(journal.parent)


def test_no_directory_no_manifest(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    given = {
        tmp_path: "it has no manifest.json",
        tmp_path / "nowhere": "there is no such directory",
        file: "it is no directory",
    }
    for directory, why in given.items():
        with pytest.raises(ConfigError, match=f"is no export of `fairstream audit export`: {why}$"):
            ExportedRecording(directory)
    (tmp_path / MANIFEST).write_text("[")
    with pytest.raises(ConfigError, match="is no manifest"):
        ExportedRecording(tmp_path)


def test_what_unpacks_to_no_gzip_though_its_hash_is_right(journal: Path) -> None:
    data = b"no gzip"
    journal.write_bytes(data)
    sums = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "crc32": []}
    lie(journal, lambda entry: entry.update(sums))
    with pytest.raises(ExportDamaged, match="cannot be unpacked"):
        read(journal)


def test_a_hash_alone_that_lies_is_no_place(journal: Path) -> None:
    lie(journal, lambda entry: entry.update(sha256="0" * 64))
    with pytest.raises(ExportDamaged, match="its bytes are not what was exported"):
        read(journal)


def test_a_recording_that_cannot_be_read_leaves_nothing(directory: Path) -> None:
    class Fails(MemoryRecording):
        def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Rec]:
            yield from super().read(topic, partition, start, stop)
            if topic == "completions":
                raise ExportDamaged("by the way")

    with pytest.raises(ExportDamaged, match="by the way"):
        export(Fails(shards=2, topics=recorded().topics), directory)
    assert list(directory.parent.iterdir()) == []
