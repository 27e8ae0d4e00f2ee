"""One file of an export: gzipped lines, with checksums that say where it was damaged."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streams.audit.export.lines import from_line, to_line
from streams.audit.export.manifest import PIECE_BYTES, File, read_regular
from streams.audit.recording import Rec
from streams.errors import ExportDamaged

ROLL_BYTES: Final = 16 * 1024 * 1024  # of text: what a reader has in memory of each partition it reads
_LEVEL: Final = 6
_GZIP: Final = 31  # window bits: the largest window, with gzip's frame


class FileWriter:
    """Writes records into one file, at least one, in a `with` block; then `written` says what the manifest says."""

    def __init__(self, path: Path) -> None:
        self.written: File
        self._text_bytes = 0
        self._path: Final = path
        self._file: Final = path.open("xb")
        self._packer: Final = zlib.compressobj(_LEVEL, wbits=_GZIP)
        self._sha256: Final = hashlib.sha256()
        self._crc32: Final[list[int]] = []
        self._rest = bytearray()  # written, and not in `_crc32` yet
        self._bytes = 0
        self._records = 0
        self._first = self._last = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish()
        self._file.close()

    @property
    def full(self) -> bool:
        """Whether the next record belongs into another file."""
        return self._text_bytes >= ROLL_BYTES

    def write(self, record: Rec) -> None:
        line = to_line(record)
        self._text_bytes += len(line)
        self._put(self._packer.compress(line))
        if not self._records:
            self._first = record.offset
        self._last = record.offset
        self._records += 1

    def _finish(self) -> None:
        self._put(self._packer.flush())
        if self._rest:
            self._crc32.append(zlib.crc32(self._rest))
        self.written = File(
            self._path.name,
            self._records,
            self._first,
            self._last,
            self._bytes,
            self._text_bytes,
            self._sha256.hexdigest(),
            self._crc32,
        )

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._sha256.update(data)
        self._bytes += len(data)
        self._rest += data
        while len(self._rest) >= PIECE_BYTES:
            self._crc32.append(zlib.crc32(self._rest[:PIECE_BYTES]))
            del self._rest[:PIECE_BYTES]


def read_file(directory: Path, file: File) -> Iterator[Rec]:
    """Yield the records of a file, if it is the one that the manifest speaks of.

    Raises `ExportDamaged` with the place, before the first record.
    """
    path = directory / file.name
    text = _unpack(path, _checked(path, file), file)
    lines = text.count(b"\n")
    if lines != file.records or not text.endswith(b"\n"):
        raise ExportDamaged(f"{path}: holds {lines} records, and the manifest says {file.records}")
    last = file.first - 1
    for number, line in enumerate(BytesIO(text), start=1):  # one by one: a list of them would take as much again
        try:
            record = from_line(line)
        except ValueError as error:
            raise ExportDamaged(f"{path}: line {number} is no record: {error}") from error
        if not last < record.offset <= file.last:
            raise ExportDamaged(
                f"{path}: line {number} has offset {record.offset}, and the manifest says {file.first} to {file.last}, "
                "each once"
            )
        last = record.offset
        yield record


def _checked(path: Path, file: File) -> bytes:
    try:
        data = read_regular(path, file.bytes)
        size = path.stat().st_size
    except OSError as error:
        raise ExportDamaged(f"{path}: cannot be read: {error}") from error
    if len(data) != file.bytes:
        raise ExportDamaged(f"{path}: has {size} bytes, and the manifest says {file.bytes}")
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise ExportDamaged(
            f"{path}: {_place(data, file)} are not what was exported: records of offsets {file.first} to {file.last}"
        )
    return data


def _place(data: bytes, file: File) -> str:
    pieces = [zlib.crc32(data[start : start + PIECE_BYTES]) for start in range(0, len(data), PIECE_BYTES)]
    for number, (found, said) in enumerate(zip(pieces, file.crc32, strict=False)):
        if found != said:
            start = number * PIECE_BYTES
            return f"bytes {start} to {min(start + PIECE_BYTES, len(data)) - 1}"
    return "its bytes"


def _unpack(path: Path, data: bytes, file: File) -> bytes:
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        text = unpacker.decompress(data, file.text_bytes + 1)
    except zlib.error as error:
        raise ExportDamaged(f"{path}: cannot be unpacked: {error}") from error
    if len(text) != file.text_bytes or not unpacker.eof or unpacker.unused_data:
        raise ExportDamaged(f"{path}: is unpacked to other than the {file.text_bytes} bytes that the manifest says")
    return text
