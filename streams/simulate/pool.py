"""A pool of slots on a virtual clock: plays arrivals against a scheduler and says when each run was served.

A run holds one slot for its duration, and nothing is preempted: what is compared is the order alone. Slots may vanish
for a time, as workers that die do, and the runs in them are lost: the scheduler tries them again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from streams.errors import ConfigError
from streams.simulate.scheduler import Lost, Refusal, Scheduler, Start
from streams.simulate.workload import Arrival

_UNBOUNDED: Final = 1 << 62


class Outage(NamedTuple):
    """So many slots vanish at `at_ms` with the runs in them, those that were handed out first, until `until_ms`."""

    at_ms: int
    until_ms: int
    slots: int


class Served(NamedTuple):
    """One run from beginning to end. Times in ms from the beginning of the workload.

    Of a run that was lost and tried again it is the last attempt.
    """

    arrival: Arrival
    charge: int  # tokens charged when it was handed out
    decided_ms: int  # when it was handed out
    started_ms: int  # when its slot began to work; >= decided_ms
    ended_ms: int

    @property
    def wait_ms(self) -> int:
        """From the request to the beginning of the work."""
        return self.started_ms - self.arrival.at_ms


class Played(NamedTuple):
    """Everything that became of the arrivals: each is served, refused, or waits for ever."""

    served: tuple[Served, ...]  # in the order of the decisions
    lost: tuple[Lost, ...]  # attempts, in the order in which they were lost
    refused: tuple[Refusal, ...]
    waiting: tuple[Arrival, ...] = ()  # kept back for good: their tenant is paused
    # In the order of the decisions, with those that were lost: these cost what had been worked off. Who is tried again
    # counts as queued from when it is handed out again: when its scheduler took it back is not known here.
    attempts: tuple[Served, ...] = ()


def play(
    arrivals: Sequence[Arrival],
    scheduler: Scheduler,
    *,
    slots: int | None,
    handover_ms: int = 0,
    outages: Sequence[Outage] = (),
) -> tuple[Served, ...]:
    """Return every arrival as it was served, in the order of the decisions. As `play_out`, but all must be served.

    Raises `RuntimeError` if something is refused, or kept back while everything else stands still.
    """
    played = play_out(arrivals, scheduler, slots=slots, handover_ms=handover_ms, outages=outages)
    if played.refused:
        first = played.refused[0]
        raise RuntimeError(
            f"the policy refuses part of the workload: {first.reason}: {first.arrival.run_id} of {first.arrival.tenant}"
        )
    if played.waiting:
        raise RuntimeError(f"{type(scheduler).__name__} served {len(played.served)} of {len(arrivals)} runs")
    return played.served


def play_out(
    arrivals: Sequence[Arrival],
    scheduler: Scheduler,
    *,
    slots: int | None,
    handover_ms: int = 0,
    outages: Sequence[Outage] = (),
) -> Played:
    """Play until every arrival, in order of time, is served or refused, or nothing can happen any more.

    No `slots`: as many as the scheduler fills.
    Each decision takes `handover_ms` until its slot begins to work; the slot is held from the decision on. At each
    moment the ends come first, then the outages, then the arrivals. Who is handed out while slots are away waits for
    one. Raises `ConfigError` for no slots or an outage that cannot be, and `RuntimeError` if the scheduler starts what
    it may not.
    """
    pool = _Pool(_UNBOUNDED if slots is None else slots, handover_ms, outages)
    refused: list[Refusal] = []
    coming = now = 0  # index of the next arrival, and the time
    left = len(arrivals)
    while left > 0:
        arrives = arrivals[coming].at_ms if coming < len(arrivals) else None
        timer = scheduler.next_timer_ms()
        due = None if timer is None else max(timer, now + 1)
        moments = [at for at in (arrives, due, pool.next_moment()) if at is not None]
        if not moments:
            break
        now = min(moments)
        ended = pool.end(now)
        lost = pool.change(now)
        if lost:
            scheduler.lose(now, lost)
        first = coming
        while coming < len(arrivals) and arrivals[coming].at_ms == now:
            coming += 1
        free = pool.free
        starts = scheduler.advance(now, arrivals[first:coming], ended, free)
        if len(starts) > free:
            raise RuntimeError(f"{type(scheduler).__name__} started {len(starts)} runs with {free} slots free")
        pool.take(now, starts)
        refusals = scheduler.take_refusals()
        refused += refusals
        left -= len(ended) + len(refusals)
    served = tuple(pool.served[number] for number in sorted(pool.served))
    waiting = Counter(arrivals) if len(served) + len(refused) < len(arrivals) else Counter()
    waiting -= Counter(run.arrival for run in served) + Counter(refusal.arrival for refusal in refused)
    return Played(served, tuple(pool.lost.values()), tuple(refused), tuple(waiting.elements()), pool.attempts())


class _Pool:
    """The slots, and what is in them."""

    def __init__(self, slots: int, handover_ms: int, outages: Sequence[Outage]) -> None:
        if slots <= 0:
            raise ConfigError("must be positive", field="slots", value=slots)
        for outage in outages:
            if not (0 < outage.slots <= slots and 0 <= outage.at_ms < outage.until_ms):
                raise ConfigError("an outage takes some of the slots for some time", field="outages", value=outage)
        self.served: dict[int, Served] = {}  # by the number of the decision, as all that follow
        self.lost: dict[int, Lost] = {}
        self._places = slots
        self._slots = slots  # less those that are away
        self._handover_ms = handover_ms
        # Heap of (ms, slots that come or go): those that are back come before those that go at the same moment.
        self._changes = [(outage.at_ms, 1, -outage.slots) for outage in outages]
        self._changes += [(outage.until_ms, 0, outage.slots) for outage in outages]
        heapify(self._changes)
        self._decisions = 0
        self._handed: deque[tuple[int, Start, int]] = deque()  # with the time of the decision; no slot was free yet
        self._working: dict[int, Served] = {}  # in the order in which they began, with the end to come
        self._ends: list[tuple[int, int]] = []  # heap of (ended_ms, number); those no longer in `_working` are void

    @property
    def free(self) -> int:
        """Places of runs that may be handed out, whether or not there is a slot for each of them now."""
        return self._places - len(self._working) - len(self._handed)

    def next_moment(self) -> int | None:
        """Return when the next run ends or slots come or go."""
        ends = self._ends
        while ends and ends[0][1] not in self._working:
            heappop(ends)
        return min((heap[0][0] for heap in (ends, self._changes) if heap), default=None)

    def end(self, now: int) -> list[Arrival]:
        """Free the slots of the runs that end now."""
        ended: list[Arrival] = []
        while self._ends and self._ends[0][0] == now:
            # Never void: the lost were handed out before all that still work, so `next_moment` has come past them.
            number = heappop(self._ends)[1]
            run = self.served[number] = self._working.pop(number)
            ended.append(run.arrival)
        return ended

    def change(self, now: int) -> list[Lost]:
        """Let slots come and go; return what is lost."""
        lost: list[Lost] = []
        while self._changes and self._changes[0][0] == now:
            change = heappop(self._changes)[2]
            self._slots += change
            for number in list(islice(self._working, max(0, -change))):
                run = self._working.pop(number)
                self.lost[number] = Lost(run.arrival, run.charge, run.decided_ms, run.started_ms, now)
                lost.append(self.lost[number])
        self._fill(now)
        return lost

    def take(self, now: int, starts: Sequence[Start]) -> None:
        """Take in what is handed out now; it begins as soon as there is a slot for it."""
        for start in starts:
            self._handed.append((self._decisions, start, now))
            self._decisions += 1
        self._fill(now)

    def attempts(self) -> tuple[Served, ...]:
        """Return everything that was handed out and is over, in the order of the decisions."""
        if not self.lost:
            return tuple(self.served[number] for number in sorted(self.served))
        found: list[Served] = []
        tried: set[tuple[str, str]] = set()
        for number in sorted(self.served.keys() | self.lost.keys()):
            run = self.served.get(number) or self._as_served(self.lost[number])
            key = run.arrival.tenant, run.arrival.run_id
            if key in tried:
                run = run._replace(arrival=run.arrival._replace(at_ms=run.decided_ms))
            tried.add(key)
            found.append(run)
        return tuple(found)

    @staticmethod
    def _as_served(lost: Lost) -> Served:
        arrival = lost.arrival._replace(tokens=lost.tokens)
        return Served(arrival, lost.charge, lost.decided_ms, lost.started_ms, lost.lost_ms)

    def _fill(self, now: int) -> None:
        while self._handed and len(self._working) < self._slots:
            number, start, decided_ms = self._handed.popleft()
            begins = now + self._handover_ms
            ends = begins + start.arrival.duration_ms
            self._working[number] = Served(start.arrival, start.charge, decided_ms, begins, ends)
            heappush(self._ends, (ends, number))
