"""Loads a shard from the state topic: its rows as they were last committed, made into a living core.

To be called after a fence only: then nobody else can write, an open transaction has been ended, and the end of
the partition for a `read_committed` reader is the end of the state.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streams import clock
from streams.app import collector
from streams.app.door import Core, CoreType
from streams.app.inbox import Source
from streams.errors import ConfigError, StateUnreadable, Unavailable
from streams.partition import bounds, open_reader, read_to_end
from streams.rows import POSITIONS, PositionsRecord, Row, decode, decode_key

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from streams.kafka import KafkaSettings
    from streams.wire import TopicNames

_LOG: Final = logging.getLogger("streams.app.loading")

_PATIENCE_S: Final = 60.0  # a broker's restart is ridden out, and so is the election of another leader
_RETRY_S: Final = 0.5


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
        with open_reader(self._kafka, f"{self._names.state}-loader") as consumer:
            with collector.quiet():
                raw = self._read(consumer)
                rows = self._decode(raw)
                positions = rows.pop((POSITIONS,), None)
                assert positions is None or isinstance(positions, PositionsRecord)
                core = self._build(list(rows.values()))
            self._check(positions, consumer)
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
        """Return the last value of each key."""
        rows: dict[bytes, bytes] = {}
        for message in read_to_end(consumer, self._names.state, self._shard):
            key, value = message.key() or b"", message.value()
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
        return rows

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
        low, high = bounds(consumer, topic, self._shard)
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
