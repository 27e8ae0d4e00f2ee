"""How attempts and runs end: what each settlement must say, by what workers have reported; what becomes of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.audit.verify.books import Books
from streams.audit.verify.refusals import UNKNOWN
from streams.audit.verify.subjects import NEVER, Attempt, Flow, Key, Place, Run
from streams.core import reasons
from streams.core.inputs import FAILED, HEARTBEAT, RETURNED, STARTED, SUCCEEDED
from streams.core.lost import MAX_OF_RUN
from streams.core.outcomes import LOST
from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.intervals import Shares
    from streams.audit.verify.refusals import Refusals
    from streams.audit.verify.stretch import Stretches
    from streams.audit.verify.told import Told
    from streams.core.effects import Settlement
    from streams.core.inputs import Completion


class Endings:
    """Of one shard."""

    def __init__(
        self, books: Books, findings: Findings, stretches: Stretches, shares: Shares, refusals: Refusals
    ) -> None:
        self._books: Final = books
        self._findings: Final = findings
        self._stretches: Final = stretches
        self._shares: Final = shares
        self._refusals: Final = refusals

    def report(self, told: Told, given: Completion) -> None:
        """Follow what a worker says of an attempt."""
        attempt = self._books.flights.get((given.tenant, given.run_id, given.attempt))
        if attempt is None:
            self._late(told, given)
        elif given.status in {STARTED, HEARTBEAT}:
            attempt.heard = True
            if attempt.expires_ms is not None and attempt.run.lease_ms is not None:
                attempt.expires_ms = max(attempt.expires_ms, self._books.lease_now + attempt.run.lease_ms)
            self._own_up(attempt, given.tokens or 0)
        else:
            self._finish(told, attempt, given)

    def lose(self, told: Told) -> None:
        """Follow what the journal settles beyond the reports: attempts that were given up."""
        while told.settlements.first is not None:
            self._refusals.pass_unknown(told, self._books)
            said = told.settlements.take()
            key = (said.tenant, said.run_id, said.attempt)
            attempt = self._books.flights.get(key)
            if attempt is None or said.outcome != LOST:
                self._books.disturb(said.tenant)
                if self._books.whole or attempt is not None:
                    self._unexplained(told, said)
                continue
            self._give_up(told, attempt, said)

    def stop(self, told: Told, run: Run) -> None:
        """End a run wherever it is; an attempt in flight must be revoked."""
        if run.place is Place.IN_FLIGHT:
            self._books.revoke(self._books.flights[*run.identity, run.attempt])
            first = told.revokes.first
            if first is None or (first.tenant, first.run_id, first.attempt) != (*run.identity, run.attempt):
                self._wrong("runs", told, f"{_named(run)} was stopped, and its attempt {run.attempt} is not revoked")
            else:
                told.revokes.take()
        else:
            self._books.take(run, Place.ENDED)
        self._books.end(run, told.step)

    def drop(self, told: Told, run: Run) -> None:
        """End a waiting run that is not wanted; one that was never dispatched may be sent again at once."""
        self._books.take(run, Place.ENDED)
        if run.attempt:
            self._books.end(run, told.step)
        else:
            self._books.forget(run)

    # --- while it is in flight

    def _own_up(self, attempt: Attempt, tokens: int) -> None:
        if tokens <= attempt.reported:
            return
        attempt.reported = tokens
        if tokens > attempt.charged:
            self._charge(attempt, tokens - attempt.charged)
            attempt.charged = tokens
            self._books.figures(attempt.run.flow.class_).miss(attempt.estimate, tokens, tokens)

    def _finish(self, told: Told, attempt: Attempt, given: Completion) -> None:
        if given.status == RETURNED:
            expected = (RETURNED, attempt.estimate, 0, True)
        elif given.tokens is None:
            expected = (given.status, attempt.estimate, attempt.charged, False)
        else:
            expected = (given.status, attempt.estimate, max(given.tokens, self._min_charge()), True)
        actual = self._settled(told, attempt.key, expected, f"the completion at offset {given.position}")
        revoked, run = attempt.revoked, attempt.run
        self._settle(attempt, actual)
        if revoked or run.place is not Place.IN_FLIGHT:
            return
        if given.status == RETURNED:
            run.tries -= 1
            self._come_back(told, run, 0)
        elif given.status == FAILED and given.retryable:
            self._retry(told, run)
        else:
            self._books.end(run, told.step)

    def _give_up(self, told: Told, attempt: Attempt, said: Settlement) -> None:
        books, run = self._books, attempt.run
        self._findings.looked_at["leases"] += 1
        if attempt.expires_ms is not None and books.whole and books.lease_now < attempt.expires_ms:
            early = attempt.expires_ms - books.lease_now
            self._wrong("leases", told, f"{_attempt(attempt.key)} was given up {early} ms before its lease ran out")
        expected = (LOST, attempt.estimate, attempt.reported, True)
        self._compare(told, attempt.key, expected, said, "its heartbeats")
        if attempt.revoked:
            books.memory.keep_account(attempt.key, run.flow, attempt.reported, told.step, books.now_ms)
        self._settle(attempt, said.actual)
        if attempt.revoked or run.place is not Place.IN_FLIGHT:
            return
        run.lost[attempt.number] = attempt.reported
        if len(run.lost) > MAX_OF_RUN:
            del run.lost[min(run.lost)]
        if not attempt.heard:
            run.tries -= 1
        self._retry(told, run)

    # --- once it is not

    def _late(self, told: Told, given: Completion) -> None:
        books, over = self._books, given.status not in {STARTED, HEARTBEAT}
        key = (given.tenant, given.run_id, given.attempt)
        run = books.runs.get(key[:2])
        first = told.settlements.first
        if not books.whole and over and first is not None and _key(first) == key:
            told.settlements.take()  # it began before the books did
            books.disturb(given.tenant)
            return
        if not books.whole:
            books.disturb(given.tenant)  # it may have owned up to something
        if run is not None and given.attempt in run.lost:
            if over:
                self._amend(told, run.flow, given, run.lost.pop(given.attempt))
                if given.status == SUCCEEDED:
                    self.stop(told, run)
            return
        account = books.memory.account(key)
        if account is not None and over:
            books.memory.close(key)
            self._amend(told, account.flow, given, account.charged)

    def _amend(self, told: Told, flow: Flow, given: Completion, charged: int) -> None:
        if given.tokens is None or given.status == RETURNED:
            return
        key = (given.tenant, given.run_id, given.attempt)
        expected = (given.status, charged, max(given.tokens, self._min_charge()), True)
        actual = self._settled(told, key, expected, f"the late completion at offset {given.position}")
        self._books.charge(flow, actual - charged)
        self._stretches.charged(flow, actual - charged)
        flow.settled += actual - charged
        flow.peak += 1
        self._books.figures(flow.class_).miss(charged, charged, actual)

    # --- what becomes of a run

    def _retry(self, told: Told, run: Run) -> None:
        given_up = told.refusal_of(run, {reasons.DEAD_LETTERED})
        if run.known and (given_up is not None) != (run.tries >= run.max_attempts):
            fate = "given up" if given_up is not None else "tried again"
            sentence = f"{_named(run)} was {fate}: attempts that count {run.tries}, allowed {run.max_attempts}"
            self._wrong("limits", told, sentence)
        if given_up is not None:
            limit, value = (run.max_attempts, run.tries) if run.known else (UNKNOWN, UNKNOWN)
            self._refusals.expect(told, given_up, limit=limit, value=value)
            self._books.end(run, told.step)
            return
        policy = self._books.policy
        assert policy is not None, "nothing is followed without one"
        leases = policy.leases
        self._come_back(told, run, min(leases.backoff_ms << min(max(run.tries - 1, 0), 32), leases.max_backoff_ms))

    def _come_back(self, told: Told, run: Run, pause_ms: int) -> None:
        removed = told.refusal_of(run, {reasons.UNKNOWN_TENANT})
        if removed is not None:
            self._refusals.removed(told, run, removed)
            self._books.end(run, told.step)
            return
        run.ready_ms = self._books.now_ms + pause_ms if run.known else NEVER
        self._books.enqueue(run)

    # --- settlements

    def _settled(self, told: Told, key: Key, expected: tuple[str, int, int, bool], by: str) -> int:
        """Take the settlement that a report must have led to; return what the journal says that it cost."""
        said = told.settlements.first
        if said is None or (said.tenant, said.run_id, said.attempt) != key:
            got = "no more settlements" if said is None else f"a settlement of {_attempt(_key(said))} instead"
            self._wrong("settlements", told, f"{by} ends {_attempt(key)}, and the journal has {got}")
            return expected[2]
        told.settlements.take()
        self._compare(told, key, expected, said, by)
        return said.actual

    def _compare(self, told: Told, key: Key, expected: tuple[str, int, int, bool], said: Settlement, by: str) -> None:
        self._findings.looked_at["settlements"] += 1
        found = (said.outcome, said.estimate, said.actual, said.reported)
        if not self._books.whole and expected[1:] != found[1:] and expected[0] == found[0]:
            return  # heartbeats that came before the books began are not known
        if found != expected:
            self._wrong(
                "settlements", told, f"{_attempt(key)} is settled as {_words(found)}; {by} makes it {_words(expected)}"
            )

    def _settle(self, attempt: Attempt, actual: int) -> None:
        flow = attempt.run.flow
        self._books.figures(flow.class_).miss(attempt.estimate, attempt.charged, actual)
        self._shares.settle(attempt, actual)
        self._stretches.charged(flow, actual - attempt.charged)
        self._books.settle(attempt, actual)

    def _charge(self, attempt: Attempt, tokens: int) -> None:
        self._books.charge(attempt.run.flow, tokens)
        self._stretches.charged(attempt.run.flow, tokens)

    def _min_charge(self) -> int:
        policy = self._books.policy
        assert policy is not None, "nothing is followed without one"
        return policy.estimates.min_charge

    def _unexplained(self, told: Told, said: Settlement) -> None:
        known = "is not in flight" if _key(said) not in self._books.flights else "was not reported on"
        self._wrong(
            "settlements",
            told,
            f"{_attempt(_key(said))} is settled as {said.outcome} at {said.actual} tokens, and {known}",
        )

    def _wrong(self, check: str, told: Told, sentence: str) -> None:
        self._findings.add(check, self._books.shard, sentence, step=told.step)


def _key(said: Settlement) -> Key:
    return (said.tenant, said.run_id, said.attempt)


def _attempt(key: Key) -> str:
    return f"{visible(key[0])}/{visible(key[1])} attempt {key[2]}"


def _named(run: Run) -> str:
    return f"{visible(run.tenant)}/{visible(run.run_id)}"


def _words(settled: tuple[str, int, int, bool]) -> str:
    outcome, estimate, actual, reported = settled
    return f"{outcome}, {estimate} tokens charged and {actual} spent{'' if reported else ', not reported'}"
