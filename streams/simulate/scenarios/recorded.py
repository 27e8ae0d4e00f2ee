"""Real traffic: the traces that come with fairstream, and those of whoever has one."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import Final

from streams.simulate.scenarios.rules import plain_policy
from streams.simulate.story import Story
from streams.simulate.traces import ARENA, AZURE, Prices, bundled, read_trace, to_arrivals

_ARENA_COMPRESSION: Final = 25
_ARENA_SLOTS: Final = 60
_ARENA_TOKENS_PER_S: Final = 270  # two thirds of what would keep up with the trace

_AZURE_SLOTS: Final = 64
_AZURE_TOKENS_PER_S: Final = 180  # nine tenths of what would keep up with it

_SLOTS: Final = 64
_KEEPS_UP: Final = (9, 10)  # what part of a trace's tokens a pool works off in its time, if nothing else is said


def arena() -> Story:
    """Return ten minutes of 27 tenants, all of one weight, faster than the pool can serve them."""
    return Story(
        name="trace",
        title="a real trace: 27 tenants of a chat arena, 1,500 requests in ten minutes",
        arrivals=to_arrivals(
            read_trace(bundled(ARENA)), compression=_ARENA_COMPRESSION, tokens_per_s=_ARENA_TOKENS_PER_S
        ),
        policy=plain_policy("trace", _ARENA_SLOTS, quantum=300, estimate=400, tenants={}),
        slots=_ARENA_SLOTS,
        tokens_per_s=_ARENA_TOKENS_PER_S,
        compression=_ARENA_COMPRESSION,
    )


def azure() -> Story:
    """Return an hour of two services that share a pool: dear prompts of one, long answers of the other."""
    return Story(
        name="azure",
        title="a real trace: two services of a cloud, 28,185 requests in an hour",
        arrivals=to_arrivals(read_trace(bundled(AZURE)), compression=1, tokens_per_s=_AZURE_TOKENS_PER_S),
        policy=plain_policy("azure", _AZURE_SLOTS, quantum=2_000, estimate=2_000, tenants={}),
        slots=_AZURE_SLOTS,
        tokens_per_s=_AZURE_TOKENS_PER_S,
        compression=1,
    )


def trace_story(
    path: Traversable, *, slots: int | None, tokens_per_s: int | None, compression: int, prices: Prices
) -> Story:
    """Return a trace of one's own as a story, all tenants of one weight, the quantum that of a mean run.

    It comes `compression` times as fast as it was recorded. Without `tokens_per_s` (of one slot) the pool can work off
    nine tenths of the trace in the time that this leaves. Raises `ConfigError` for a file that cannot be read, or one
    without runs.
    """
    rows = read_trace(path)
    slots = _SLOTS if slots is None else slots
    total = sum(prices.of(row) for row in rows)
    if tokens_per_s is None:
        part, whole = _KEEPS_UP
        span_us = max(row.at_us for row in rows) // compression or 1
        tokens_per_s = max(1, total * 1_000_000 * part // (whole * span_us * slots))
    mean = max(1, total // len(rows))
    return Story(
        name=path.name,
        title=f"a trace: {len(rows):,} runs of {len({row.tenant for row in rows}):,} tenants",
        arrivals=to_arrivals(rows, compression=compression, tokens_per_s=tokens_per_s, prices=prices),
        policy=plain_policy(path.name, slots, quantum=mean, estimate=mean, tenants={}),
        slots=slots,
        tokens_per_s=tokens_per_s,
        compression=1,
    )
