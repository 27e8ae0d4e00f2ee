"""All shards of a deployment replayed, several at once: each in a process of its own, since they share nothing."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any, Final

from streams import clock
from streams.audit.checkpoints import prove
from streams.audit.export import ExportedRecording
from streams.audit.replay.beginning import choose_start
from streams.audit.replay.closing import Closing
from streams.audit.replay.shard_replay import ShardReplay
from streams.errors import CheckpointWrong, FairstreamError, NotReplayable

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from streams.audit.recording import Recording
    from streams.audit.replay.divergence import Divergence

_TELL_S: Final = 0.2
_START_S: Final = 60.0  # until all processes have been started
_YOUNG: Final = 50_000  # objects, before they are looked at; as in a scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What is replayed of each shard."""

    since_ms: int | None = None  # begin at the last checkpoint before, if there is one; None: at the beginning
    until_ms: int | None = None  # the last step's time at most
    from_checkpoint: bool = False  # without `since_ms`: begin at the first checkpoint after which no input is deleted
    kept: Path | None = None  # an exported directory: begin with the state as it stood there


@dataclass(slots=True)
class ShardOutcome:
    """What came of one shard's replay, so far or in the end. Steps that came out as recorded are counted."""

    shard: int
    after: int = 0  # the step with which it began: that of a checkpoint; 0: the beginning
    steps: int = 0
    inputs: int = 0
    decisions: int = 0
    first_ms: int | None = None  # times of the first and last step, as recorded; None: there was none
    last_ms: int | None = None
    state: str = ""  # hash of the state after the last step
    proved: bool = True  # that the checkpoint it began with is what the journal says, if it began with one
    seconds: float = 0.0  # that the replay took
    read: int = 0  # offsets of the journal, of `offsets`
    offsets: int = 0
    divergence: Divergence | None = None
    refused: str | None = None  # why it could not be replayed, or not further

    @property
    def equal(self) -> bool:
        """Whether all of it came out as recorded."""
        return self.divergence is None and self.refused is None


Tell = Callable[[ShardOutcome], None]


def replay_shard(recording: Recording, shard: int, options: ReplayOptions, tell: Tell) -> ShardOutcome:
    """Replay one shard; `tell` hears a few times a second how far it is. Raises as reading the recording does."""
    begun = clock.monotonic()
    outcome = ShardOutcome(shard)

    def tell_so_far() -> None:
        outcome.seconds = clock.monotonic() - begun
        tell(outcome)

    try:
        with _seldom_collected():
            _replay(recording, options, outcome, tell_so_far)
    except (NotReplayable, CheckpointWrong) as error:
        outcome.refused = str(error)
    tell_so_far()
    return outcome


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Keep the garbage collector from walking over the shard after every step: a fifth of a replay's time."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _replay(recording: Recording, options: ReplayOptions, outcome: ShardOutcome, tell: Callable[[], None]) -> None:
    shard = outcome.shard
    kept = ExportedRecording(options.kept) if options.kept else None
    start = choose_start(
        recording, shard, since_ms=options.since_ms, from_checkpoint=options.from_checkpoint, kept=kept
    )
    if start is not None:
        outcome.after = start.step
        outcome.proved = prove(recording, start)
    closing = Closing(recording, shard)
    first, end = recording.bounds("journal", shard)
    first = first if start is None else max(first, start.foot.journal_end)
    outcome.offsets = max(0, end - first)
    replay = ShardReplay(recording, shard, start, until_ms=options.until_ms)
    closing.follow(replay)
    due = 0.0
    for step in replay:
        closing.follow(replay)
        if not step.problems:
            entry = step.entry
            outcome.steps += 1
            outcome.inputs += len(step.inputs)
            outcome.decisions += len(step.effects.dispatches)
            outcome.first_ms = entry.now_ms if outcome.first_ms is None else outcome.first_ms
            outcome.last_ms = entry.now_ms
            outcome.state = entry.state
        if clock.monotonic() >= due:
            due = clock.monotonic() + _TELL_S
            outcome.read = max(0, min(outcome.offsets, replay.offset + 1 - first))
            tell()
    outcome.read = outcome.offsets
    closing.follow(replay)
    outcome.divergence = replay.divergence
    if outcome.divergence is None and options.until_ms is None:
        outcome.divergence = closing.hold(replay, outcome.after + outcome.steps)


def replay_shards(
    recording: Recording, shards: Sequence[int], options: ReplayOptions, *, jobs: int, tell: Tell
) -> list[ShardOutcome]:
    """Replay these shards, so many at once; the outcomes are in their order.

    Raises what the first one raised, and `FairstreamError` if one of the processes was killed.
    """
    if jobs == 1 or len(shards) == 1:
        return [replay_shard(recording, shard, options, tell) for shard in shards]
    # Not forked: a Kafka client's threads do not come along, and their locks do.
    context = multiprocessing.get_context("spawn")
    told: Any = context.Queue()
    started, ending = context.Event(), context.Event()
    begun = (recording, options, told, started, ending)
    with ProcessPoolExecutor(min(jobs, len(shards)), context, _Worker.begin, begun) as pool:
        try:
            with _uninterrupted():
                futures = [pool.submit(_Worker.replay, shard) for shard in shards]
            started.set()
            for outcome in _told(told, futures):
                tell(outcome)
        except BrokenProcessPool as error:
            raise FairstreamError(
                "a process that replayed was ended by somebody else; if there was no memory left, replay fewer shards "
                "at once (--jobs)"
            ) from error
        except BaseException:
            ending.set()  # and wait for it: one that only just begins needs what ends with this process
            started.set()
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let the processes that begin here not hear of Ctrl-C: a terminal tells them all, and this one ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _told(told: Any, futures: Sequence[Future[ShardOutcome]]) -> Iterator[ShardOutcome]:
    """Yield what the processes tell, until all have ended or one has failed."""
    waited: set[Future[ShardOutcome]] = set(futures)
    while waited:
        with suppress(Empty):
            yield told.get(timeout=_TELL_S)
        done, waited = wait(waited, timeout=0)
        for future in done:
            future.result()
    with suppress(Empty):
        while True:
            yield told.get(timeout=_TELL_S)


class _Ending(Exception):
    """Another shard's replay has failed: this one need not go on."""


class _Worker:
    """One of the processes."""

    _recording: Recording
    _options: ReplayOptions
    _told: Any
    _ending: Event

    @classmethod
    def begin(cls, recording: Recording, options: ReplayOptions, told: Any, started: Event, ending: Event) -> None:
        cls._recording, cls._options, cls._told, cls._ending = recording, options, told, ending
        # One that is killed while another is started would end that one too, and the start then waits for ever.
        started.wait(_START_S)

    @classmethod
    def replay(cls, shard: int) -> ShardOutcome:
        return replay_shard(cls._recording, shard, cls._options, cls._tell)

    @classmethod
    def _tell(cls, outcome: ShardOutcome) -> None:
        if cls._ending.is_set():
            raise _Ending
        cls._told.put(outcome)
