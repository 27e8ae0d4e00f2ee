"""What aiokafka's group coordination has to tell: Faust never asks, and aiokafka goes no further until somebody does.

Who is not allowed to join, or is told something unknown by the coordinator, would otherwise wait for ever: no
assignment, no error, no line in the log; and a member that is asked to join again would not.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    KafkaError,
    TopicAuthorizationFailedError,
)

from streams.app.faust_overrides.pins import rests_on

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer

_LOG: Final = logging.getLogger(__name__)

rests_on(GroupCoordinator, "check_errors", "ba6ca51ad348", "It raises the error that waits, and lets the rest go on.")
rests_on(GroupCoordinator, "_push_error_to_user", "743ff515bd7e", "The coordination waits in it until it is asked.")

# A person must change something first.
HOPELESS: Final = (
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    TopicAuthorizationFailedError,
)


def listen(consumer: AIOKafkaConsumer | None) -> None:
    """Take the error that a consumer's coordination waits with, if there is one, and join the group again after it.

    For the thread in which the consumer lives; None: it has not started. Raises `KafkaError` if another try does not
    help: one of `HOPELESS`, or the end of the coordination itself.
    """
    coordinator: Any = None if consumer is None or consumer._closed else consumer._coordinator
    if coordinator is None:
        return
    try:
        coordinator.check_errors()
    except KafkaError as error:
        if isinstance(error, HOPELESS) or coordinator._coordination_task.done():
            raise
        _LOG.warning("streams.app.group_error: joining again: %r", error)
        coordinator.request_rejoin()
