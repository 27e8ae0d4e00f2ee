"""One shard, step after step: what went in and what came out, followed in the order in which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.audit.checkpoints import feet
from streams.audit.verify.books import Books
from streams.audit.verify.chain import Chain
from streams.audit.verify.counts import hold_counts
from streams.audit.verify.door import Door
from streams.audit.verify.endings import Endings
from streams.audit.verify.findings import Span
from streams.audit.verify.inputs import InputReader
from streams.audit.verify.intervals import Shares
from streams.audit.verify.rows import Rows, hold_accounts, read_state
from streams.audit.verify.serving import Serving
from streams.audit.verify.stretch import Stretches
from streams.audit.verify.told import Told
from streams.core.inputs import Submit
from streams.core.state import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.audit.recording import Recording
    from streams.audit.verify.dispatches import Dispatches
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.forwards import Forwards
    from streams.audit.verify.policies import Policies
    from streams.audit.verify.refusals import Refusals
    from streams.audit.verify.subjects import Run
    from streams.core.policy import Policy
    from streams.wire import JournalEntry


class ShardVerifier:
    """Follows one shard. `steps` is to be run to its end, then `finish` called."""

    def __init__(
        self,
        recording: Recording,
        shard: int,
        findings: Findings,
        *,
        policies: Policies,
        dispatches: Dispatches,
        refusals: Refusals,
        forwards: Forwards,
        interval_ms: int,
    ) -> None:
        self.shard: Final = shard
        self._recording: Final = recording
        self._findings: Final = findings
        self._policies: Final = policies
        self._dispatches: Final = dispatches
        self._refusals: Final = refusals
        self._forwards: Final = forwards
        # In this order: what is written meanwhile shows in the state, and in the journal's end when it is asked again.
        self._end: Final = recording.bounds("journal", shard)[1]
        self._state = read_state(recording, shard)
        self._first = 1
        self._version: int | None = None
        self.books: Final = Books(shard, recording.shards)
        self.chain: Final = Chain(shard, findings)
        self.stretches: Final = Stretches(self.books, findings)
        self.shares: Final = Shares(self.books, findings, interval_ms)
        self._inputs: Final = InputReader(recording, shard)
        self._endings: Final = Endings(self.books, findings, self.stretches, self.shares, refusals)
        self._door: Final = Door(self.books, findings, self._endings, refusals)
        self._serving: Final = Serving(self.books, findings, self.stretches, self.shares, dispatches)
        self.books.on_rest = self.shares.rest

    def steps(self) -> Iterator[int]:
        """Follow the journal to where it ended at first; yield the time of each record, ms, before it is followed."""
        records = self._recording.read("journal", self.shard, 0, self._end)
        closing = self._state.positions.journal if self._state.positions is not None else ""
        for record, entry, linked in self.chain.follow(records, closing):
            yield record.timestamp
            if self.chain.last is None:
                self._first = entry.step
            if linked and self.chain.last is None:
                self._begin()
            elif not linked:
                self._lose_track()
                self._serving.lose_track()
                self._version = None
                if self.chain.last is not None:
                    self._inputs.lose_track()
            self._follow(entry)

    def finish(self) -> None:
        """Hold the end against the rows of the state topic."""
        positions = self._state.positions
        if self.at_rest and positions is not None and positions.journal != self.chain.digest:
            # A transaction's end may show in one topic a moment later than in another.
            self._state = read_state(self._recording, self.shard)
        last, state = self.chain.last, self._state
        self.shares.finish(self._cost_of)
        if state.there:
            deleted = self._recording.bounds("journal", self.shard)[0] > 0
            self.chain.close(state.positions, at_rest=self.at_rest, deleted=deleted)
        else:
            self._findings.looked_at["shards whose state is not there, to close the chain"] += 1
        for sentence in state.unreadable:
            self._findings.add("rows", self.shard, sentence, topic="state")
        if last is not None and not state.unreadable:
            hold_accounts(state, self.shard, self._findings)
        if last is None or state.positions is None or not self.at_rest or state.positions.journal != self.chain.digest:
            return
        if last.core is not None and state.hash != last.state:
            sentence = f"the rows hash to {state.hash[:12]}…; by the journal it was {last.state[:12]}…"
            self._findings.add("rows", self.shard, sentence, step=last.step, topic="state")
        if self.books.whole:
            Rows(self.books, self._findings, self.chain).compare(state)

    def _cost_of(self, run: Run) -> int | None:
        """Return what a run that waits would be charged, by its row; None: the rows are not those of the last step."""
        positions = self._state.positions
        if not self.at_rest or positions is None or positions.journal != self.chain.digest:
            return None
        return self._state.estimate_of(self.shard, run)

    @property
    def complete(self) -> bool:
        """Whether all that the shard has ever taken in is here, and there to be followed."""
        return self.books.whole and self.at_rest and self._state.positions is not None

    @property
    def at_rest(self) -> bool:
        """Whether nothing was written to the journal while it was read."""
        return self._recording.bounds("journal", self.shard)[1] == self._end

    @property
    def span(self) -> Span:
        """The steps that were followed."""
        last = self.chain.last
        return Span(self._first, None if self.at_rest or last is None else last.step)

    def _begin(self) -> None:
        """Begin with the first step of a deployment, unless it was begun with another one's rows."""
        self._serving.begin()
        # One that claims to be of before all steps, and stands behind others, is no beginning.
        taken = [foot for _, foot in feet(self._recording, self.shard)]
        if taken and taken[-1].step == 0 and taken[-1].rows:
            self._lose_track()
        else:
            self._version = BUILT_IN

    def _lose_track(self) -> None:
        self._findings.looked_at["times that the books begin in the middle"] += self.books.whole
        self.books.lose_track()

    def _follow(self, entry: JournalEntry) -> None:
        inputs = self._inputs.read(entry)
        for topic, offset in inputs.passed:
            sentence = f"the journal goes on behind {topic}, offset {offset}: no step has taken it in"
            self._wrong("inputs", entry, sentence, topic, offset)
        for each in inputs.missing:
            sentence = (
                f"{each.topic} were applied from {each.first} to {each.last}, and there is no record at {each.last}"
            )
            if not inputs.deleted:
                self._wrong("inputs", entry, sentence, each.topic, each.last)
        told = Told(entry, inputs)
        hold_counts(entry, inputs, self._findings)
        self._serving.count(told)
        self._forwards.follow(entry, inputs)
        self._refusals.expect_unusable(told)
        self._tell_time(entry)
        policy = self._put_in_force(entry)
        self._policies.hold_time(entry)
        self._findings.looked_at["inputs"] += len(inputs.requests) + len(inputs.completions)
        for revoke in entry.revokes:
            self._dispatches.revoked(entry, revoke)
        if policy is None or inputs.deleted:
            self._pass_over(told)
            return
        self._walk(told, policy)

    def _tell_time(self, entry: JournalEntry) -> None:
        books = self.books
        self.shares.advance(entry.now_ms)
        if entry.takeover and books.now_ms:
            books.outage_ms += entry.now_ms - books.now_ms
        books.now_ms = max(entry.now_ms, books.now_ms)

    def _put_in_force(self, entry: JournalEntry) -> Policy | None:
        if entry.policy_version == self._version and not entry.policies:
            return self.books.policy
        policy = self._policies.apply(entry, self._version)
        self._version = entry.policy_version
        if policy is None:
            self.books.policy = None
        elif policy != self.books.policy:
            self.stretches.end_all()
            self.books.adopt(policy)
            self._serving.adopt(policy)
        return policy

    def _walk(self, told: Told, policy: Policy) -> None:
        """Follow a step in the order of the core: see `streams.core.shard`."""
        for undeliverable in told.entry.undeliverable:
            self._door.take_out(told, undeliverable)
        for completion in told.inputs.completions:
            self._refusals.pass_unknown(told, self.books)
            self._endings.report(told, completion)
        for request in told.inputs.requests:
            self._refusals.pass_unknown(told, self.books)
            if isinstance(request, Submit):
                self._door.submit(told, request, policy)
            else:
                self._door.cancel(told, request)
        self._endings.lose(told)
        self._door.end_by_time(told)
        self._door.refuse_large(told)
        self.books.end_pauses()
        self.books.memory.forget(self.books.now_ms, policy.memory)
        for left in told.revokes.left:
            if self.books.whole:
                sentence = (
                    f"seq {left.seq}: attempt {left.attempt} of {left.run_id} is revoked, and nothing asks for it"
                )
                self._wrong("runs", told.entry, sentence)
        for decision in told.entry.decisions:
            self._serving.decide(told, decision)

    def _pass_over(self, told: Told) -> None:
        """Take in what a step lists, without following it: its inputs have been deleted, or its policy is not known."""
        self._findings.looked_at["steps whose inputs or policy have been deleted"] += 1
        self._lose_track()
        if told.inputs.deleted:
            self._refusals.pass_over(told)
        for refused in told.refusals.left:
            self._refusals.expect(told, refused)
        for decision in told.entry.decisions:
            self._dispatches.decided(told.entry, decision, None)

    def _wrong(
        self, check: str, entry: JournalEntry, sentence: str, topic: str = "journal", offset: int | None = None
    ) -> None:
        self._findings.add(check, self.shard, sentence, step=entry.step, topic=topic, offset=offset)
