"""Reads files of runs to submit, one run a line: JSON objects, or CSV with a header.

The fields are those of `Publisher.submit` as the schema spells them (`schemas/run_request.avsc`). In CSV an empty cell
is a field left out, and `payload` and `headers` are JSON. A line without `run_id` gets one from the file's name and
the line's number, so that the same file may be submitted twice without a run being done twice.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from streams.errors import BadRecord, ConfigError

# What each field of a line is in CSV, where everything is text.
FIELDS: Final[dict[str, type]] = {
    "tenant": str,
    "run_id": str,
    "workflow": str,
    "class": str,
    "estimate": int,
    "max_tokens": int,
    "not_before_ms": int,
    "deadline_ms": int,
    "max_attempts": int,
    "lease_ms": int,
    "payload": object,
    "headers": dict,
}


class Line(NamedTuple):
    """A line of the file: the fields of a run, or why it is none."""

    number: int  # from 1, as editors count
    fields: dict[str, Any]
    problem: BadRecord | None = None


def read_runs(path: Path) -> Iterator[Line]:
    """Yield the runs of a file, by its ending: `.csv`, else one JSON object a line. Empty lines are passed over.

    Raises `ConfigError` if the file cannot be read, or is CSV whose header names a field that a run does not have.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _read_csv(file, path) if path.suffix.lower() == ".csv" else _read_jsonl(file)
            for line in lines:
                line.fields.setdefault("run_id", f"{path.stem}-{line.number}")
                yield line
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(path)) from error


def _read_jsonl(file: Iterator[str]) -> Iterator[Line]:
    for number, text in enumerate(file, start=1):
        if text.strip():
            yield _parse_json(number, text)


def _parse_json(number: int, text: str) -> Line:
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Line(number, {}, BadRecord(f"not JSON: {error}"))
    if not isinstance(fields, dict):
        return Line(number, {}, BadRecord("not a JSON object", value=fields))
    unknown = sorted(fields.keys() - FIELDS.keys())
    if unknown:
        return Line(number, {}, BadRecord(_no_such_field(), field=unknown[0]))
    return Line(number, fields)


def _read_csv(file: Iterator[str], path: Path) -> Iterator[Line]:
    rows = csv.DictReader(file, strict=True)
    unknown = [name for name in rows.fieldnames or [] if name not in FIELDS]
    if unknown:
        raise ConfigError(_no_such_field(), field=unknown[0], source=f"{path}:1")
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield Line(rows.reader.line_num, {}, BadRecord(f"not CSV: {error}"))
            continue
        if row is None:
            return
        yield _parse_row(rows.line_num, row)


def _parse_row(number: int, row: dict[str | None, Any]) -> Line:
    if None in row:
        return Line(number, {}, BadRecord("more cells than the header has", value=row[None]))
    fields: dict[str, Any] = {}
    for name, cell in row.items():
        assert name is not None
        if cell is None or cell == "":
            continue
        try:
            fields[name] = _parse_cell(FIELDS[name], cell)
        except ValueError:
            kind = "a whole number" if FIELDS[name] is int else "JSON"
            return Line(number, {}, BadRecord(f"not {kind}", field=name, value=cell))
    return Line(number, fields)


def _parse_cell(kind: type, cell: str) -> Any:
    if kind is str:
        return cell
    return int(cell) if kind is int else orjson.loads(cell)


def _no_such_field() -> str:
    return f"a run has no such field; it has {', '.join(FIELDS)}"
