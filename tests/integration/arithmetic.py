"""Proof by arithmetic over the topics: what must be true of a deployment's records, whatever happened to it.

Everything is worked out again from what a read_committed reader sees; nothing is asked of a scheduler. The checks
return sentences, one for each thing found wrong, so that a test for a broken build can show that they do find it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from streams import clock
from streams.core import reasons
from streams.core.inputs import Submit
from streams.core.records import FlightRecord, FlowRecord, RunRecord
from streams.core.snapshot import ShardView
from streams.errors import BadRecord
from streams.rows import PositionsRecord, Row, decode, decode_key
from streams.wire import (
    Assignment,
    JournalEntry,
    Refusal,
    Revocation,
    decode_dispatch,
    decode_journal,
    decode_rejection,
    decode_request,
    decode_status,
    topic_names,
)
from tests.integration.topics import Seen, read_topic

Run = tuple[str, str]  # tenant, run_id


@dataclass
class Evidence:
    """All topics of a deployment, read."""

    requests: list[Seen]
    completions: list[Seen]
    dispatches: list[Assignment]
    revocations: list[Revocation]
    refusals: list[Refusal]
    journal: dict[int, list[JournalEntry]]  # by shard, in order
    rows: dict[int, list[Row]]  # by shard, the last value of each key

    @property
    def shards(self) -> range:
        return range(len(self.journal))

    @property
    def settled(self) -> int:
        """How many attempts have ended."""
        return sum(len(entry.settlements) for entries in self.journal.values() for entry in entries)


def gather(servers: str, prefix: str, shards: int) -> Evidence:
    """Read everything."""
    names = topic_names(prefix)
    decided = [decode_dispatch(seen.value) for seen in read_topic(servers, names.dispatch)]
    journal: dict[int, list[JournalEntry]] = {shard: [] for shard in range(shards)}
    for seen in read_topic(servers, names.journal):
        journal[seen.partition].append(decode_journal(seen.value))
    return Evidence(
        requests=read_topic(servers, names.requests),
        completions=read_topic(servers, names.completions),
        dispatches=[each for each in decided if isinstance(each, Assignment)],
        revocations=[each for each in decided if isinstance(each, Revocation)],
        refusals=[decode_rejection(seen.value) for seen in read_topic(servers, names.rejected)],
        journal=journal,
        rows=_rows(read_topic(servers, names.state), shards),
    )


def _rows(seen: list[Seen], shards: int) -> dict[int, list[Row]]:
    last: dict[int, dict[bytes, bytes]] = {shard: {} for shard in range(shards)}
    for each in seen:
        assert each.key is not None
        if each.value is None:
            last[each.partition].pop(each.key, None)
        else:
            last[each.partition][each.key] = each.value
    return {shard: [decode(decode_key(key)[1], value) for key, value in rows.items()] for shard, rows in last.items()}


def gather_when_drained(servers: str, prefix: str, shards: int, deadline_s: float = 60.0) -> Evidence:
    """Wait until nothing is queued, in flight or unread, and return everything; as it is when time is up."""
    clock.wait_until(lambda: _looks_idle(servers, prefix, shards), deadline_s, 0.5, what="idle shards")
    end = clock.monotonic() + deadline_s
    while True:
        evidence = gather(servers, prefix, shards)
        if not problems_when_drained(evidence) or clock.monotonic() > end:
            return evidence


def _looks_idle(servers: str, prefix: str, shards: int) -> bool:
    """Whether the shards' own views say so: cheap to ask, and not proof."""
    last = {
        seen.key: decode_status(seen.value).view
        for seen in read_topic(servers, topic_names(prefix).status)
        if seen.value
    }
    views = [view for view in last.values() if isinstance(view, ShardView)]
    return len(views) == shards and not any(view.queued_runs or view.flight_runs for view in views)


def problems(evidence: Evidence) -> list[str]:
    """Everything that is wrong at any moment, also while runs are under way."""
    return [
        *_each_accepted_run_once_per_attempt(evidence),
        *_sequence_gapless(evidence),
        *_journal_unbroken(evidence),
        *_journal_says_what_was_sent(evidence),
        *_settled_once(evidence),
        *_inputs_applied_once(evidence),
    ]


def problems_when_drained(evidence: Evidence) -> list[str]:
    """Everything that is wrong once no run is left, beside `problems`."""
    found = list(_all_served(evidence))
    for shard, rows in evidence.rows.items():
        for row in rows:
            if isinstance(row, FlowRecord) and row.charged != row.actual:
                found.append(f"shard {shard}: {row.tenant} was charged {row.charged} and spent {row.actual} tokens")
            if isinstance(row, FlightRecord):
                found.append(f"shard {shard}: {row.tenant}/{row.run_id} attempt {row.attempt} is still in flight")
            if isinstance(row, RunRecord):
                found.append(f"shard {shard}: {row.tenant}/{row.run_id} still has a row")
    settled = sum(each.actual for entries in evidence.journal.values() for e in entries for each in e.settlements)
    actual = sum(row.actual for rows in evidence.rows.values() for row in rows if isinstance(row, FlowRecord))
    if settled != actual:
        found.append(f"{settled} tokens were settled in the journals, {actual} stand in the accounts")
    return found


