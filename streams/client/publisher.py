"""Files runs, and takes them back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime, timedelta
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from streams.client.delivery import Delivery
from streams.client.sender import ProducerLike, Sender, check_topic, make_producer
from streams.errors import BadRecord, FairstreamError, NotDelivered, shown
from streams.kafka import KafkaSettings
from streams.wire import encode_cancel, encode_request, intake_topic

FLUSH_TIMEOUT_S: Final = 130.0  # a little more than a record may wait for its acknowledgement

_HURRY_S: Final = 5.0  # for what is on its way when the program is failing anyway
_ANSWER_S: Final = 8.0  # a broker that is up and busy
_REQUEST_FIELDS: Final = tuple(inspect.signature(encode_request).parameters)


class Publisher:
    """Writes run requests to Kafka.

        with Publisher(KafkaSettings(servers="localhost:9092")) as publisher:
            publisher.submit("acme", "run-1", "summarise", {"document": 7}, estimate=2_000)

    What the scheduler would refuse without looking at its state raises `BadRecord` here, before anything is sent.
    Records are sent in the background and acknowledged by all of Kafka's replicas; leaving the `with` block waits for
    that and raises `NotDelivered` if any failed. A run may be filed again blindly: the scheduler knows its run_id.
    Thread-safe.
    """

    def __init__(
        self, kafka: KafkaSettings, *, own_topic_of: str | None = None, producer: ProducerLike | None = None
    ) -> None:
        """`producer` replaces the one that is made from the settings. Raises `ConfigError`.

        With `own_topic_of` everything goes to the topic to which only this tenant may write, for `fairstream gate` to
        pass on. Raises `BadRecord` for a tenant that cannot have one.
        """
        self._kafka = kafka
        self._only = own_topic_of
        self._topic = kafka.topics.requests if own_topic_of is None else intake_topic(kafka.prefix, own_topic_of)
        # Not `or`: a producer with nothing queued has the length 0.
        self._producer = make_producer(kafka, report_success=True) if producer is None else producer
        self._sender = Sender(self._producer)
        self._lock = Lock()  # guards the next two: deliveries are told in whichever thread polls
        self._failed = 0  # since the last flush
        self._first: FairstreamError | None = None

    def check(self, timeout_s: float = _ANSWER_S) -> None:
        """See whether runs can be filed at all; nobody has to, but it tells in seconds what `flush` takes minutes for.

        Raises `Unavailable` if Kafka does not answer, `ConfigError` if it does not let us in, or to that topic.
        """
        check_topic(self._kafka, self._producer, self._topic, timeout_s)

    def submit(
        self,
        tenant: str,
        run_id: str,
        workflow: str,
        payload: object = None,
        *,
        class_: str | None = None,
        estimate: int | None = None,
        max_tokens: int | None = None,
        not_before: datetime | None = None,
        deadline: datetime | None = None,
        max_attempts: int | None = None,
        lease: timedelta | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Delivery:
        """Ask for a run. `(tenant, run_id)` is its identity; `workflow` is what its cost is learned by.

        `payload` is any value that is JSON, handed to the worker as it is. `estimate` and `max_tokens` are in tokens;
        moments must know their time zone. Whether the run is accepted shows on the `rejected` topic.

        Waits while the local queue is full. Raises `BadRecord` naming the field, or `Unavailable` if Kafka has
        taken nothing for 30 s; the run has not been sent then.
        """
        value = encode_request(
            tenant=tenant,
            run_id=run_id,
            workflow=workflow,
            class_=class_,
            estimate=estimate,
            max_tokens=max_tokens,
            not_before_ms=_moment_ms("not_before", not_before),
            deadline_ms=_moment_ms("deadline", deadline),
            max_attempts=max_attempts,
            lease_ms=None if lease is None else lease // timedelta(milliseconds=1),
            payload=payload,
            headers=None if headers is None else dict(headers),
        )
        return self._send(tenant, value)

    def submit_message(self, message: Mapping[str, Any]) -> Delivery:
        """File a run whose fields are named as in `schemas/run_request.avsc`: `class`, `deadline_ms`, ...

        For what comes from files and other systems. Unknown fields are passed over. Raises as `submit` does.
        """
        fields: dict[str, Any] = {name: message.get(name.rstrip("_")) for name in _REQUEST_FIELDS}
        value = encode_request(**fields)  # a missing or wrong field is its to name
        return self._send(fields["tenant"], value)

    def cancel(self, tenant: str, run_id: str) -> Delivery:
        """Take a run back, whether it is queued, delayed or in progress. Raises as `submit` does."""
        return self._send(tenant, encode_cancel(tenant=tenant, run_id=run_id))

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Wait until all that was filed is in Kafka.

        Raises `NotDelivered` if any record since the last flush failed, or is still on its way after `timeout_s`.
        """
        pending = self._sender.flush(timeout_s)
        with self._lock:
            failed, first = self._failed, self._first
            self._failed, self._first = 0, None
        if failed or pending:
            what = f"{failed + pending} records were not taken by Kafka"
            why = str(first) if first else f"no answer within {timeout_s:g} s"
            raise NotDelivered(f"{what} ({why}); file them again", failed=failed + pending, first=first)

    def poll(self, timeout_s: float = 0.0) -> None:
        """Let deliveries be noticed while nothing is filed, waiting up to `timeout_s` for the first."""
        self._sender.poll(timeout_s)

    def close(self) -> None:
        """Flush; raises as `flush` does."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
            return
        try:
            self.flush(_HURRY_S)
        except NotDelivered as undelivered:
            error.add_note(f"Also: {undelivered}")

    def _send(self, tenant: str, value: bytes) -> Delivery:
        if self._only is not None and tenant != self._only:
            raise BadRecord(f"a gate would refuse it on the topic of {shown(self._only)}", field="tenant", value=tenant)
        delivery = Delivery(self._sender, self._settled)
        self._sender.send(self._topic, tenant, value, delivery.settle)
        return delivery

    def _settled(self, delivery: Delivery) -> None:
        if delivery.error is not None:
            with self._lock:
                self._failed += 1
                self._first = self._first or delivery.error


def _moment_ms(field: str, moment: datetime | None) -> int | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise BadRecord("a moment needs a time zone, for example datetime.now(UTC)", field=field, value=str(moment))
    return int(moment.timestamp() * 1000)
