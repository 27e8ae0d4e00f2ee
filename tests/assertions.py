"""What tests assert of a shard as a whole: rows, conservation, equal futures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from streams.core.effects import Effects
from streams.core.records import (
    EndedRecord,
    FlightRecord,
    FlowRecord,
    HistoryRecord,
    Key,
    PolicyRecord,
    Record,
    RetryRecord,
    RingRecord,
    RunRecord,
    ShardRecord,
    fields_of,
    key_of,
)
from streams.core.shard import Shard

KINDS = (
    ShardRecord,
    PolicyRecord,
    RingRecord,
    FlowRecord,
    RunRecord,
    RetryRecord,
    FlightRecord,
    HistoryRecord,
    EndedRecord,
)

WORD = 1 << 63  # a row holds signed integers of 64 bits


@cache
def _form(living: type) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Return the kind of record that `living` is, and what reads all its fields."""
    kind = next(kind for kind in KINDS if issubclass(living, kind))
    return kind, fields_of(kind)


def plain(record: Record) -> Record:
    """Return the record alone, as its row would keep it: no living form, nothing shared with the shard."""
    living: Any = type(record)
    kind, fields = _form(living)
    copy: Record = kind(*fields(record))
    if isinstance(copy, RetryRecord):
        copy.lost = dict(copy.lost)
    elif isinstance(copy, HistoryRecord):
        copy.ratios = dict(copy.ratios)
    elif isinstance(copy, EndedRecord):
        copy.runs = list(copy.runs)
        copy.lost = list(copy.lost)
    return copy


def _too_large(record: Record) -> list[int]:
    living: Any = type(record)
    numbers = [value for value in _form(living)[1](record) if isinstance(value, int)]
    return [number for number in numbers if not -WORD <= number < WORD]


def rows_of(shard: Shard) -> dict[Key, Record]:
    """Return all rows of a shard, each under its key; no key may occur twice."""
    rows: dict[Key, Record] = {}
    for record in shard.dump():
        key = key_of(record)
        assert key not in rows, f"row {key} is dumped twice"
        rows[key] = plain(record)
    return rows


def write(rows: dict[Key, Record], effects: Effects) -> None:
    """Do to `rows` what the step's transaction does to the table."""
    for key, record in effects.changed.items():
        if record is None:
            rows.pop(key, None)
        else:
            assert key == key_of(record), f"{key} names a row of {key_of(record)}"
            rows[key] = plain(record)
            assert not _too_large(record), f"{key} can't be written: {_too_large(record)}"


def said(effects: Effects) -> tuple[Any, ...]:
    """Return all that a step decided, comparable by value, without the rows' living forms."""
    changed = {key: None if record is None else plain(record) for key, record in effects.changed.items()}
    return (
        effects.step,
        effects.now_ms,
        effects.dispatches,
        effects.revokes,
        effects.rejections,
        effects.settlements,
        changed,
        dict(effects.counts),
    )


def assert_drained(shard: Shard) -> None:
    """After everything has ended: nothing is held, every token charged is a token spent."""
    view = shard.snapshot()
    assert (view.shard.flight_runs, view.shard.flight_tokens) == (0, 0)
    assert view.shard.queued_runs == 0
    for flow in view.flows:
        assert flow.charged == flow.actual, f"{flow.tenant}: charged {flow.charged}, spent {flow.actual}"
    left = {record.__class__.__name__ for record in rows_of(shard).values()}
    assert not left & {"RunRecord", "RetryRecord", "FlightRecord"}


def assert_works(shard: Shard, effects: Effects) -> None:
    """Look at the window after a step: it is never over-filled, and has room only if nobody may use it."""
    state = shard._state
    window = state.window
    if effects.dispatches:
        assert window.max_runs is None or window.runs <= window.max_runs
        assert window.max_tokens is None or window.tokens <= window.max_tokens or window.runs == 1
    for dispatch in effects.dispatches:
        tenant = state.tenants[dispatch.tenant]
        rules = tenant.rules
        assert not rules.paused
        assert rules.max_runs_in_flight is None or tenant.flight_runs <= rules.max_runs_in_flight
        cap = rules.max_tokens_in_flight
        assert cap is None or tenant.flight_tokens <= cap or tenant.flight_runs == 1
    if not window.has_place() or state.more:
        return
    if state.turns is None:
        ring = next((ring for ring in state.rings.values() if ring.active), None)
    else:
        turn = state.turns.next()
        ring = None if turn is None else turn[0]
    if ring is not None:
        assert ring.current is not None, "somebody may go, there is room, and nobody goes"
        head = ring.current.queue.head()
        assert head is not None
        assert not window.fits(head.estimate), "it fits, and it does not go"
