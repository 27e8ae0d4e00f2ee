"""Our scheduler before the engine, as it would be deployed: the core hands out, the engine takes as it has room.

The core sees what it sees of any pool: requests, and when each ended and what it cost. Of the engine's memory it
knows nothing; how much it has handed out at most is its window. What the engine has no room for yet waits in the
engine, first come, first served: a window too wide is a FIFO queue, one too narrow leaves memory unused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from streams.core.inputs import SUCCEEDED, Completion, Input, SetPolicy, Submit
from streams.core.policy import Estimates, Leases, Policy, Window
from streams.core.shard import Shard
from streams.simulate.published.difference import price
from streams.simulate.published.engine import Request

# The core's time is since the epoch and starts after 0.
_EPOCH_MS: Final = 1_000_000
_US_PER_MS: Final = 1_000
_NO_LEASE: Final = Leases(lease_ms=1 << 40, max_lease_ms=1 << 40)  # nobody is silent here


class DeficitRoundRobin:
    """The core itself, under the built-in policy but for its window: all weights are 1."""

    def __init__(self, window: Window, *, told: bool = False) -> None:
        """`told`: the producers state what each request will cost, and it is believed. Else the core guesses."""
        self._told: Final = told
        self._shard: Final = Shard(0, 1)
        source = Estimates(source="hint") if told else Estimates()
        self._shard.step([SetPolicy(0, Policy(window=window, leases=_NO_LEASE, estimates=source))], _EPOCH_MS)
        self._known: dict[str, Request] = {}
        self._handed_out: deque[Request] = deque()
        self._position = 0

    def arrive(self, request: Request, now_us: int) -> None:
        self._position += 1
        self._known[request.number] = request
        estimate = price(request) if self._told else None
        self._step(Submit(self._position, request.tenant, request.number, "chat", estimate=estimate), now_us)

    def choose(self, fits: Callable[[Request], bool], now_us: int) -> Sequence[Request]:
        del now_us
        chosen = []
        while self._handed_out and fits(self._handed_out[0]):
            chosen.append(self._handed_out.popleft())
        return chosen

    def decode(self, running: Sequence[Request], now_us: int) -> None:
        """No heartbeat tells what was spent so far."""

    def finish(self, request: Request, now_us: int) -> None:
        self._step(Completion(0, request.tenant, request.number, 1, SUCCEEDED, price(request)), now_us)

    def _step(self, given: Input, now_us: int) -> None:
        effects = self._shard.step([given], _EPOCH_MS + now_us // _US_PER_MS)
        if effects.rejections:
            raise RuntimeError(f"refused: {effects.rejections[0].detail}")
        self._handed_out += [self._known.pop(dispatch.run_id) for dispatch in effects.dispatches]