def accepted(evidence: Evidence) -> set[Run]:
    """The runs that were asked for and not refused at the door; a duplicate leaves the first in place."""
    asked = set()
    for seen in evidence.requests:
        try:
            given = decode_request(seen.key, seen.value, seen.offset, seen.timestamp_ms)
        except BadRecord:
            continue
        if isinstance(given, Submit):
            asked.add((given.tenant, given.run_id))
    at_the_door = {
        reasons.UNKNOWN_TENANT,
        reasons.UNKNOWN_CLASS,
        reasons.TENANT_PAUSED,
        reasons.QUEUE_FULL,
        reasons.OVERLOADED,
        reasons.TOO_LARGE,
        reasons.DEADLINE_PASSED,
    }
    refused = {(each.tenant, each.run_id) for each in evidence.refusals if each.reason in at_the_door}
    return {run for run in asked if run not in refused}


def _each_accepted_run_once_per_attempt(evidence: Evidence) -> Iterator[str]:
    times = Counter((each.tenant, each.run_id, each.attempt) for each in evidence.dispatches)
    for (tenant, run_id, attempt), number in times.items():
        if number != 1:
            yield f"{tenant}/{run_id} attempt {attempt} was dispatched {number} times"
    attempts: dict[Run, list[int]] = defaultdict(list)
    for tenant, run_id, attempt in times:
        attempts[tenant, run_id].append(attempt)
    for (tenant, run_id), numbers in attempts.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            yield f"{tenant}/{run_id} was dispatched as attempts {sorted(numbers)}"
    for tenant, run_id in attempts.keys() - accepted(evidence):
        yield f"{tenant}/{run_id} was dispatched and never accepted"


def _all_served(evidence: Evidence) -> Iterator[str]:
    dispatched = {(each.tenant, each.run_id) for each in evidence.dispatches}
    given_up = {(each.tenant, each.run_id) for each in evidence.refusals}
    for tenant, run_id in accepted(evidence) - dispatched - given_up:
        yield f"{tenant}/{run_id} was accepted and never dispatched"


def _sequence_gapless(evidence: Evidence) -> Iterator[str]:
    numbers: dict[int, list[int]] = {shard: [] for shard in evidence.shards}
    for shard, seq in [(each.shard, each.seq) for each in evidence.dispatches] + [
        (each.shard, each.seq) for each in evidence.revocations
    ]:
        numbers[shard].append(seq)
    for shard, seqs in numbers.items():
        if sorted(seqs) != list(range(1, len(seqs) + 1)):
            twice = [seq for seq, times in Counter(seqs).items() if times > 1]
            missing = set(range(1, max(seqs) + 1)) - set(seqs)
            yield f"shard {shard}: sequence numbers twice {twice[:5]}, missing {sorted(missing)[:5]}"


def _journal_unbroken(evidence: Evidence) -> Iterator[str]:
    for shard, entries in evidence.journal.items():
        steps = [entry.step for entry in entries]
        if steps != list(range(1, len(steps) + 1)):
            yield f"shard {shard}: the journal's steps are not 1, 2, 3, ...: {len(steps)} of them, up to {max(steps)}"
        for before, after in pairwise(entries):
            if after.epoch < before.epoch:
                yield f"shard {shard}: step {after.step} is of epoch {after.epoch}, the one before of {before.epoch}"
            if after.now_ms < before.now_ms:
                yield f"shard {shard}: time went back at step {after.step}"
            if after.takeover != (after.epoch != before.epoch):
                yield f"shard {shard}: step {after.step}: takeover {after.takeover}, epoch {before.epoch}→{after.epoch}"
        positions = [row for row in evidence.rows[shard] if isinstance(row, PositionsRecord)]
        if entries and positions and positions[0].epoch < entries[-1].epoch:
            yield f"shard {shard}: the positions are of epoch {positions[0].epoch}, the journal of {entries[-1].epoch}"


def _journal_says_what_was_sent(evidence: Evidence) -> Iterator[str]:
    decided = {
        (shard, each.seq): (each.tenant, each.run_id, each.attempt, each.estimate)
        for shard, entries in evidence.journal.items()
        for entry in entries
        for each in entry.decisions
    }
    sent = {
        (each.shard, each.seq): (each.tenant, each.run_id, each.attempt, each.estimate) for each in evidence.dispatches
    }
    for key in decided.keys() | sent.keys():
        if decided.get(key) != sent.get(key):
            yield f"shard {key[0]}, seq {key[1]}: decided {decided.get(key)}, sent {sent.get(key)}"


def _settled_once(evidence: Evidence) -> Iterator[str]:
    dispatched = {(each.tenant, each.run_id, each.attempt) for each in evidence.dispatches}
    settled = Counter(
        (each.tenant, each.run_id, each.attempt)
        for entries in evidence.journal.values()
        for entry in entries
        for each in entry.settlements
    )
    for attempt, times in settled.items():
        if times != 1:
            yield f"{attempt} was settled {times} times"
        if attempt not in dispatched:
            yield f"{attempt} was settled and never dispatched"


def _inputs_applied_once(evidence: Evidence) -> Iterator[str]:
    """The journal's ranges must follow each other without gap or overlap, and end where the positions row says."""
    for shard, entries in evidence.journal.items():
        rows = [row for row in evidence.rows[shard] if isinstance(row, PositionsRecord)]
        applied = rows[0].applied if rows else {}
        for topic in ("requests", "completions"):
            ranges = [each for entry in entries for each in entry.inputs if each.topic == topic]
            ends = [-1, *(each.last for each in ranges)]
            for each, end in zip(ranges, ends, strict=False):
                if each.first != end + 1:
                    yield f"shard {shard}: {topic} from {each.first} applied after {end}"
            if applied.get(topic, -1) != ends[-1]:
                yield f"shard {shard}: {topic} applied to {ends[-1]}, positions say {applied.get(topic, -1)}"
