"""A stand-in for real work: a run spends the tokens that its payload says, at a stated speed.

All runs are timers of one event loop, so a worker can have thousands in progress without a thread each.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.client.verdicts import GiveUp
from streams.errors import ConfigError

if TYPE_CHECKING:
    from streams.client.functions import Async
    from streams.client.run import Run

# How often a simulated run adds to what it has spent, so that heartbeats have something to say.
_REPORT_EVERY_S: Final = 1.0


def simulated(tokens_per_second: float | None = None) -> Async:
    """Return a function for `Worker.run` that spends `payload["tokens"]`, or the estimate if the payload has none.

    `tokens_per_second` is the speed of each run by itself; None: no time at all. A payload whose `tokens` is no number
    of tokens fails for good. Raises `ConfigError` for a speed that is not above 0.
    """
    if tokens_per_second is not None and tokens_per_second <= 0:
        raise ConfigError("must be above 0", field="tokens_per_second", value=tokens_per_second)

    async def spend(run: Run) -> int:
        tokens = tokens_of(run)
        if tokens_per_second is not None:
            await _take_time(run, tokens, tokens_per_second)
        return tokens

    return spend


def tokens_of(run: Run) -> int:
    """Return the tokens that a run's payload says it costs. Raises `GiveUp` if they are no tokens."""
    payload = run.payload
    tokens = payload.get("tokens", run.assignment.estimate) if isinstance(payload, dict) else run.assignment.estimate
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise GiveUp(f"payload.tokens must be a whole number, not below 0 (got {tokens!r})")
    return tokens


async def _take_time(run: Run, tokens: int, tokens_per_second: float) -> None:
    begin = clock.monotonic()
    end = begin + tokens / tokens_per_second
    # Against the clock, not step by step: the sum of many sleeps would be late by the sum of their delays.
    while (left := end - clock.monotonic()) > 0:
        await asyncio.sleep(min(left, _REPORT_EVERY_S))
        so_far = min(tokens, int((clock.monotonic() - begin) * tokens_per_second))
        run.spent(so_far - (run.tokens or 0))
