"""When a shard that could not be served is taken again: always by asking the group, never past it.

A takeover that comes in between, for whatever reason, tries all of them; what was planned before it is void.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from faust.types import TP

from streams import clock
from streams.app.unserved import Trouble, Unserved, trouble_of
from streams.errors import FairstreamError, OwnershipLost

_ASK_AGAIN_S: Final = 15.0  # if no assignment has followed


class Group(Protocol):
    """The consumer group, as `faust_overrides.SchedulerApp` reaches it."""

    def rejoin(self) -> None:
        """Ask the group's coordinator what is ours; a takeover follows."""

    def pause(self, partitions: Iterable[TP]) -> None:
        """Fetch nothing of them until the next takeover."""


class Retaking:
    """Plans the tries of one process. For the event loop."""

    def __init__(
        self,
        unserved: Unserved,
        check: Callable[[int], object],
        *,
        on_hopeless: Callable[[BaseException], None],
    ) -> None:
        """`check` raises if a shard's rows cannot be loaded; called from a thread, of those that were refused."""
        self.group: Group  # set before the first takeover
        self._unserved: Final = unserved
        self._check: Final = check
        self._on_hopeless: Final = on_hopeless
        self._takeover = 0
        self._asked = False  # the group; no takeover has begun since
        self._closing = False
        self._opening: Final[set[int]] = set()  # shards that this takeover tries already
        self._looks: Final[set[asyncio.Task[None]]] = set()  # the loop itself keeps no hold on a task

    @property
    def reasons(self) -> Mapping[int, str]:
        """Why each shard that is not served is not."""
        return self._unserved.reasons

    @property
    def asked(self) -> bool:
        """Whether a takeover must follow."""
        return self._asked

    def takeover(self, number: int, wanted: set[int]) -> None:
        """A takeover begins."""
        self._unserved.keep(wanted, decided_anew=not self._asked)
        self._takeover = number
        self._asked = False
        self._opening.clear()

    def opening(self, shard: int) -> None:
        """A shard is fenced and loaded, which may take half a minute: another try would only come after it."""
        self._opening.add(shard)

    def served(self, shard: int) -> None:
        """A shard is open."""
        self._unserved.served(shard, clock.monotonic())

    def close(self) -> None:
        """Try nothing any more."""
        self._closing = True

    def begin(self, shard: int, trouble: Trouble, failure: FairstreamError) -> None:
        """A shard ended, or could not be opened: plan the next try, if there is to be one."""
        now = clock.monotonic()
        self._opening.discard(shard)
        self._unserved.begin(shard, trouble, failure, now)
        if self._unserved.hopeless(shard, now):
            self._on_hopeless(
                OwnershipLost(
                    f"shard {shard} was taken over by a scheduler outside this group, or of another one with the same "
                    f"transactional id; nobody here serves it: {failure}"
                )
            )
        else:
            pause_s = self._unserved.pause_s(shard)
            asyncio.get_running_loop().call_later(pause_s, self._retry, shard, self._takeover)

    def ask(self) -> None:
        """Join the group again, and once more if nothing comes of it."""
        self._asked = True
        self.group.rejoin()
        asyncio.get_running_loop().call_later(_ASK_AGAIN_S, self._ask_again, self._takeover)

    def _ask_again(self, takeover: int) -> None:
        if self._asked and not self._void(takeover):
            self.ask()

    def _retry(self, shard: int, takeover: int) -> None:
        trouble = self._unserved.trouble(shard)
        if trouble is None or shard in self._opening or self._void(takeover):
            return
        if trouble is Trouble.REFUSED:
            look = asyncio.ensure_future(self._look(shard, takeover))
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)
        elif not self._asked:
            self.ask()

    async def _look(self, shard: int, takeover: int) -> None:
        """See whether a shard that was refused has been repaired; the group is not disturbed before."""
        failure: Exception | None = None
        try:
            await asyncio.to_thread(self._check, shard)
        except Exception as error:  # noqa: BLE001 - judged below, as the end of a shard is
            failure = error
        if self._void(takeover):
            return
        if failure is None:
            if not self._asked:
                self.ask()
        elif isinstance(failure, FairstreamError) and trouble_of(failure, fenced=True) is not None:
            self.begin(shard, Trouble.REFUSED, failure)
        else:
            self._on_hopeless(failure)

    def _void(self, takeover: int) -> bool:
        return self._closing or takeover != self._takeover
