"""Decisions and revocations: of runs that were queued, in order, within the window; and each sent as it was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.audit.verify.books import Books
from streams.audit.verify.subjects import NEVER, UNKNOWN_POSITION, Attempt, Flow, Place, Run, Tenant
from streams.core.window import Window
from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.verify.dispatches import Dispatches
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.intervals import Shares
    from streams.audit.verify.stretch import Stretches
    from streams.audit.verify.told import Told
    from streams.core.policy import Policy
    from streams.wire import Decision


class Serving:
    """Of one shard."""

    def __init__(
        self, books: Books, findings: Findings, stretches: Stretches, shares: Shares, dispatches: Dispatches
    ) -> None:
        self._books: Final = books
        self._findings: Final = findings
        self._stretches: Final = stretches
        self._shares: Final = shares
        self._dispatches: Final = dispatches
        self._window: Final = Window()
        self._seq: int | None = None  # the last one; None: not known

    def begin(self) -> None:
        """Begin with the first step of a deployment."""
        self._seq = 0

    def lose_track(self) -> None:
        """Begin in the middle."""
        self._seq = None

    def adopt(self, policy: Policy) -> None:
        """Take over the window of a policy."""
        self._window.resize(policy.window, self._books.shard, self._books.shards)

    def count(self, told: Told) -> None:
        """Hold the sequence numbers of a step against those before: revocations first, then decisions, no gap."""
        given = [each.seq for each in told.entry.revokes] + [each.seq for each in told.entry.decisions]
        for seq in given:
            expected = seq if self._seq is None else self._seq + 1
            if seq != expected:
                self._wrong("dispatches", told, f"seq {seq} follows {expected - 1}")
            self._seq = seq

    def decide(self, told: Told, decision: Decision) -> None:
        """Follow one decision."""
        run = self._books.runs.get((decision.tenant, decision.run_id))
        if run is None:
            run = self._unknown(told, decision)
        else:
            self._check(told, run, decision)
        flow = run.flow
        self._has_room(told, flow.tenant, decision)
        self._findings.looked_at["dispatches"] += 1
        if decision.deficit_before < decision.estimate:
            sentence = f"a deficit of {decision.deficit_before} does not cover {decision.estimate} tokens"
            self._wrong("deficits", told, f"seq {decision.seq}, {_name(decision)}: {sentence}")
        self._stretches.decide(flow, decision, told.step)
        self._shares.decide(flow, decision.estimate)
        self._start(told, run, decision)
        self._dispatches.decided(told.entry, decision, run)

    def _check(self, told: Told, run: Run, decision: Decision) -> None:
        where = f"seq {decision.seq}, {_name(decision)}"
        if run.place is not Place.READY and run.known:
            self._wrong("runs", told, f"{where}: dispatched while it is {run.place.name.lower()}")
        elif (first := run.flow.first()) is not run and first is not None and run.known:
            ahead = f"{visible(first.run_id)}, offset {first.position}"
            self._wrong("runs", told, f"{where}, offset {run.position}: dispatched before {ahead}")
        if decision.attempt != run.attempt + 1:
            self._wrong("runs", told, f"{where}: attempt {decision.attempt} follows attempt {run.attempt}")
        if decision.class_ != run.flow.class_:
            asked, given = visible(run.flow.class_), visible(decision.class_)
            self._wrong("runs", told, f"{where}: served in class {given}, asked for {asked}")
        if run.estimate not in {None, decision.estimate}:
            self._wrong("runs", told, f"{where}: charged {decision.estimate} tokens, {run.estimate} the last time")

    def _has_room(self, told: Told, tenant: Tenant, decision: Decision) -> None:
        """Hold a decision against the window, and the caps of its tenant."""
        books, window, tokens = self._books, self._window, decision.estimate
        window.runs, window.tokens = books.flight_runs, books.flight_tokens
        where = f"seq {decision.seq}, {_name(decision)}"
        self._findings.looked_at["places in the window"] += 1
        if not window.has_place():
            self._wrong(
                "window", told, f"{where}: {window.runs} runs are in flight, and the window is {window.max_runs}"
            )
        if not window.fits(tokens):
            sentence = f"{window.tokens} tokens are in flight, {tokens} more do not fit {window.max_tokens}"
            self._wrong("window", told, f"{where}: {sentence}")
        rules = tenant.rules
        if tenant.barred:
            self._wrong("window", told, f"{where}: dispatched for a tenant that is paused, or not named any more")
        if rules.max_runs_in_flight is not None and tenant.flight_runs >= rules.max_runs_in_flight:
            sentence = f"{tenant.flight_runs} runs of its tenant are in flight, {rules.max_runs_in_flight} may be"
            self._wrong("window", told, f"{where}: {sentence}")
        cap = rules.max_tokens_in_flight
        if cap is not None and tenant.flight_runs and tenant.flight_tokens + tokens > cap:
            sentence = f"{tenant.flight_tokens} tokens of its tenant are in flight, {tokens} more do not fit {cap}"
            self._wrong("window", told, f"{where}: {sentence}")

    def _unknown(self, told: Told, decision: Decision) -> Run:
        """Begin to follow a run that the books have not seen come in."""
        if self._books.whole:
            self._wrong("runs", told, f"seq {decision.seq}, {_name(decision)}: dispatched, and it is not queued")
        flow = self._books.flow(decision.class_, decision.tenant)
        run = Run(flow, decision.run_id, UNKNOWN_POSITION, NEVER, None, decision.attempt, None, 0, b"")
        self._books.hold(run)
        return run

    def _start(self, told: Told, run: Run, decision: Decision) -> None:
        books, flow = self._books, run.flow
        if run.place is Place.IN_FLIGHT:  # a decision that was doubled: only one of them is booked
            return
        books.take(run, Place.IN_FLIGHT)
        if not flow.ready:
            books.rest(flow)
        run.attempt, run.tries, run.estimate = decision.attempt, run.tries + 1, decision.estimate
        expires_ms = None if run.lease_ms is None else books.lease_now + run.lease_ms
        attempt = Attempt(run, decision.attempt, decision.seq, decision.estimate, decision.estimate, expires_ms)
        books.start(attempt)
        self._charged(flow, decision.estimate)
        self._shares.hand_out(attempt, told.step)

    def _charged(self, flow: Flow, tokens: int) -> None:
        self._stretches.charged(flow, tokens)

    def _wrong(self, check: str, told: Told, sentence: str) -> None:
        self._findings.add(check, self._books.shard, sentence, step=told.step)


def _name(decision: Decision) -> str:
    return f"{visible(decision.tenant)}/{visible(decision.run_id)}"
