"""Reads a record into runs: each request, its attempts, and what became of it. Shard by shard, in its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from streams.audit.what_if.inputs import InputReader
from streams.audit.what_if.policies import PolicyBook
from streams.audit.what_if.runs import CANCELLED, Attempt, RecordedRun
from streams.core.inputs import FAILED, HEARTBEAT, STARTED, SUCCEEDED, Cancel, Completion
from streams.core.outcomes import LOST
from streams.wire import Assignment, decode_dispatch, decode_journal

if TYPE_CHECKING:
    from streams.audit.recording import Recording
    from streams.core.effects import Settlement
    from streams.core.inputs import Submit
    from streams.core.policy import Policy
    from streams.wire import JournalEntry

_Name = tuple[str, str]  # tenant, run_id


@dataclass(slots=True)
class Record:
    """All of a deployment's runs that the topics still tell of."""

    prefix: str
    shards: int
    runs: list[RecordedRun] = field(default_factory=list)  # shard by shard, in the order of the requests
    policies: list[tuple[int, Policy]] = field(default_factory=list)  # ms since the epoch from which each held
    unreadable: int = 0  # requests that no shard could read
    strangers: Counter[str] = field(default_factory=Counter)  # by tenant: runs without a request in the topic
    steps_cut: int = 0  # steps of which some inputs are no longer in the topics


def read_record(recording: Recording) -> Record:
    """Read everything that is there: about 1.5 KB of memory for each run.

    Policies are taken from the lowest shard: the others took the same changes in steps of the same moments, or nearly.
    Raises `BadRecord` for nonsense in a topic that schedulers write, `ConfigError` if a policy is no longer there.
    """
    record = Record(recording.prefix, recording.shards)
    handed = _dispatch_times(recording)
    for shard in range(recording.shards):
        reader = _ShardReader(recording, shard, record, handed)
        for entry in _journal(recording, shard):
            reader.take(entry)
        record.strangers.update(tenant for tenant, _ in reader.strangers)
        if reader.policies and not record.policies:
            record.policies = reader.policies
    return record


def _journal(recording: Recording, shard: int) -> Iterator[JournalEntry]:
    for each in recording.read("journal", shard):
        yield decode_journal(each.value)


def _dispatch_times(recording: Recording) -> dict[tuple[int, int], int]:
    """Return the timestamps of the dispatches, by shard and sequence number."""
    times: dict[tuple[int, int], int] = {}
    for partition in range(recording.partitions("dispatch")):
        for each in recording.read("dispatch", partition):
            given = decode_dispatch(each.value)
            if isinstance(given, Assignment):
                times[given.shard, given.seq] = each.timestamp
    return times


class _ShardReader:
    """Takes the steps of one shard in their order."""

    def __init__(self, recording: Recording, shard: int, record: Record, handed: Mapping[tuple[int, int], int]) -> None:
        self.strangers: set[_Name] = set()
        self.policies: list[tuple[int, Policy]] = []
        self._record: Final = record
        self._handed: Final = handed
        self._shard: Final = shard
        self._inputs: Final = InputReader(recording, shard)
        self._book: Final = PolicyBook(recording)
        self._version: int | None = None
        self._at_ms = 0  # the last arrival's
        self._runs: dict[int, RecordedRun] = {}  # by the position of the request
        self._names: dict[_Name, RecordedRun] = {}  # the last one accepted under each name
        self._attempts: dict[tuple[str, str, int], tuple[RecordedRun, Attempt]] = {}

    def take(self, entry: JournalEntry) -> None:
        """Take in one step, in the order in which it was applied: policies, completions, requests, decisions."""
        self._book.keep(entry.policies)
        if entry.policy_version != self._version:
            self._version = entry.policy_version
            self.policies.append((entry.now_ms, self._book.policy(entry.policy_version)))
        inputs = self._inputs.read(entry)
        self._record.steps_cut += inputs.cut
        self._record.unreadable += inputs.unreadable
        for said in inputs.completions:
            self._hear(said, inputs.times[said.position])
        for settlement in entry.settlements:
            self._settle(settlement, entry.now_ms)
        arrived = self._arrive(inputs.requests, entry.now_ms)
        for rejected in entry.rejections:
            run = self._runs.get(rejected.position)
            if run is not None:
                run.end = rejected.reason  # in the step of a cancel, too: that came too late then
        for run in arrived:
            if run.end in {None, CANCELLED}:
                self._names[run.submit.tenant, run.submit.run_id] = run
        for seq, tenant, run_id, _, number, estimate, *_ in entry.decisions:
            self._hand_out((tenant, run_id), number, Attempt(seq, estimate, self._decided_ms(seq, entry.now_ms)))

    def _hear(self, said: Completion, at_ms: int) -> None:
        _, attempt = self._attempts.get((said.tenant, said.run_id, said.attempt), (None, None))
        if attempt is None or attempt.reported_ms is not None:
            return
        if said.status == STARTED:
            if attempt.started_ms is None:
                attempt.started_ms = max(at_ms, attempt.decided_ms)
        elif said.status != HEARTBEAT:
            attempt.retryable = said.status == FAILED and said.retryable
            if attempt.outcome is None:
                attempt.reported_ms = at_ms

    def _arrive(self, requests: Sequence[Submit | Cancel], now_ms: int) -> list[RecordedRun]:
        arrived: dict[_Name, RecordedRun] = {}
        runs: list[RecordedRun] = []
        for given in requests:
            name = given.tenant, given.run_id
            if isinstance(given, Cancel):
                self._cancel(self._names.get(name), arrived.get(name))
                continue
            # As they stood in the topic: never before the one ahead, and never after the step that took them in.
            self._at_ms = min(max(given.submitted_ms, self._at_ms), now_ms)
            run = RecordedRun(self._shard, replace(given, body=b""), len(given.body), self._at_ms)
            runs.append(run)
            arrived.setdefault(name, run)
            self._runs[given.position] = run
        self._record.runs += runs
        return runs

    @staticmethod
    def _cancel(known: RecordedRun | None, arrived: RecordedRun | None) -> None:
        run = known if known is not None and known.end is None else arrived
        if run is not None and run.end is None:
            run.end = CANCELLED

    def _settle(self, settlement: Settlement, now_ms: int) -> None:
        known = self._attempts.get((settlement.tenant, settlement.run_id, settlement.attempt))
        if known is None:
            self.strangers.add((settlement.tenant, settlement.run_id))
            return
        run, attempt = known
        first = attempt.outcome is None  # a second settlement amends the first
        # The first success of any attempt ends the run, that of one given up as lost, too.
        if settlement.outcome == SUCCEEDED or (first and settlement.outcome == FAILED and not attempt.retryable):
            run.end = run.end or settlement.outcome
        if first:
            lost = settlement.outcome == LOST or attempt.reported_ms is None
            ended_ms = now_ms if lost else attempt.reported_ms
            assert ended_ms is not None
            attempt.ended_ms = max(ended_ms, attempt.begun_ms)
        attempt.outcome = settlement.outcome
        attempt.tokens = settlement.actual

    def _hand_out(self, name: _Name, number: int, attempt: Attempt) -> None:
        run = self._names.get(name)
        if run is None:
            self.strangers.add(name)
            return
        run.attempts[number] = attempt
        run.end = None  # of a report that is gone it was not known that it might come back
        self._attempts[*name, number] = run, attempt

    def _decided_ms(self, seq: int, now_ms: int) -> int:
        return self._handed.get((self._shard, seq), now_ms)
