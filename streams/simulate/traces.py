"""Recorded traffic as arrivals: a CSV file with one run a line.

Columns, in any order, others ignored: `at_s` (seconds from the beginning, a decimal number), `tenant`, `id`,
`input_tokens`, `output_tokens`; optional `workflow`. An `id` stands once with each tenant. A run costs the sum of its
tokens, or what `Prices` make of them. A file whose name ends in `.gz` is unpacked.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple

from streams.errors import ConfigError
from streams.simulate.workload import Arrival, duration_ms, in_order

ARENA: Final = "lmsys_arena_27tenants.csv"  # 1,500 runs of 27 tenants in ten minutes; see streams/data/README.md
AZURE: Final = "azure2023_two_services.csv.gz"  # 28,185 runs of two tenants in an hour

_REQUIRED: Final = ("at_s", "tenant", "id", "input_tokens", "output_tokens")
_MICROS: Final = 1_000_000


class TraceRow(NamedTuple):
    """One run of a trace, in the trace's own time."""

    at_us: int
    tenant: str
    run_id: str
    workflow: str
    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """The cost of the run (> 0): both kinds count alike."""
        return self.input_tokens + self.output_tokens


class Prices(NamedTuple):
    """What a token of each kind counts: 1 or more."""

    input: int = 1
    output: int = 1

    def of(self, row: TraceRow) -> int:
        """Return the cost of a run."""
        return self.input * row.input_tokens + self.output * row.output_tokens


def bundled(name: str) -> Traversable:
    """Return a trace that comes with the package. Raises `ConfigError` if there is none of that name."""
    path = files("streams.data") / name
    if not path.is_file():
        raise ConfigError(f"there is no such file; with fairstream come {ARENA} and {AZURE}", field="trace", value=name)
    return path


def find_trace(path: Path) -> Traversable:
    """Return the file of that name; if there is none and it is a bare name, the trace that comes with the package.

    Raises `ConfigError` if there is neither.
    """
    return path if path.exists() or path.name != str(path) else bundled(path.name)


def read_trace(path: Traversable) -> list[TraceRow]:
    """Return the rows in the order of the file (a `Path` will do), at least one.

    Raises `ConfigError`, naming line and column.
    """
    try:
        packed = path.read_bytes()
        text = (gzip.decompress(packed) if path.name.endswith(".gz") else packed).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(path)) from error
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in _REQUIRED if name not in (reader.fieldnames or ())]
    if missing:
        raise ConfigError("the first line must name this column", source=str(path), field=missing[0])
    rows = list(_rows(reader, str(path)))
    if not rows:
        raise ConfigError("there is no run in it", source=str(path))
    return rows


def to_arrivals(
    rows: Iterable[TraceRow], *, compression: int, tokens_per_s: int, prices: Prices | None = None
) -> tuple[Arrival, ...]:
    """Return the rows as arrivals, `compression` times as fast as recorded.

    `tokens_per_s` is the speed of one slot in compressed time. Raises `ConfigError` for one of them that is not
    positive.
    """
    prices = prices or Prices()
    for field, value in (("compression", compression), ("tokens_per_s", tokens_per_s), *prices._asdict().items()):
        if value <= 0:
            raise ConfigError("must be positive", field=field, value=value)
    return in_order(
        Arrival(
            row.at_us // (1_000 * compression),
            row.tenant,
            row.run_id,
            row.workflow,
            prices.of(row),
            duration_ms(prices.of(row), tokens_per_s),
        )
        for row in rows
    )


def _rows(reader: csv.DictReader[str], source: str) -> Iterator[TraceRow]:
    seen: set[tuple[str, str]] = set()
    for raw in reader:
        where = f"{source}:{reader.line_num}"
        row = TraceRow(
            _micros(raw["at_s"], where),
            _name(raw, "tenant", where),
            _name(raw, "id", where),
            raw.get("workflow") or "work",
            _count(raw, "input_tokens", where),
            _count(raw, "output_tokens", where),
        )
        if (row.tenant, row.run_id) in seen:  # ours would take it for the same run, and whoever knows no runs would not
            raise ConfigError("its tenant has a run of this name already", source=where, field="id", value=row.run_id)
        seen.add((row.tenant, row.run_id))
        if row.tokens == 0:
            raise ConfigError("a run costs at least one token", source=where, field="output_tokens")
        yield row


def _name(raw: dict[str, str], column: str, where: str) -> str:
    if not raw[column]:
        raise ConfigError("is empty", source=where, field=column)
    return raw[column]


def _count(raw: dict[str, str], column: str, where: str) -> int:
    text = raw[column]
    if text is None or not text.isdecimal():
        raise ConfigError("must be a whole number, 0 or more", source=where, field=column, value=text)
    return int(text)


def _micros(text: str, where: str) -> int:
    try:
        at = Decimal(text)
    except (InvalidOperation, TypeError) as error:
        raise ConfigError("must be a number of seconds", source=where, field="at_s", value=text) from error
    if not at.is_finite() or at < 0:
        raise ConfigError("must be 0 or more", source=where, field="at_s", value=text)
    return int(at * _MICROS)
