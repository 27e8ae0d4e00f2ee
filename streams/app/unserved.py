"""Shards that this process was assigned and cannot serve: why, since when, and when they are tried again.

    lost      another writer fenced us out. Tried again soon, a bounded number of times: see `Fleet`.
    refused   its rows, or the topics they speak of, are not as they must be. Looked at again every so often, without
              an end, so that a repair takes effect; a person must make it.
    waiting   Kafka does not answer. Tried again without an end.

Each is told once, when it begins; not with every try.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from streams.errors import (
    ConfigError,
    DeploymentMoved,
    FairstreamError,
    NotAuthorized,
    OwnershipLost,
    StateUnreadable,
    Unavailable,
)

_LOG: Final = logging.getLogger("streams.app.unserved")

_FIRST_LOST_S: Final = 0.5  # the group, if it has decided anew, says so with the next heartbeat
_LONGEST_LOST_S: Final = 8.0
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 15.0
_DOUBLINGS: Final = 10  # enough to get to the longest; a float holds a thousand


class Trouble(StrEnum):
    """What keeps a shard from being served."""

    LOST = "lost"
    REFUSED = "refused"
    WAITING = "waiting"


def trouble_of(failure: BaseException | None, *, fenced: bool) -> Trouble | None:
    """Return what a shard's end means, or None if the process cannot go on after it.

    `fenced` says whether the shard got past its fence. A fence that is not allowed, or not understood, fails for every
    shard, and for every try; so does whatever else a right is missing for, since rights are those of whole topics.
    """
    if isinstance(failure, OwnershipLost):
        return Trouble.LOST
    if isinstance(failure, Unavailable):
        return Trouble.WAITING
    if isinstance(failure, (DeploymentMoved, NotAuthorized)):
        return None  # this process has nothing to do here any more, or as long as nobody grants it the right
    if isinstance(failure, StateUnreadable) or (isinstance(failure, ConfigError) and fenced):
        return Trouble.REFUSED
    return None


@dataclass(slots=True)
class _Case:
    trouble: Trouble
    why: str
    since: float
    tries: int = 0
    served_since: float | None = None  # tried again, and it went well so far


class Unserved:
    """The cases of one process. Times are those of `streams.clock.monotonic`, in seconds."""

    def __init__(self, *, lost_grace_s: float, refused_retry_s: float) -> None:
        self._lost_grace_s: Final = lost_grace_s
        self._refused_retry_s: Final = refused_retry_s
        self._cases: dict[int, _Case] = {}

    @property
    def reasons(self) -> dict[int, str]:
        """Why each shard that is not served is not, in order."""
        return {
            shard: f"{case.trouble}: {case.why}"
            for shard, case in sorted(self._cases.items())
            if case.served_since is None
        }

    def trouble(self, shard: int) -> Trouble | None:
        """What keeps a shard from being served; None if nothing does."""
        case = self._cases.get(shard)
        return case.trouble if case is not None and case.served_since is None else None

    def begin(self, shard: int, trouble: Trouble, failure: FairstreamError, now: float) -> None:
        """A shard has ended, or could not be opened. The same again is the same case, if it was not served for long."""
        why, case = str(failure), self._cases.get(shard)
        if case is None or case.trouble is not trouble or _served_s(case, now) > self._lost_grace_s:
            self._cases[shard] = _Case(trouble, why, now)
            level = logging.ERROR if trouble is Trouble.REFUSED else logging.WARNING
            _LOG.log(level, "streams.app.shard_%s shard=%d: %s", trouble, shard, why)
            return
        if trouble is Trouble.REFUSED and case.why != why:
            _LOG.error("streams.app.shard_refused shard=%d: %s", shard, why)
        case.why = why
        case.tries += 1
        case.served_since = None

    def hopeless(self, shard: int, now: float) -> bool:
        """Whether a shard was lost again and again, for longer than the group needs to decide who has it."""
        case = self._cases[shard]
        return case.trouble is Trouble.LOST and case.tries > 1 and now - case.since > self._lost_grace_s

    def pause_s(self, shard: int) -> float:
        """How long to wait before the next try."""
        case = self._cases[shard]
        if case.trouble is Trouble.REFUSED:
            return self._refused_retry_s
        if case.trouble is Trouble.LOST:
            return min(_LONGEST_LOST_S, _FIRST_LOST_S * 2.0 ** min(case.tries, _DOUBLINGS))
        return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(case.tries, _DOUBLINGS))

    def served(self, shard: int, now: float) -> None:
        """It is open."""
        case = self._cases.get(shard)
        if case is None or case.served_since is not None:
            return
        case.served_since = now
        _LOG.info(
            "streams.app.shard_served_again shard=%d after=%s seconds=%.1f", shard, case.trouble, now - case.since
        )
        if case.trouble is not Trouble.LOST:
            del self._cases[shard]

    def keep(self, shards: set[int], *, decided_anew: bool) -> None:
        """Forget those that are not ours any more, and what was lost because the group was about to decide anew."""
        for shard in list(self._cases):
            if shard not in shards or (decided_anew and self._cases[shard].trouble is Trouble.LOST):
                del self._cases[shard]


def _served_s(case: _Case, now: float) -> float:
    return 0.0 if case.served_since is None else now - case.served_since
