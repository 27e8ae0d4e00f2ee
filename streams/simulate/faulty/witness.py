"""Works out again, after every step, what must be true: from the log, and from the memory of whoever took the step.

From the log, as a read_committed reader sees it (`ledger`): the journal is one chain of steps; inputs are applied once
and without a gap; dispatches and revocations are numbered without a gap, each attempt of a run is the next one; an
attempt is settled once, or, if it was given up as lost, once more; rows, positions and journal agree. And here: what is
sent is what was decided, once; no more is in flight than the window allows when something is dispatched.

From the owner's memory: it is what its rows say, and the core's own invariants hold, among them the ledger (charged =
spent + open) and the bound on the gap.

At rest: every input was applied, every request was answered once, every run that was accepted has ended, once, nothing
is queued or in flight, and every token that was charged was spent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from streams.core import counts, reasons
from streams.core.inputs import Submit
from streams.core.invariants import InvariantBroken, check
from streams.core.records import FlightRecord, FlowRecord, RetryRecord, RunRecord
from streams.core.snapshot import ShardView
from streams.errors import BadRecord
from streams.intake import Source
from streams.rows import decode, decode_key, encode, encode_key, row_key
from streams.simulate.faulty.ledger import Ledger, Violation
from streams.simulate.faulty.log import Log
from streams.simulate.faulty.owner import Owner
from streams.simulate.faulty.workers import Attempt
from streams.wire import Assignment, decode_dispatch, decode_rejection, decode_request, partition_for

_PPM: Final = 1_000_000


class Witness:
    """Of one deployment."""

    def __init__(self, log: Log, shards: int, spent: Mapping[Attempt, set[int]]) -> None:
        self._log: Final = log
        self._shards: Final = shards
        self._ledgers: Final = [Ledger(log, shard, spent) for shard in range(shards)]
        self._next = [0] * shards  # of the dispatch topic
        self.widest_gap = 0  # ppm of its bound

    def look(self, owner: Owner) -> None:
        """Raise `Violation` for whatever is wrong in the log, or in the memory of a shard's owner.

        To be called whenever the two should agree: after a step, and when a shard has been loaded.
        """
        ledger, core = self._ledgers[owner.shard], owner.core
        entry = ledger.follow()
        self._follow_dispatches()
        view = core.snapshot()
        where = f"shard {owner.shard}, step {view.shard.step}"
        rows = {encode_key(owner.shard, row_key(each)): encode(each) for each in core.dump()}
        for key in [*dict.fromkeys([*rows, *ledger.rows])] if rows != ledger.rows else ():
            written, due = ledger.rows.get(key), rows.get(key)
            if written != due:
                raise Violation(f"{where}: the row {key!r} is {written!r}, and {due!r} in its owner's memory")
        try:
            check(core)
        except InvariantBroken as broken:
            raise Violation(f"{where}: {broken}") from broken
        if view.shard.flight_runs != ledger.in_flight:
            raise Violation(f"{where}: {view.shard.flight_runs} in flight, by the journal {ledger.in_flight}")
        if entry is not None and entry.decisions and _is_over(view.shard):
            raise Violation(f"{where}: more is in flight than the window allows")
        for each in view.classes:
            if each.bound:
                self.widest_gap = max(self.widest_gap, each.gap * _PPM // each.bound)

    def follow(self) -> None:
        """Take in whatever has been committed."""
        for ledger in self._ledgers:
            ledger.follow()
        self._follow_dispatches()

    def at_rest(self) -> None:
        """Raise `Violation` for whatever is left undone."""
        self._follow_dispatches()
        for shard, ledger in enumerate(self._ledgers):
            ledger.follow()
            where = f"shard {shard}, at rest"
            for source in Source:
                records, _ = self._log.read((source.value, shard), ledger.applied.get(source.value, -1) + 1)
                if records:
                    raise Violation(f"{where}: {len(records)} {source} were never applied")
            for unsent in (*ledger.decided.values(), *ledger.revoked.values()):
                raise Violation(f"{where}: {unsent} was decided and never sent")
            rows = [decode(decode_key(key)[1], value) for key, value in ledger.rows.items()]
            for row in rows:
                if isinstance(row, RunRecord | RetryRecord | FlightRecord):
                    raise Violation(f"{where}: {row} is left")
                if isinstance(row, FlowRecord) and row.charged != row.actual:
                    raise Violation(f"{where}: {row.tenant} was charged {row.charged} and spent {row.actual}")
            ended = {name: ledger.counts[name] for name in counts.ENDS if ledger.counts[name]}
            if ledger.counts[counts.ACCEPTED] != sum(ended.values()):
                raise Violation(f"{where}: {ledger.counts[counts.ACCEPTED]} were accepted, and ended {ended}")
            answers = ledger.counts[counts.ACCEPTED] + ledger.counts[counts.REFUSED]
            asked = self._asked(shard)
            if answers != asked:
                raise Violation(f"{where}: {asked} runs were asked for, and {answers} answers given")
        self._none_refused_twice()

    @property
    def steps(self) -> int:
        """How many the shards have taken."""
        return sum(each.steps for each in self._ledgers)

    @property
    def counts(self) -> Counter[str]:
        """What the steps have counted (`streams.core.counts`), over all shards."""
        return sum((each.counts for each in self._ledgers), Counter())

    def _follow_dispatches(self) -> None:
        for partition in range(self._shards):
            records, self._next[partition] = self._log.read(("dispatch", partition), self._next[partition])
            for record in records:
                sent = decode_dispatch(record.value)
                ledger, attempt = self._ledgers[sent.shard], (sent.tenant, sent.run_id, sent.attempt)
                ledger.follow()
                if isinstance(sent, Assignment):
                    decision = ledger.decided.pop(sent.seq, None)
                    known = None if decision is None else (decision.tenant, decision.run_id, decision.attempt)
                else:
                    known = ledger.revoked.pop(sent.seq, None)
                if known != attempt:
                    raise Violation(f"shard {sent.shard}, seq {sent.seq}: {attempt} was sent, decided was {known}")

    def _asked(self, shard: int) -> int:
        """Return how many requests for runs a shard had to answer: of its own tenants, and readable."""
        found = 0
        for record in self._log.read(("requests", shard), 0)[0]:
            with suppress(BadRecord):
                given = decode_request(record.key, record.value, record.offset, record.timestamp)
                found += isinstance(given, Submit) and partition_for(given.tenant, self._shards) == shard
        return found

    def _none_refused_twice(self) -> None:
        """Each request is refused once at the door, at most."""
        refused: Counter[tuple[str, int, int]] = Counter()
        for partition in range(self._shards):
            records, _ = self._log.read(("rejected", partition), 0)
            for record in records:
                said = decode_rejection(record.value)
                if said.reason not in {reasons.EXPIRED, reasons.DEAD_LETTERED}:
                    refused[said.position] += 1
        for position, times in refused.items():
            if times > 1:
                raise Violation(f"{position} was refused {times} times")


def _is_over(view: ShardView) -> bool:
    """Whether more is in flight than the window allows; a run that is larger than all of it goes alone."""
    runs, tokens = view.window_runs, view.window_tokens
    if runs is not None and view.flight_runs > runs:
        return True
    return tokens is not None and view.flight_tokens > tokens and view.flight_runs > 1
