"""Assignments from a Kafka share group (KIP-932): any number of workers whatever the partition count.

Preview: librdkafka marks its share consumer so. What it does, measured on Kafka 4.2 with librdkafka 2.16:

- A worker acquires whole record batches, as the producer wrote them: `max.poll.records` ends a fetch, it does not cut
  one (60 records came for 4). So there is often more than there is room for.
- An acquired record is locked for a time (30 s by default) that can't be extended; then others may get it. Hence a
  record is accepted as soon as its run is started; from there on the run's lease guards it.
- All records of a poll must be acknowledged before the next poll.
- A record is handed out a limited number of times (5 by default), then the broker archives it.
- A transaction's end marker is acquired too. If it comes in a fetch by itself, librdkafka never acknowledges it; the
  partition's start then stands still until five locks have run out, and 2,000 records further on nothing is handed
  out any more. It comes by itself when the records before it have filled the fetch. Hence `MAX_POLL_RECORDS`.

What there is no room for is released at once while it is fresh, since another worker may have room. Near the end of
its deliveries it waits here for room as long as runs keep ending, and is then refused, so that the scheduler puts the
run back in its place and hands it out anew, rather than left to be archived and missed until its lease ends. All of
this is for moments: a window that is larger than all workers have room for keeps records going round.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer, TopicPartition

from streams import clock
from streams.client.intake import Taken, decode_or_skip
from streams.client.polling import raise_unless_passing
from streams.kafka import KafkaSettings, from_exception, mapped_errors
from streams.wire import Assignment, Revocation

if TYPE_CHECKING:
    from confluent_kafka import Message, Messages

_LOG: Final = logging.getLogger("streams.client.share_intake")

# From this delivery on a record is not released again: the next release could be its last (broker setting
# `group.share.delivery.count.limit`, 5 unless changed).
LAST_DELIVERY: Final = 4

# How long such a record waits here while no run ends, and how long at most while some do. Longer spares the scheduler
# work when there is more in flight than all workers have room for; shorter spares the time of other workers that have
# room. Both are far below the lock's 30 s.
HOLD_S: Final = 0.25
HOLD_AT_MOST_S: Final = 2.0

# More than there ever is at once, so that no fetch is filled: one step dispatches 2,000 runs at most, over all
# partitions. (A partition hands out 2,000 records at most before their acknowledgements, whatever stands here: the
# broker setting `group.share.partition.max.record.locks`.)
MAX_POLL_RECORDS: Final = 10_000

# A worker that is full does not poll. Members of a share group block nobody, so a long silence is harmless.
_MAX_SILENCE_MS: Final = 86_400_000


class ShareConsumerLike(Protocol):
    """The part of `confluent_kafka.ShareConsumer` that is used here."""

    def poll(self, timeout: float) -> Messages: ...

    def acknowledge(self, message: Message, ack_type: AcknowledgeType) -> None: ...

    def commit_async(self) -> None: ...

    def close(self) -> None: ...


class _Held(NamedTuple):
    """A record that is locked for us and not yet acknowledged."""

    assignment: Assignment
    message: Message
    until_s: float  # monotonic: when to refuse it at the latest


def open_share_intake(kafka: KafkaSettings, group: str) -> ShareIntake:
    """Join the group, which `share_group.prepare` has prepared."""
    with mapped_errors(f"joining the share group {group}"):
        consumer = ShareConsumer(
            kafka.client(
                group_id=group,
                **{
                    "share.acknowledgement.mode": "explicit",
                    "max.poll.records": MAX_POLL_RECORDS,
                    "max.poll.interval.ms": _MAX_SILENCE_MS,
                    "fetch.wait.max.ms": 100,
                },
            )
        )
        consumer.set_acknowledgement_commit_callback(_log_lost_acknowledgements)
        consumer.subscribe([kafka.topics.dispatch])
    return ShareIntake(consumer)


class ShareIntake:
    """An `Intake` over a share consumer that is subscribed and in explicit acknowledgement mode."""

    def __init__(self, consumer: ShareConsumerLike) -> None:
        self._consumer = consumer
        self._held: deque[_Held] = deque()
        self._accepted: list[Message] = []  # returned by the last take, accepted at settle
        self._moved_s = 0.0  # monotonic: when something was last handed out
        self._dirty = False  # there are acknowledgements that have not been sent

    def take(self, room: int, timeout_s: float) -> Taken:
        """Return what is held first, and poll only when nothing is."""
        taken = Taken([], [], [])
        if not self._held and room > 0:
            self._poll(taken, timeout_s)
        if self._held and room > 0:
            self._moved_s = clock.monotonic()
        while self._held and len(taken.assignments) < room:
            held = self._held.popleft()
            taken.assignments.append(held.assignment)
            self._accepted.append(held.message)
        self._let_go(taken)
        return taken

    def settle(self) -> None:
        """Accept, and send all acknowledgements: a full worker may not poll again for long."""
        for message in self._accepted:
            self._acknowledge(message, AcknowledgeType.ACCEPT)
        self._accepted.clear()
        if self._dirty:
            self._dirty = False
            with mapped_errors("acknowledging dispatches"):
                self._consumer.commit_async()

    def close(self) -> None:
        """Release what is held and what was not settled; another worker gets it at once."""
        for message in [*self._accepted, *(held.message for held in self._held)]:
            self._acknowledge(message, AcknowledgeType.RELEASE)
        self._accepted.clear()
        self._held.clear()
        with mapped_errors("leaving the share group"):
            self._consumer.close()

    def _poll(self, taken: Taken, timeout_s: float) -> None:
        try:
            messages = self._consumer.poll(timeout_s)
        except KafkaException as error:
            raise from_exception(error, "taking dispatches") from error
        until_s = clock.monotonic() + HOLD_AT_MOST_S
        for message in messages:
            trouble = message.error()
            if trouble is not None:
                raise_unless_passing(trouble, "taking dispatches")
                continue
            match decode_or_skip(message):
                case None:
                    self._acknowledge(message, AcknowledgeType.REJECT)
                case Revocation() as revocation:
                    taken.revocations.append(revocation)
                    self._accepted.append(message)
                case Assignment() as assignment:
                    self._held.append(_Held(assignment, message, until_s))

    def _let_go(self, taken: Taken) -> None:
        """Part with the held records that may go elsewhere, or have waited long enough."""
        now_s = clock.monotonic()
        keep: deque[_Held] = deque()
        for held in self._held:
            if (held.message.delivery_count() or 1) < LAST_DELIVERY:
                self._acknowledge(held.message, AcknowledgeType.RELEASE)
            elif min(held.until_s, self._moved_s + HOLD_S) <= now_s:
                taken.refused.append(held.assignment)
                self._accepted.append(held.message)
            else:
                keep.append(held)
        self._held = keep

    def _acknowledge(self, message: Message, how: AcknowledgeType) -> None:
        self._consumer.acknowledge(message, how)
        self._dirty = True


def _log_lost_acknowledgements(offsets: dict[TopicPartition, set[int]], error: KafkaException | None) -> None:
    """A lost acknowledgement means that an attempt may be handed out twice: worth a line, and no more."""
    if error is not None:
        records = sum(len(each) for each in offsets.values())
        _LOG.warning("streams.client.acknowledgement_lost records=%d: %s", records, error)
