"""One shard's journal and rows, followed record by record: each must be what can come after the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from streams.core.effects import Settlement
from streams.core.inputs import FAILED, SUCCEEDED
from streams.core.outcomes import LOST
from streams.intake import Source
from streams.rows import POSITIONS, PositionsRecord, StateHash, decode, encode_key
from streams.simulate.faulty.log import Log, Record
from streams.simulate.faulty.workers import Attempt
from streams.wire import Decision, JournalEntry, decode_journal, journal_digest


class Violation(AssertionError):
    """What must be true of a deployment is not. The message says what, of which shard and step."""


class _Account(NamedTuple):
    """An attempt that has been dispatched."""

    estimate: int
    settled: Settlement | None = None  # the last one


class Ledger:
    """What the log has said of one shard so far."""

    def __init__(self, log: Log, shard: int, spent: Mapping[Attempt, set[int]]) -> None:
        """`spent`: what workers have said, in the end, of the attempts."""
        self._log: Final = log
        self._shard: Final = shard
        self._spent: Final = spent
        self._next = {"journal": 0, "state": 0}
        self._last: JournalEntry | None = None
        self._digest = ""
        self._seq = 0
        self._applied: dict[str, int] = {}
        self._attempts: Counter[tuple[str, str]] = Counter()  # dispatched, by run
        self._accounts: dict[Attempt, _Account] = {}
        self._state = StateHash()
        self._positions_key: Final = encode_key(shard, (POSITIONS,))
        self._positions: bytes | None = None
        self.rows: dict[bytes, bytes] = {}  # all but the positions
        self.in_flight = 0  # attempts
        self.counts: Counter[str] = Counter()
        self.decided: dict[int, Decision] = {}  # by seq; taken out by whoever has seen it sent
        self.revoked: dict[int, Attempt] = {}

    def follow(self) -> JournalEntry | None:
        """Take in what has been committed since, and return the last of it. Raises `Violation`."""
        entry = None
        for record in self._new("journal"):
            assert record.value is not None, "a journal record has a value"
            entry = decode_journal(record.value)
            self._enter(entry)
            self._digest = journal_digest(record.value)
        for record in self._new("state"):
            self._put(record)
        positions = self.positions
        if positions is not None:
            self._same("the positions' record of the journal", positions.journal, self._digest)
            self._same("the positions' hash of the rows", positions.state, self._state.value)
            for topic, offset in self._applied.items():
                self._same(f"the positions' place in {topic}", positions.applied.get(topic), offset)
        if self._last is not None:
            self._same("the journal's hash of the rows", self._last.state, self._state.value)
        return entry

    @property
    def positions(self) -> PositionsRecord | None:
        """What the row says."""
        if self._positions is None:
            return None
        row = decode((POSITIONS,), self._positions)
        assert isinstance(row, PositionsRecord)
        return row

    @property
    def steps(self) -> int:
        """How many the shard has taken."""
        return 0 if self._last is None else self._last.step

    @property
    def applied(self) -> Mapping[str, int]:
        """How far the journal's inputs reach, by topic."""
        return self._applied

    def _new(self, topic: str) -> Iterator[Record]:
        records, self._next[topic] = self._log.read((topic, self._shard), self._next[topic])
        yield from records

    def _put(self, record: Record) -> None:
        assert record.key is not None, "a row has a key"
        if record.key == self._positions_key:
            self._positions = record.value
            return
        self._state.apply([(record.key, record.value)])
        if record.value is None:
            self.rows.pop(record.key, None)
        else:
            self.rows[record.key] = record.value

    def _enter(self, entry: JournalEntry) -> None:
        last = self._last
        self._same("the step", entry.step, 1 + (last.step if last else 0))
        self._same("the digest of the record before", entry.previous, self._digest)
        self._require(last is None or entry.epoch >= last.epoch, "the epoch goes back")
        self._require(last is None or entry.now_ms >= last.now_ms, "time goes back")
        new = last is None or entry.epoch != last.epoch
        self._same("whether it is the first step of a reign", entry.takeover, new)
        self._last = entry
        for applied in entry.inputs:
            if applied.topic in {source.value for source in Source}:
                self._same(f"the first of {applied.topic}", applied.first, self._applied.get(applied.topic, -1) + 1)
                self._applied[applied.topic] = applied.last
        for settlement in entry.settlements:
            self._settle(settlement)
        self._sequence(entry)
        for decision in entry.decisions:
            self._decide(decision)
        self.counts.update(entry.counts)

    def _sequence(self, entry: JournalEntry) -> None:
        self.decided |= {each.seq: each for each in entry.decisions}
        self.revoked |= {each.seq: (each.tenant, each.run_id, each.attempt) for each in entry.revokes}
        for seq in sorted([each.seq for each in entry.decisions] + [each.seq for each in entry.revokes]):
            self._seq += 1
            self._same("the sequence number", seq, self._seq)

    def _decide(self, decision: Decision) -> None:
        run = decision.tenant, decision.run_id
        self._attempts[run] += 1
        self._same(f"the attempt of {run}", decision.attempt, self._attempts[run])
        self._require(decision.deficit_before >= decision.estimate, f"{run} was served before it could pay")
        self._accounts[*run, decision.attempt] = _Account(decision.estimate)
        self.in_flight += 1

    def _settle(self, settlement: Settlement) -> None:
        attempt = settlement.tenant, settlement.run_id, settlement.attempt
        account = self._accounts.get(attempt)
        if account is None:
            raise self._wrong(f"{attempt} was settled and never dispatched")
        before = account.settled
        if before is None:
            self._same(f"what {attempt} was charged", settlement.estimate, account.estimate)
            self.in_flight -= 1
        else:
            self._require(before.outcome == LOST, f"{attempt} was settled twice: {before.outcome}")
            self._same(f"what {attempt} was charged", settlement.estimate, before.actual)
        if settlement.reported and settlement.outcome in {SUCCEEDED, FAILED}:
            said = {max(1, tokens) for tokens in self._spent[attempt]}  # the least that is charged
            self._require(settlement.actual in said, f"{attempt} was charged {settlement.actual}, it said {said}")
        self._accounts[attempt] = account._replace(settled=settlement)

    def _same(self, what: str, found: object, due: object) -> None:
        self._require(found == due, f"{what} is {found!r} and should be {due!r}")

    def _require(self, holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
        if not holds:
            raise self._wrong(what)

    def _wrong(self, what: str) -> Violation:
        return Violation(f"shard {self._shard}, step {self.steps}: {what}")
