"""All topics of a deployment, read and decoded: what the checks work on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from streams.core.effects import Settlement
from streams.rows import PositionsRecord, Row, decode, decode_key
from streams.wire import (
    Assignment,
    JournalEntry,
    Refusal,
    Revocation,
    TopicNames,
    decode_dispatch,
    decode_journal,
    decode_rejection,
    journal_digest,
    topic_names,
)
from tests.integration.arithmetic.inputs import Inputs, Place, sort_inputs
from tests.integration.topics import Seen, read_topics

Attempt = tuple[str, str, int]  # tenant, run_id, number
Kind = TypeVar("Kind")


@dataclass
class Evidence:
    """What a read_committed reader sees. Only of topics at rest do the parts belong to one moment."""

    names: TopicNames
    requests: list[Seen]
    completions: list[Seen]
    sent: dict[int, list[Assignment | Revocation]]  # by partition of the dispatch topic, in order
    refusals: list[Refusal]
    journal: dict[int, list[JournalEntry]]  # by shard, in order
    digests: dict[int, list[str]]  # of the journal's records as they stand
    rows: dict[int, list[Row]]  # by shard, the last value of each key

    @property
    def shards(self) -> range:
        return range(len(self.journal))

    @cached_property
    def dispatches(self) -> list[Assignment]:
        return [each for partition in self.sent.values() for each in partition if isinstance(each, Assignment)]

    @cached_property
    def revocations(self) -> list[Revocation]:
        return [each for partition in self.sent.values() for each in partition if isinstance(each, Revocation)]

    @property
    def entries(self) -> Iterator[JournalEntry]:
        """Every step, shard by shard."""
        for entries in self.journal.values():
            yield from entries

    @cached_property
    def settlements(self) -> dict[Attempt, list[tuple[JournalEntry, Settlement]]]:
        """By attempt, in order, each with the step that made it."""
        found: dict[Attempt, list[tuple[JournalEntry, Settlement]]] = defaultdict(list)
        for entry in self.entries:
            for each in entry.settlements:
                found[each.tenant, each.run_id, each.attempt].append((entry, each))
        return dict(found)

    @property
    def settled(self) -> int:
        """How many attempts have ended."""
        return len(self.settlements)

    def rows_of(self, shard: int, kind: type[Kind]) -> list[Kind]:
        return [row for row in self.rows[shard] if isinstance(row, kind)]

    @cached_property
    def applied(self) -> dict[int, dict[str, int]]:
        """The last offset applied, by shard and topic without its prefix; none if nothing was written yet."""
        found = {shard: self.rows_of(shard, PositionsRecord) for shard in self.shards}
        return {shard: rows[0].applied if rows else {} for shard, rows in found.items()}

    @cached_property
    def inputs(self) -> Inputs:
        """What was applied."""
        topics = {"requests": self.requests, "completions": self.completions}
        return sort_inputs(topics, self.applied, len(self.shards))

    @cached_property
    def refused(self) -> dict[Place, list[str]]:
        """Why each record was refused, as often as it was."""
        topics = {self.names.requests: "requests", self.names.completions: "completions"}
        found: dict[Place, list[str]] = defaultdict(list)
        for each in self.refusals:
            if each.position.topic in topics:
                found[topics[each.position.topic], each.position.partition, each.position.offset].append(each.reason)
        return dict(found)


def gather(servers: str, prefix: str, shards: int) -> Evidence:
    """Read everything."""
    names = topic_names(prefix)
    requests, completions, dispatch, rejected, journal, state = read_topics(
        servers, names.requests, names.completions, names.dispatch, names.rejected, names.journal, names.state
    )
    return assemble(
        names,
        shards,
        requests=requests,
        completions=completions,
        dispatch=dispatch,
        rejected=rejected,
        journal=journal,
        state=state,
    )


def assemble(
    names: TopicNames,
    shards: int,
    *,
    requests: list[Seen],
    completions: list[Seen],
    dispatch: Iterable[Seen],
    rejected: Iterable[Seen],
    journal: Iterable[Seen],
    state: Iterable[Seen],
) -> Evidence:
    """Decode what was read: each partition in order."""
    sent: dict[int, list[Assignment | Revocation]] = defaultdict(list)
    for seen in dispatch:
        sent[seen.partition].append(decode_dispatch(seen.value))
    steps: dict[int, list[JournalEntry]] = {shard: [] for shard in range(shards)}
    digests: dict[int, list[str]] = {shard: [] for shard in range(shards)}
    for seen in journal:
        steps[seen.partition].append(decode_journal(seen.value))
        digests[seen.partition].append(journal_digest(seen.value or b""))
    return Evidence(
        names=names,
        requests=requests,
        completions=completions,
        sent=dict(sent),
        refusals=[decode_rejection(seen.value) for seen in rejected],
        journal=steps,
        digests=digests,
        rows=_rows(state, shards),
    )


def _rows(seen: Iterable[Seen], shards: int) -> dict[int, list[Row]]:
    last: dict[int, dict[bytes, bytes]] = {shard: {} for shard in range(shards)}
    for each in seen:
        assert each.key is not None
        if each.value is None:
            last[each.partition].pop(each.key, None)
        else:
            last[each.partition][each.key] = each.value
    return {shard: [decode(decode_key(key)[1], value) for key, value in rows.items()] for shard, rows in last.items()}
