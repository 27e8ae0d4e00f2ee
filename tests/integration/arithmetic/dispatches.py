"""Dispatches: each attempt once, numbered without a gap, in order, and as the journal says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter

from streams.wire import Assignment, JournalEntry, Revocation
from tests.integration.arithmetic.evidence import Evidence
from tests.integration.arithmetic.inputs import Run
from tests.integration.arithmetic.requests import accepted, perhaps_accepted


def each_attempt_once(evidence: Evidence) -> Iterator[str]:
    """A run is dispatched as attempt 1, 2, 3, ..., each once, and only if it was accepted."""
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
    for tenant, run_id in attempts.keys() - perhaps_accepted(evidence):
        yield f"{tenant}/{run_id} was dispatched and never accepted"


def sequence_gapless(evidence: Evidence) -> Iterator[str]:
    """A shard numbers its dispatches and revocations 1, 2, 3, ..."""
    for shard, records in _by_shard(evidence).items():
        seqs = [each.seq for each in records]
        if seqs != list(range(1, len(seqs) + 1)):
            twice = [seq for seq, times in Counter(seqs).items() if times > 1]
            missing = set(range(1, max(seqs) + 1)) - set(seqs)
            yield f"shard {shard}: sequence numbers twice {twice[:5]}, missing {sorted(missing)[:5]}"


def order_kept(evidence: Evidence) -> Iterator[str]:
    """Neither step nor epoch goes back along the sequence, and each partition holds a shard's records in its order."""
    for shard, records in _by_shard(evidence).items():
        for before, after in pairwise(records):
            if after.epoch < before.epoch:
                yield f"shard {shard}: seq {after.seq} is of epoch {after.epoch}, the one before of {before.epoch}"
            if after.step < before.step:
                yield f"shard {shard}: seq {after.seq} is of step {after.step}, the one before of {before.step}"
    for partition, records in evidence.sent.items():
        last: dict[int, int] = {}
        for each in records:
            if each.seq <= last.get(each.shard, 0):
                yield f"dispatch partition {partition}: seq {each.seq} of shard {each.shard} behind {last[each.shard]}"
            last[each.shard] = each.seq


def as_the_journal_says(evidence: Evidence) -> Iterator[str]:
    """What was decided was sent, what was sent was decided: in the same step, by the same owner."""
    decided = {key: what for entry in evidence.entries for key, what in _decided(entry)}
    sent = {(each.shard, each.seq): _sent(each) for records in evidence.sent.values() for each in records}
    for key in decided.keys() | sent.keys():
        if decided.get(key) != sent.get(key):
            yield f"shard {key[0]}, seq {key[1]}: decided {decided.get(key)}, sent {sent.get(key)}"


def all_served(evidence: Evidence) -> Iterator[str]:
    """Once all is at rest, every accepted run was dispatched, or given up or taken back before it could be."""
    dispatched = {(each.tenant, each.run_id) for each in evidence.dispatches}
    for tenant, run_id in accepted(evidence) - dispatched:
        yield f"{tenant}/{run_id} was accepted and never dispatched"


def _by_shard(evidence: Evidence) -> dict[int, list[Assignment | Revocation]]:
    """All records of each shard, in order of their sequence numbers."""
    found: dict[int, list[Assignment | Revocation]] = {shard: [] for shard in evidence.shards}
    for records in evidence.sent.values():
        for each in records:
            found[each.shard].append(each)
    for records in found.values():
        records.sort(key=attrgetter("seq", "step", "epoch"))
    return found


def _decided(entry: JournalEntry) -> Iterator[tuple[tuple[int, int], tuple[object, ...]]]:
    where = (entry.step, entry.epoch)
    for each in entry.decisions:
        yield (entry.shard, each.seq), (each.tenant, each.run_id, each.attempt, each.estimate, *where)
    for revoke in entry.revokes:
        yield (entry.shard, revoke.seq), (revoke.tenant, revoke.run_id, revoke.attempt, revoke.reason, *where)


def _sent(record: Assignment | Revocation) -> tuple[object, ...]:
    what = record.estimate if isinstance(record, Assignment) else record.reason
    return (record.tenant, record.run_id, record.attempt, what, record.step, record.epoch)
