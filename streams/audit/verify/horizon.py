"""How far back a topic reaches. Each topic is deleted by age at its own pace, and a piece at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from streams.audit.recording import Recording

_ALWAYS: Final = -1
_NEVER: Final = 1 << 63
# A step's records are written after its time was told, by another clock where brokers stamp them: so much later, at
# most, is no gap. What lies between is in memory.
_LATER_MS: Final = 60_000


class Horizon:
    """Of one topic, whose partitions hold what shards wrote, each shard's in its order."""

    def __init__(self, recording: Recording, topic: str) -> None:
        self._begins: Final = [
            _begin_ms(recording, topic, partition) for partition in range(recording.partitions(topic))
        ]
        self._low: Final = min(self._begins, default=_NEVER) - _LATER_MS
        self._first: Final[dict[tuple[int, int], int]] = {}  # by partition and shard

    def note(self, partition: int, shard: int, number: int) -> None:
        """Take in a record that is there; `number` rises in what a shard writes: `seq`, or its step."""
        self._first.setdefault((partition, shard), number)

    def hides(self, at_ms: int) -> bool:
        """Tell whether what a step at that time wrote has been deleted, in whatever partition it stood."""
        return at_ms < self._low

    def may_hide(self, shard: int, number: int, at_ms: int) -> bool:
        """Tell whether it may have been deleted, once all that is there was noted.

        It was not where an earlier record of the shard is still there, whatever time the records are said to be of.
        """
        return not self._begins or any(
            at_ms <= begin and self._first.get((partition, shard), number) >= number
            for partition, begin in enumerate(self._begins)
            if begin != _ALWAYS
        )


def _begin_ms(recording: Recording, topic: str, partition: int) -> int:
    """Return the time of the first record that is there; before all times if nothing was deleted."""
    first, _ = recording.bounds(topic, partition)
    if first == 0:
        return _ALWAYS
    record = next(iter(recording.read(topic, partition, first)), None)
    return record.timestamp if record is not None else _NEVER
