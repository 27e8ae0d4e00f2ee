"""What stood in the engine when the published figures were measured, written anew from the paper."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Final

from streams.simulate.published.difference import INPUT_PRICE, OUTPUT_PRICE
from streams.simulate.published.engine import Request

_MILLI: Final = 1_000
_WINDOW: Final = 5  # requests, about, that a predicted length follows


class Fifo:
    """First come, first served."""

    def __init__(self) -> None:
        self._queue: deque[Request] = deque()

    def arrive(self, request: Request, now_us: int) -> None:
        del now_us
        self._queue.append(request)

    def choose(self, fits: Callable[[Request], bool], now_us: int) -> Sequence[Request]:
        del now_us
        chosen = []
        while self._queue and fits(self._queue[0]):
            chosen.append(self._queue.popleft())
        return chosen

    def decode(self, running: Sequence[Request], now_us: int) -> None:
        """Costs are nothing to it."""

    def finish(self, request: Request, now_us: int) -> None:
        """Costs are nothing to it."""


class VirtualTokenCounter:
    """The tenant with the smallest counter goes next (Y. Sheng et al., OSDI 2024, algorithms 2 and 4).

    A counter grows by the price of the input when a request is taken, and by that of a token when one is made. Who
    comes back is lifted to the smallest counter of those that wait. With `predicts`, the price of so many tokens of
    output as the tenant's last requests had is counted at once, and settled as they are made.
    """

    def __init__(self, *, predicts: bool = False) -> None:
        self._predicts: Final = predicts
        self._waiting: defaultdict[str, deque[Request]] = defaultdict(deque)
        self._counters: defaultdict[str, int] = defaultdict(int)  # thousandths of a token of input
        self._lengths: defaultdict[str, int] = defaultdict(int)  # of output, predicted; thousandths of a token
        self._open: dict[str, _Account] = {}  # by the request's number

    def arrive(self, request: Request, now_us: int) -> None:
        del now_us
        tenant = request.tenant
        if not self._waiting[tenant]:
            others = [self._counters[name] for name, queue in self._waiting.items() if queue]
            self._counters[tenant] = max(self._counters[tenant], min(others, default=0))
        self._waiting[tenant].append(request)

    def choose(self, fits: Callable[[Request], bool], now_us: int) -> Sequence[Request]:
        del now_us
        chosen: list[Request] = []
        while waiting := [name for name, queue in self._waiting.items() if queue]:
            tenant = min(waiting, key=self._counters.__getitem__)
            request = self._waiting[tenant][0]
            if not fits(request):
                break
            chosen.append(self._waiting[tenant].popleft())
            counted = self._lengths[tenant] if self._predicts else 0
            self._counters[tenant] += INPUT_PRICE * request.input_tokens * _MILLI + OUTPUT_PRICE * counted
            self._open[request.number] = _Account(counted)
            self._make(request)  # reading the input makes the first token
        return chosen

    def decode(self, running: Sequence[Request], now_us: int) -> None:
        del now_us
        for request in running:
            self._make(request)

    def finish(self, request: Request, now_us: int) -> None:
        del now_us
        tenant, account = request.tenant, self._open.pop(request.number)
        self._counters[tenant] -= OUTPUT_PRICE * max(0, account.counted - account.made)
        known = self._lengths[tenant]
        self._lengths[tenant] = (known * (_WINDOW - 1) + account.made) // _WINDOW if known else account.made

    def _make(self, request: Request) -> None:
        account = self._open[request.number]
        account.made += _MILLI
        self._counters[request.tenant] += OUTPUT_PRICE * max(0, min(_MILLI, account.made - account.counted))


class _Account:
    """Output of one request, in thousandths of a token."""

    __slots__ = ("counted", "made")

    def __init__(self, counted: int) -> None:
        self.counted = counted  # when it was taken
        self.made = 0
