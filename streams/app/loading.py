"""Loads a shard from the state topic: its rows as they were last committed, made into a living core.

To be called after a fence only: then nobody else can write, an open transaction has been ended, and the end of
the partition for a `read_committed` reader is the end of the state.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from streams import clock
from streams.app import collector
from streams.app.door import Core, CoreType
from streams.app.inbox import Source
from streams.errors import ConfigError, StateUnreadable, Unavailable
from streams.kafka import KafkaSettings, from_kafka, mapped_errors
from streams.rows import POSITIONS, PositionsRecord, Row, decode, decode_key
from streams.wire import TopicNames

_LOG: Final = logging.getLogger("streams.app.loading")

_CHUNK: Final = 1_000  # `consume(n, timeout)` waits until it has n, so the last chunk costs the timeout
_CHUNK_S: Final = 0.05
_SILENCE_S: Final = 20.0  # without any progress: Kafka is not there
_PATIENCE_S: Final = 60.0  # a broker's restart is ridden out, and so is the election of another leader
_RETRY_S: Final = 0.5
_KNOW_S: Final = 15.0  # for one answer of Kafka's


class StateTopic:
    """Reads one shard's rows. `counts` are the partition counts of the input topics, without prefix."""

    def __init__(
        self, kafka: KafkaSettings, names: TopicNames, shard: int, counts: Mapping[str, int], core: CoreType
    ) -> None:
        self._kafka: Final = kafka
        self._names: Final = names
        self._shard: Final = shard
        self._counts: Final = dict(counts)
        self._core: Final = core
        self._shards: Final = counts[Source.REQUESTS.value]

    def load(self) -> tuple[Core, PositionsRecord]:
        """Return the core and the positions of a new reign: the epoch is one more than the last one's.

        Raises:
            StateUnreadable: the rows, or the inputs they speak of, are not what was written.
            ConfigError: the topics have other partition counts than when the state began.
            Unavailable: Kafka has not answered for a minute.
        """
        deadline = clock.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._load()
            except Unavailable as error:
                if clock.monotonic() > deadline:
                    raise
                _LOG.warning("streams.app.load_interrupted shard=%d: %s; trying again", self._shard, error)
                clock.pause(_RETRY_S)

    def _load(self) -> tuple[Core, PositionsRecord]:
        begun = clock.monotonic()
        consumer = Consumer(
            self._kafka.client(
                group_id=f"{self._names.state}-loader",  # wanted by librdkafka, joined by nobody
                isolation_level="read_committed",
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="error",
                fetch_wait_max_ms=10,
                fetch_error_backoff_ms=50,
                queued_min_messages=100_000,
            )
        )
        try:
            with collector.quiet():
                raw = self._read(consumer)
                rows = self._decode(raw)
                positions = rows.pop((POSITIONS,), None)
                assert positions is None or isinstance(positions, PositionsRecord)
                core = self._build(list(rows.values()))
            self._check(positions, consumer)
        finally:
            consumer.close()
        reign = self._reign(positions)
        _LOG.info(
            "streams.app.loaded shard=%d rows=%d epoch=%d applied=%s seconds=%.2f",
            self._shard,
            len(rows),
            reign.epoch,
            reign.applied,
            clock.monotonic() - begun,
        )
        return core, reign

    def _read(self, consumer: Consumer) -> dict[bytes, bytes]:
        """Return the last value of each key. Offsets can't tell the end, which may be a transaction's marker."""
        rows: dict[bytes, bytes] = {}
        deadline = clock.monotonic() + _SILENCE_S
        with mapped_errors(f"reading {self._names.state}"):
            # An assignment of a topic that the client has not heard of waits half a second for its leader.
            consumer.list_topics(self._names.state, timeout=_KNOW_S)
            consumer.assign([TopicPartition(self._names.state, self._shard, OFFSET_BEGINNING)])
            while True:
                for message in consumer.consume(_CHUNK, _CHUNK_S):
                    error = message.error()
                    if error is None:
                        key, value = message.key() or b"", message.value()
                        if value is None:
                            rows.pop(key, None)
                        else:
                            rows[key] = value
                        deadline = clock.monotonic() + _SILENCE_S
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                        return rows
                    else:
                        failure = from_kafka(error, f"reading {self._names.state}")
                        if not isinstance(failure, Unavailable):  # librdkafka goes on by itself
                            raise failure
                if clock.monotonic() > deadline:
                    raise Unavailable(f"reading {self._names.state}: nothing came for {_SILENCE_S:g} s")

    def _decode(self, raw: dict[bytes, bytes]) -> dict[tuple[str, ...], Row]:
        """Return the rows; `raw` is used up, so that a large state is not in memory twice."""
        rows: dict[tuple[str, ...], Row] = {}
        while raw:
            key_bytes, value = raw.popitem()
            shard, key = decode_key(key_bytes)
            if shard != self._shard:
                raise StateUnreadable(f"partition {self._shard} of {self._names.state} has a row of shard {shard}")
            rows[key] = decode(key, value)
        return rows

    def _build(self, rows: list[Row]) -> Core:
        if not rows:
            return self._core(self._shard, self._shards)
        try:
            # Positions were taken out: what is left are the core's records.
            return self._core.load(self._shard, self._shards, rows)  # type: ignore[arg-type]
        except ValueError as error:
            raise StateUnreadable(f"the rows of shard {self._shard} contradict each other: {error}") from error

    def _check(self, positions: PositionsRecord | None, consumer: Consumer) -> None:
        """Refuse to go on from positions that mean something else now."""
        if positions is None:
            return
        if positions.partitions != self._counts:
            raise ConfigError(
                f"the state was made with {positions.partitions} partitions: with other counts tenants belong to other "
                "shards; give the topics their old counts, or drain the deployment and migrate it to new topics",
                field="topics",
                value=self._counts,
            )
        for source in Source:
            self._check_input(consumer, source, positions.applied.get(source.value, -1) + 1)

    def _check_input(self, consumer: Consumer, source: Source, next_offset: int) -> None:
        topic = getattr(self._names, source.value)
        with mapped_errors(f"looking at {topic}"):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, self._shard), timeout=_KNOW_S)
        if next_offset > high:
            raise StateUnreadable(
                f"{topic}, partition {self._shard}, ends at {high}, but everything up to {next_offset} was applied: "
                "it was made anew beside the old state. Delete the state topic as well, or restore the input"
            )
        if next_offset < low:
            _LOG.error(
                "streams.app.input_expired topic=%s partition=%d from=%d to=%d: deleted by retention, never read",
                topic,
                self._shard,
                next_offset,
                low,
            )

    def _reign(self, positions: PositionsRecord | None) -> PositionsRecord:
        if positions is None:
            return PositionsRecord(epoch=1, applied={}, partitions=self._counts)
        return replace(positions, epoch=positions.epoch + 1)
