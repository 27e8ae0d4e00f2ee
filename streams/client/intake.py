"""Where a worker's assignments come from: the contract that the share group and the classic group both keep.

The same tests run against both (`tests/integration/test_client_intake.py`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from streams.errors import BadRecord
from streams.wire import Assignment, Revocation, decode_dispatch

if TYPE_CHECKING:
    from confluent_kafka import Message

_LOG: Final = logging.getLogger("streams.client.intake")


class Taken(NamedTuple):
    """What came in. All of it counts as accepted from the next `settle` on."""

    assignments: list[Assignment]  # to be started now
    refused: list[Assignment]  # to be handed back to the scheduler: nobody had room for them
    revocations: list[Revocation]  # attempts that are not wanted any more, wherever they are


class Intake(Protocol):
    """Used by one thread only. Nothing of an aborted transaction ever comes out of it."""

    def take(self, room: int, timeout_s: float) -> Taken:
        """Return at most `room` assignments, waiting up to `timeout_s` for the first.

        With no room, keep the membership alive and return what needs none. Call it at least every few
        seconds. Raises `ConfigError` for what waiting cannot mend; an absent broker is waited for.
        """
        ...

    def settle(self) -> None:
        """Accept what the last `take` returned. What was taken and not settled is handed out again."""
        ...

    def close(self) -> None:
        """Give back what is held and not accepted, and leave the group."""
        ...


def decode_or_skip(message: Message) -> Assignment | Revocation | None:
    """Return what the record says, or log why it can't be read and return None.

    Only shards write this topic: such a record means that this worker is too old for its scheduler. The attempt's
    lease brings the run back.
    """
    try:
        return decode_dispatch(message.value())
    except BadRecord as error:
        _LOG.error(
            "streams.client.dispatch_unreadable partition=%s offset=%s: %s",
            message.partition(),
            message.offset(),
            error,
        )
        return None
