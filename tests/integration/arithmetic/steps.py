"""Steps: one after the other, by one owner at a time, each input applied once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from streams.rows import PositionsRecord, RuntimeRow, StateHash, encode, encode_key, row_key
from tests.integration.arithmetic.evidence import Evidence

INPUTS = ("requests", "completions")


def journal_unbroken(evidence: Evidence) -> Iterator[str]:
    """Steps are 1, 2, 3, ...; time and epoch never go back, and a new epoch is a takeover."""
    for shard, entries in evidence.journal.items():
        steps = [entry.step for entry in entries]
        if steps != list(range(1, len(steps) + 1)):
            yield f"shard {shard}: the journal's steps are not 1, 2, 3, ...: {len(steps)} of them, up to {max(steps)}"
        if entries and not entries[0].takeover:
            yield f"shard {shard}: step {entries[0].step}, the first one, is no takeover"
        for before, after in pairwise(entries):
            if after.epoch < before.epoch:
                yield f"shard {shard}: step {after.step} is of epoch {after.epoch}, the one before of {before.epoch}"
            if after.now_ms < before.now_ms:
                yield f"shard {shard}: time went back at step {after.step}"
            if after.takeover != (after.epoch != before.epoch):
                yield f"shard {shard}: step {after.step}: takeover {after.takeover}, epoch {before.epoch}→{after.epoch}"
        positions = evidence.rows_of(shard, PositionsRecord)
        if entries and positions and positions[0].epoch < entries[-1].epoch:
            yield f"shard {shard}: the positions are of epoch {positions[0].epoch}, the journal of {entries[-1].epoch}"


def chain_unbroken(evidence: Evidence) -> Iterator[str]:
    """Each record of the journal names the one before it; the positions name the last one."""
    for shard, entries in evidence.journal.items():
        for entry, digest in zip(entries, ["", *evidence.digests[shard]], strict=False):
            if entry.previous != digest:
                yield f"shard {shard}: step {entry.step} follows {entry.previous[:8]!r}, not {digest[:8]!r}"
        for positions in evidence.rows_of(shard, PositionsRecord):
            if entries and positions.journal != evidence.digests[shard][-1]:
                yield f"shard {shard}: the positions follow {positions.journal[:8]!r}, which is not the last step"


def state_as_the_journal_says(evidence: Evidence) -> Iterator[str]:
    """The rows have the hash that the last step and the positions give them."""
    for shard, entries in evidence.journal.items():
        rows = [row for row in evidence.rows[shard] if not isinstance(row, RuntimeRow)]
        found = StateHash.of((encode_key(shard, row_key(row)), encode(row)) for row in rows).value
        said = {each.state for each in evidence.rows_of(shard, PositionsRecord)} | {e.state for e in entries[-1:]}
        if said - {found}:
            yield f"shard {shard}: the state's hash is {found}, not {', '.join(sorted(said - {found}))}"


def inputs_applied_once(evidence: Evidence) -> Iterator[str]:
    """The journal's ranges follow each other without gap or overlap, and end where the positions row says."""
    for shard, entries in evidence.journal.items():
        applied = evidence.applied[shard]
        for topic in INPUTS:
            ranges = [each for entry in entries for each in entry.inputs if each.topic == topic]
            ends = [-1, *(each.last for each in ranges)]
            for each, end in zip(ranges, ends, strict=False):
                if each.first != end + 1:
                    yield f"shard {shard}: {topic} from {each.first} applied after {end}"
            if applied.get(topic, -1) != ends[-1]:
                yield f"shard {shard}: {topic} applied to {ends[-1]}, positions say {applied.get(topic, -1)}"


def all_inputs_applied(evidence: Evidence) -> Iterator[str]:
    """Once all is at rest, no input is unread."""
    for topic in INPUTS:
        for seen in getattr(evidence, topic):
            if seen.offset > evidence.applied[seen.partition].get(topic, -1):
                yield f"shard {seen.partition}: {topic}, offset {seen.offset}, was not applied"
