"""Writes a step into the log as one transaction, effect by effect, and comes to grief between any two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from streams.errors import StepAborted
from streams.simulate.faulty.chances import ABORT, CRASH, INTERRUPTIONS, PAUSE, TIME_OUT, UNHEARD, UNSENT, Chances
from streams.simulate.faulty.log import Headers, Place, Producer
from streams.simulate.faulty.scene import Scene
from streams.simulate.faulty.shard import Records
from streams.wire import murmur2


class Crashed(Exception):
    """The owner is gone at this point: nothing of it goes on."""


class Effect(NamedTuple):
    """One record of a step."""

    point: str  # one of `chances.POINTS`: what has just been done when it is written
    place: Place
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None  # ms; None: now


class Interruptions:
    """Decides what comes between the effects of the steps of one owner."""

    def __init__(self, chances: Chances, pause: Callable[[], bool]) -> None:
        """`pause` lets the rest of the world go on for a while; it says whether there was a rest of the world."""
        self._chances: Final = chances
        self._pause: Final = pause
        self._kind: str | None = None
        self._index = 0

    def begin(self, points: Sequence[str]) -> None:
        """A step with these points begins."""
        self._kind = next((kind for kind in INTERRUPTIONS if self._chances.draw(kind)), None)
        if self._kind is None:
            return
        # The point that has had its turn least often: a step has many rows, and few have a forwarded record.
        random, fired = self._chances.random, self._chances.fired
        wanted = min(random.sample(points, len(points)), key=lambda point: fired[f"{self._kind} after {point}"])
        self._index = random.choice([index for index, point in enumerate(points) if point == wanted])

    def passed(self, index: int, point: str, producer: Producer) -> None:
        """The point with this index has been passed."""
        if self._kind is None or index != self._index:
            return
        kind, self._kind = self._kind, None
        if kind == PAUSE and not self._pause():
            return
        self._chances.fired[f"{kind} after {point}"] += 1
        if kind == CRASH:
            raise Crashed
        if kind == ABORT:
            producer.abort()
            raise StepAborted("the transaction has failed: so the seed says")
        if kind == TIME_OUT:
            producer.time_out()  # its owner learns of it when it goes on

    def commit(self, producer: Producer) -> None:
        """Commit, if it comes to that."""
        if self._chances.fires(UNSENT):
            raise Crashed
        producer.commit()
        if self._chances.fires(UNHEARD):
            raise Crashed


class LogWriter:
    """The writer of one owner of one shard."""

    def __init__(self, scene: Scene, shard: int, owner: int, interruptions: Interruptions) -> None:
        """`owner` tells the owners of a shard apart: a right build has no use for it."""
        self.log: Final = scene.log
        self.shard: Final = shard
        self.shards: Final = scene.shards
        self.owner: Final = owner
        self.producer: Producer
        self._interruptions: Final = interruptions
        self._turn = shard

    def fence(self) -> None:
        """See `Writer`."""
        self.producer = self.log.fence(self.transactional_id)

    @property
    def transactional_id(self) -> str:
        """One for each shard, whoever owns it: that is what fences."""
        return f"shard-{self.shard}"

    def write(self, records: Records) -> None:
        """See `Writer`."""
        self.put([*self.effects(records)])

    def give_up(self) -> None:
        """See `Writer`."""

    def put(self, effects: Sequence[Effect]) -> None:
        """Write these in one transaction."""
        points = ["begin", *(each.point for each in effects)]
        self._interruptions.begin(points)
        self.producer.begin()
        self._interruptions.passed(0, "begin", self.producer)
        for index, each in enumerate(effects, start=1):
            self.producer.send(*each[1:])
            self._interruptions.passed(index, each.point, self.producer)
        self._interruptions.commit(self.producer)

    def effects(self, records: Records) -> Iterator[Effect]:
        """Yield the records of a step in the order in which the real writer writes them."""
        state = "state", self.shard
        for key, row in records.rows:
            yield Effect("row", state, key, row)
        if records.dispatches:
            self._turn = (self._turn + 1) % self.shards
        for key, value in records.dispatches:
            yield Effect("dispatch", ("dispatch", self._turn), key, value)
        for refused, value in records.rejections:
            yield Effect("rejection", ("rejected", murmur2(refused or b"") % self.shards), refused, value)
        for forward in records.forwards:
            headers = tuple((name, _bytes(value)) for name, value in forward.headers)
            place = forward.topic, forward.partition
            yield Effect("forward", place, forward.key, forward.value, headers, forward.timestamp_ms)
        if records.journal is not None:
            yield Effect("journal", ("journal", self.shard), *records.journal)
        yield Effect("positions", state, *records.positions)


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
