"""How far back a topic reaches. Each topic is deleted by age at its own pace, and a piece at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from streams.audit.recording import Recording

_ALWAYS: Final = -1
_NEVER: Final = 1 << 63


class Horizon:
    """Of one topic. What was written at a step's time or later stands in it if that time is not before the horizon."""

    def __init__(self, recording: Recording, topic: str) -> None:
        begins = [_begin_ms(recording, topic, partition) for partition in range(recording.partitions(topic))]
        self._low: Final = min(begins, default=_NEVER)
        self._high: Final = max(begins, default=_NEVER)

    def hides(self, at_ms: int) -> bool:
        """Tell whether what was written at that time has been deleted, in whatever partition it stood."""
        return at_ms < self._low

    def may_hide(self, at_ms: int) -> bool:
        """Tell whether it may have been deleted."""
        return at_ms <= self._high


def _begin_ms(recording: Recording, topic: str, partition: int) -> int:
    """Return the time of the first record that is there; before all times if nothing was deleted."""
    first, _ = recording.bounds(topic, partition)
    if first == 0:
        return _ALWAYS
    record = next(iter(recording.read(topic, partition, first)), None)
    return record.timestamp if record is not None else _NEVER
