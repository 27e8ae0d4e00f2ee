"""Loads a shard from the state topic: its rows as they were last committed, made into a living core.

To be called after a fence only: then nobody else can write, an open transaction has been ended, and the end of
the partition for a `read_committed` reader is the end of the state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Final, NamedTuple

from streams import clock
from streams.app import collector
from streams.app.continuity import Topics, next_reign
from streams.app.door import Core, CoreType
from streams.core import VERSION
from streams.errors import ConfigError, DeploymentMoved, OwnershipLost, StateUnreadable, Unavailable
from streams.intake import Source
from streams.partition import bounds, open_reader, read_to_end
from streams.rows import (
    FILLING,
    MOVED,
    POSITIONS,
    FillingRecord,
    MovedRecord,
    PositionsRecord,
    RuntimeRow,
    StateHash,
    canonical,
    decode,
    decode_key,
    encode_key,
)
from streams.wire import STATE_DELETIONS_KEPT_MS

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from streams.core.records import Record
    from streams.kafka import KafkaSettings
    from streams.wire import TopicNames

_LOG: Final = logging.getLogger("streams.app.loading")

_PATIENCE_S: Final = 60.0  # a broker's restart is ridden out, and so is the election of another leader
_RETRY_S: Final = 0.5
_LOOK_EVERY: Final = 1_000  # rows: some ms
# After it, Kafka may soon forget the deletions of what was read first.
_READ_S: Final = STATE_DELETIONS_KEPT_MS / 1000 / 2


class Loaded(NamedTuple):
    """A shard as its rows say, and where it goes on."""

    core: Core
    positions: PositionsRecord  # of the new reign
    state: StateHash  # of the rows


class StateTopic:
    """Reads one shard's rows. `counts` are the partition counts of the input topics, without prefix."""

    def __init__(
        self,
        kafka: KafkaSettings,
        names: TopicNames,
        shard: int,
        counts: Mapping[str, int],
        core: CoreType,
        *,
        topic_ids: Callable[[], Mapping[str, str]] = dict,
        known: MutableMapping[int, str] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """`topic_ids` asks Kafka for the ids of the topics; without it one that was made anew may go unnoticed.

        `known` is kept by the process: shard -> the id of the state topic that it was loaded from last.
        `should_stop` is asked now and then while a load is under way, which may take half a minute.
        """
        self._kafka: Final = kafka
        self._names: Final = names
        self._shard: Final = shard
        self._counts: Final = dict(counts)
        self._core: Final = core
        self._topic_ids: Final = topic_ids
        self._known: Final = {} if known is None else known
        self._should_stop: Final = should_stop
        self._shards: Final = counts[Source.REQUESTS.value]

    def load(self) -> Loaded:
        """Return the core and the positions of a new reign: the epoch is one more than the last one's.

        Raises:
            StateUnreadable: the rows, or the inputs they speak of, are not what was written.
            ConfigError: the topics have other partition counts than when the state began, or are still being filled.
            DeploymentMoved: the state is served under another prefix.
            Unavailable: Kafka has not answered for a minute, or is too slow for what it gives to be trusted.
            OwnershipLost: `should_stop` said yes.
        """
        deadline = clock.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._load()
            except Unavailable as error:
                if clock.monotonic() > deadline:
                    raise
                self._go_on()
                _LOG.warning("streams.app.load_interrupted shard=%d: %s; trying again", self._shard, error)
                clock.pause(_RETRY_S)

    def _load(self) -> Loaded:
        begun = clock.monotonic()
        with collector.quiet(), open_reader(self._kafka, f"{self._names.state}-loader") as consumer:
            rows = self._read(consumer)
            number = len(rows)
            loaded = self.made_of(rows, lambda topic: bounds(consumer, topic, self._shard))
        _LOG.info(
            "streams.app.loaded shard=%d rows=%d epoch=%d applied=%s seconds=%.2f",
            self._shard,
            number,
            loaded.positions.epoch,
            loaded.positions.applied,
            clock.monotonic() - begun,
        )
        return loaded

    def made_of(self, rows: dict[bytes, bytes], bounds_of: Callable[[str], tuple[int, int]]) -> Loaded:
        """Return what these rows say, which are used up. `bounds_of` tells of an input which offsets it holds.

        Raises what `load` raises, but for `Unavailable`.
        """
        self._refuse_migrated(rows)
        last = self._take_positions(rows)
        topics = Topics(self._counts, self._topic_ids(), bounds_of)
        reign = next_reign(last, topics, self._names, self._shard, known_state=self._known.get(self._shard))
        core, state = self._build(rows)
        self._check(last, state)
        if "state" in topics.ids:
            self._known[self._shard] = topics.ids["state"]
        return Loaded(core, reign, state)

    def _read(self, consumer: Consumer) -> dict[bytes, bytes]:
        """Return the last value of each key."""
        rows: dict[bytes, bytes] = {}
        deadline = clock.monotonic() + _READ_S
        for number, message in enumerate(read_to_end(consumer, self._names.state, self._shard)):
            if number % _LOOK_EVERY == 0:
                self._go_on()
                if clock.monotonic() > deadline:
                    raise Unavailable(f"{self._names.state}, partition {self._shard}: not read within {_READ_S:g} s")
            key, value = message.key() or b"", message.value()
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
        return rows

    def _take_positions(self, rows: dict[bytes, bytes]) -> PositionsRecord | None:
        """Take out the one row that is not the core's."""
        value = rows.pop(encode_key(self._shard, (POSITIONS,)), None)
        if value is None:
            return None
        positions = decode((POSITIONS,), value)
        assert isinstance(positions, PositionsRecord)
        return positions

    def _refuse_migrated(self, rows: dict[bytes, bytes]) -> None:
        """Refuse a shard that has moved to another deployment, or is not all here yet.

        Raises `DeploymentMoved`; and `ConfigError` as long as what is missing may still come.
        """
        for kind in (MOVED, FILLING):
            value = rows.get(encode_key(self._shard, (kind,)))
            if value is None:
                continue
            found = decode((kind,), value)
            if isinstance(found, MovedRecord):
                raise DeploymentMoved(
                    f"this deployment has moved to {found.shards} shard(s) under the prefix {found.prefix!r}: start "
                    "schedulers, workers and producers with that, and these no more",
                    field="prefix",
                    value=self._kafka.prefix,
                )
            assert isinstance(found, FillingRecord), "one of the two"
            raise ConfigError(
                f"this deployment is being made from {found.shards} shard(s) under the prefix {found.prefix!r}, and "
                f"not all is here yet: run `fairstream migrate shards {self._shards} --prefix {found.prefix} --to "
                f"{self._kafka.prefix}` to its end",
                field="prefix",
                value=self._kafka.prefix,
            )

    def _records(self, rows: dict[bytes, bytes], state: StateHash) -> Iterator[Record]:
        """Yield what the rows hold; they are used up, so that a large state is not in memory twice."""
        while rows:
            if len(rows) % _LOOK_EVERY == 0:
                self._go_on()
            key_bytes, value = rows.popitem()
            shard, key = decode_key(key_bytes)
            if shard != self._shard:
                raise StateUnreadable(f"partition {self._shard} of {self._names.state} has a row of shard {shard}")
            record = decode(key, value)
            assert not isinstance(record, RuntimeRow), "its key is spelled in one way, and was taken out or refused"
            state.put(key_bytes, canonical(record, value))
            yield record

    def _check(self, last: PositionsRecord | None, state: StateHash) -> None:
        """Raise `StateUnreadable` if a row is there too many, or too few, or is not what was written last.

        Another version of the core may have written the same rows in other forms, and so have another hash for them.
        """
        if last is not None and last.core == VERSION and last.state != state.value:
            raise StateUnreadable(
                f"{self._names.state}, partition {self._shard}: its {len(state)} rows are not those that were written "
                f"(their hash is {state.value}, not {last.state}): some are lost, or somebody else has changed them. "
                "Restore it, or take what is left to new topics with `fairstream migrate shards`"
            )

    def _go_on(self) -> None:
        if self._should_stop():
            raise OwnershipLost(f"shard {self._shard} is closed while it is loaded")

    def _build(self, rows: dict[bytes, bytes]) -> tuple[Core, StateHash]:
        state = StateHash()
        if not rows:
            return self._core(self._shard, self._shards), state
        try:
            return self._core.load(self._shard, self._shards, self._records(rows, state)), state
        except ValueError as error:
            raise StateUnreadable(f"the rows of shard {self._shard} contradict each other: {error}") from error
