"""The figures side by side: as published, and as they come out here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streams.core.policy import Window
from streams.simulate.published.deficit import DeficitRoundRobin
from streams.simulate.published.difference import Difference, difference, differences
from streams.simulate.published.engine import Answer, Pool, Queue, Request, serve
from streams.simulate.published.queues import Fifo, VirtualTokenCounter
from streams.simulate.traces import ARENA, bundled, read_trace

# FIFO took 757.7 s in the artifact's recording, and takes 757.3 s with this. Nothing else is fitted, and no scheduler
# but FIFO was looked at for it.
CALIBRATED: Final = Pool(server_ns=3_700_000)

# Within a tenth of what is fitted: a difference between two schedulers that is less than between these is none.
NEARBY: Final = tuple(replace(CALIBRATED, server_ns=micros * 1_000) for micros in range(3_300, 4_101, 100))

ELSEWHERE: Final[Mapping[str, Pool]] = {
    "nothing fitted": Pool(),
    "memory 7,500": replace(CALIBRATED, memory_tokens=7_500),
    "memory 15,000": replace(CALIBRATED, memory_tokens=15_000),
}


class Scheduler(NamedTuple):
    """One that is compared."""

    name: str
    make: Callable[[], Queue]
    published: Difference | None = None


SCHEDULERS: Final = (
    Scheduler("FIFO", Fifo, Difference(760, 434)),
    Scheduler("virtual token counter", VirtualTokenCounter, Difference(368, 252)),
    Scheduler("the same, lengths predicted", lambda: VirtualTokenCounter(predicts=True), Difference(365, 240)),
    Scheduler("ours, 24 runs in flight", lambda: DeficitRoundRobin(Window(runs=24))),
    Scheduler("ours, 28 runs in flight", lambda: DeficitRoundRobin(Window(runs=28))),
    Scheduler("ours, 32 runs in flight", lambda: DeficitRoundRobin(Window(runs=32))),
    Scheduler("ours, 28 runs, costs stated", lambda: DeficitRoundRobin(Window(runs=28), told=True)),
)


class Outcome(NamedTuple):
    """What one scheduler came to in one pool."""

    largest: float  # tokens a second at their price, as in `Difference`
    mean: float
    took_s: float  # until the last request was answered
    moments: tuple[float, ...] = ()  # the difference at each of `MOMENTS_US`


class Row(NamedTuple):
    """What one scheduler came to."""

    scheduler: str
    published: Difference | None  # None: not by them
    here: Outcome  # in the calibrated pool
    nearby: tuple[Outcome, ...]  # in those nearby
    elsewhere: dict[str, Outcome]


def requests() -> list[Request]:
    """Return those of the trace."""
    return [
        Request(row.at_us, row.tenant, row.run_id, row.input_tokens, row.output_tokens)
        for row in read_trace(bundled(ARENA))
    ]


def reproduce(schedulers: Iterable[Scheduler] = SCHEDULERS, done: Callable[[], None] = lambda: None) -> list[Row]:
    """Return the figures of each. `done` is called after each of a scheduler's `RUNS`."""
    given = requests()

    def play(scheduler: Scheduler, pool: Pool) -> Outcome:
        outcome = outcome_of(serve(given, scheduler.make(), pool))
        done()
        return outcome

    return [
        Row(
            each.name,
            each.published,
            play(each, CALIBRATED),
            tuple(play(each, pool) for pool in NEARBY),
            {name: play(each, pool) for name, pool in ELSEWHERE.items()},
        )
        for each in schedulers
    ]


RUNS: Final = 1 + len(NEARBY) + len(ELSEWHERE)


def outcome_of(answers: Sequence[Answer]) -> Outcome:
    """Return what one play came to."""
    largest, mean = difference(answers)
    return Outcome(largest, mean, max(each.ended_us for each in answers) / 1_000_000, differences(answers))
