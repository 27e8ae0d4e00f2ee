"""A batching engine on a virtual clock: the pool in which the published figures were measured, as a model.

It goes round as the engine of the artifact does (a fork of S-LoRA; `max_total_token_num`, `batch_max_tokens` and the
rest are its words):

- Running requests are decoded together, a token each a step. A request holds the memory of its input and of what it
  has made so far.
- After ten steps of decoding, and from then on before each step, the queue is asked for more. What it offers is taken
  as long as the memory will do for everybody's last token, the lengths being known; then these inputs are read in one
  go (prefill), during which nobody else advances, and which makes each one's first token.
- Nothing is preempted, and nothing is refused.

Times are integers of microseconds, speeds of nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from streams.errors import ConfigError

_NS_PER_US: Final = 1_000
_IDLE_US: Final = 10_000  # how often an engine without work looks at its queue


class Request(NamedTuple):
    """One request of the trace."""

    at_us: int
    tenant: str
    number: str  # unique
    input_tokens: int
    output_tokens: int  # > 0; the engine makes exactly so many


class Answer(NamedTuple):
    """A request as it was served. Times in us from the beginning of the trace."""

    request: Request
    first_us: int  # when its first token was there
    ended_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What an engine can do.

    The defaults are one A10G with Llama-2-7b, as the artifact has measured it: `cost_profile.json` has the time of a
    step for 16 sizes of batch, to which the three numbers of a step are the least squares (the worst one is off by a
    twelfth), and of reading inputs. What a server adds to a step is in no file: see `published.figures`.
    """

    memory_tokens: int = 10_000  # of input and output together: `--num-token`
    prefill_tokens: int = 3_072  # of inputs that are read in one go
    patience: int = 10  # steps of decoding before the queue is asked again
    prefill_ns: int = 214_000  # to read a token of input
    step_ns: int = 16_295_000  # a step of decoding takes this,
    run_ns: int = 245_000  # this for each running request,
    held_ns: int = 2_018  # this for each token in memory,
    server_ns: int = 0  # and this for what stands around the engine

    def decode_us(self, running: int, held: int) -> int:
        """Return what a step takes with so many requests that hold so many tokens."""
        return (self.step_ns + self.server_ns + running * self.run_ns + held * self.held_ns) // _NS_PER_US

    def prefill_us(self, tokens: int) -> int:
        """Return what it takes to read so many tokens of input."""
        return (self.server_ns + tokens * self.prefill_ns) // _NS_PER_US


class Queue(Protocol):
    """Who is taken next. Told of everything that happens, in the order in which it does."""

    def arrive(self, request: Request, now_us: int) -> None:
        """Take in a request."""

    def choose(self, fits: Callable[[Request], bool], now_us: int) -> Sequence[Request]:
        """Return what is to be read now. Whatever `fits` says yes to has its place, and must be returned."""

    def decode(self, running: Sequence[Request], now_us: int) -> None:
        """Each of these is about to make a token."""

    def finish(self, request: Request, now_us: int) -> None:
        """All tokens of it are made."""


class _Running:
    """A request in the engine."""

    __slots__ = ("first_us", "made", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.made = 0  # tokens
        self.first_us = 0

    @property
    def held(self) -> int:
        return self.request.input_tokens + self.made

    @property
    def left(self) -> int:
        return self.request.output_tokens - self.made


def serve(requests: Sequence[Request], queue: Queue, pool: Pool) -> tuple[Answer, ...]:
    """Return every request as it was served, in the order in which they ended. `requests` are sorted by time.

    Raises `ConfigError` for one that can never fit, and `RuntimeError` if the queue keeps some back for ever.
    """
    for request in requests:
        if not _Admission(pool, ()).fits(request):
            raise ConfigError("does not fit into the pool even alone", field="request", value=request.number)
    return _Engine(requests, queue, pool).run()


class _Engine:
    def __init__(self, requests: Sequence[Request], queue: Queue, pool: Pool) -> None:
        self._requests: Final = requests
        self._queue: Final = queue
        self._pool: Final = pool
        self._coming = 0  # index of the next request
        self._now_us = 0
        self._running: list[_Running] = []
        self._answers: list[Answer] = []

    def run(self) -> tuple[Answer, ...]:
        decoded = 0  # steps since the last prefill
        while len(self._answers) < len(self._requests):
            self._arrive()
            if (decoded >= self._pool.patience or not self._running) and self._prefill():
                decoded = 0
            elif self._running:
                self._decode()
                decoded += 1
            else:
                self._idle()
        return tuple(self._answers)

    def _arrive(self) -> None:
        while self._coming < len(self._requests) and self._requests[self._coming].at_us <= self._now_us:
            self._queue.arrive(self._requests[self._coming], self._now_us)
            self._coming += 1

    def _idle(self) -> None:
        if self._coming == len(self._requests):
            raise RuntimeError(f"{type(self._queue).__name__} has served {len(self._answers)} of {self._coming}")
        steps = -(-(self._requests[self._coming].at_us - self._now_us) // _IDLE_US)
        self._now_us += steps * _IDLE_US

    def _prefill(self) -> bool:
        """Take what the queue offers; tell whether that was anything."""
        chosen = [
            _Running(each) for each in self._queue.choose(_Admission(self._pool, self._running).fits, self._now_us)
        ]
        if not chosen:
            return False
        self._now_us += self._pool.prefill_us(sum(each.request.input_tokens for each in chosen))
        for each in chosen:
            each.first_us = self._now_us
        self._running += chosen
        self._make(chosen)
        return True

    def _decode(self) -> None:
        self._queue.decode([each.request for each in self._running], self._now_us)
        self._now_us += self._pool.decode_us(len(self._running), sum(each.held for each in self._running))
        self._make(self._running)

    def _make(self, running: Sequence[_Running]) -> None:
        """Each has made a token; whoever has made its last one leaves."""
        ended = []
        for each in running:
            each.made += 1
            if not each.left:
                ended.append(each)
        if ended:
            self._running = [each for each in self._running if each.left]
            for each in ended:
                self._answers.append(Answer(each.request, each.first_us, self._now_us))
                self._queue.finish(each.request, self._now_us)


class _Admission:
    """Whether one more request fits, now and until everybody has made its last token."""

    def __init__(self, pool: Pool, running: Sequence[_Running]) -> None:
        self._pool: Final = pool
        self._held: list[tuple[int, int]] = [(each.left - 1, each.held) for each in running]
        self._inputs = 0

    def fits(self, request: Request) -> bool:
        """Reserve a place for the request, and tell whether there was one."""
        wanted = sorted([*self._held, (request.output_tokens - 1, request.input_tokens + 1)], reverse=True)
        inputs = self._inputs + request.input_tokens
        # When the one with `left` tokens to come makes its last, those before it in this order are still there.
        sums = accumulate(held for _, held in wanted)
        most = max(left * place + held for place, ((left, _), held) in enumerate(zip(wanted, sums, strict=True), 1))
        if most >= self._pool.memory_tokens or inputs > self._pool.prefill_tokens:
            return False
        self._held, self._inputs = wanted, inputs
        return True
