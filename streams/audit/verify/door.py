"""Requests: what was let in is queued, what was refused had a reason, what was taken back has ended."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from streams.audit.verify.books import Books
from streams.audit.verify.limits import DOOR, ground, objections
from streams.audit.verify.refusals import UNKNOWN
from streams.audit.verify.subjects import Place, Run
from streams.core import reasons
from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.verify.endings import Endings
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.refusals import Refusals
    from streams.audit.verify.told import Told
    from streams.core.inputs import Cancel, Submit, Undeliverable
    from streams.core.policy import Policy
    from streams.wire import RefusedRun


class Door:
    """Of one shard."""

    def __init__(self, books: Books, findings: Findings, endings: Endings, refusals: Refusals) -> None:
        self._books: Final = books
        self._findings: Final = findings
        self._endings: Final = endings
        self._refusals: Final = refusals

    def submit(self, told: Told, given: Submit, policy: Policy) -> None:
        """Follow a request that the core was asked."""
        first = told.refusals.first
        if (
            first is not None
            and first.position == given.position
            and (first.tenant, first.run_id) == (given.tenant, given.run_id)
            and first.reason in DOOR
        ):
            self._refused(told, given, told.refusals.take(), policy)
        else:
            self._let_in(told, given, policy)
        self._give_way(told, policy)

    def cancel(self, told: Told, given: Cancel) -> None:
        """Follow a tenant that takes a run back."""
        run = self._books.runs.get((given.tenant, given.run_id))
        if run is not None:
            self._endings.stop(told, run)

    def take_out(self, told: Told, given: Undeliverable) -> None:
        """Follow a run that no topic takes any more."""
        run = self._books.runs.get((given.tenant, given.run_id))
        if run is None:
            return
        refused = told.refusal_of(run, {reasons.TOO_LARGE})
        if refused is None:
            self._wrong("refusals", told, f"{_named(run)} was taken out as undeliverable, and is not refused")
        else:
            self._refusals.expect(told, refused, limit=given.limit, value=given.size)
        if run.place is Place.IN_FLIGHT:
            self._endings.stop(told, run)
        else:
            self._endings.drop(told, run)

    def end_by_time(self, told: Told) -> None:
        """Follow what time ended: deadlines, the runs of tenants that are not named any more."""
        while True:
            self._refusals.pass_unknown(told, self._books)
            first = told.refusals.first
            if first is None:
                return
            run = self._books.runs.get((first.tenant, first.run_id))
            if run is None or not run.waits:
                return
            if first.reason == reasons.EXPIRED and told.refusal_of(run, {reasons.EXPIRED}):
                if run.known and (run.deadline_ms is None or run.deadline_ms > self._books.now_ms):
                    sentence = f"{_named(run)} is expired at {self._books.now_ms}; its deadline was {run.deadline_ms}"
                    self._wrong("limits", told, sentence)
                limit = run.deadline_ms if run.known else UNKNOWN
                self._refusals.expect(told, first, limit=limit, value=self._books.now_ms)
                self._books.take(run, Place.ENDED)
                self._books.end(run, told.step)
            elif told.refusal_of(run, {reasons.UNKNOWN_TENANT}):
                self._refusals.removed(told, run, first)
                self._endings.drop(told, run)
            else:
                return

    def refuse_large(self, told: Told) -> None:
        """Follow the requests that no topic would take; then nothing may be left unexplained."""
        for given in told.inputs.too_large:
            first = told.refusals.first
            if first is None or (first.position, first.reason) != (given.position, reasons.TOO_LARGE):
                sentence = f"the request at offset {given.position} is too large for the topics, and is not refused"
                self._wrong("refusals", told, sentence)
                continue
            told.refusals.take()
            self._refusals.expect(told, first, limit=told.entry.largest_body, value=len(given.body))
        for left in told.refusals.left:
            if self._books.whole:
                name = f"{visible(left.tenant)}/{visible(left.run_id)}"
                sentence = f"{name} is refused as {left.reason}, offset {left.position}: no such request, run or moment"
                self._wrong("refusals", told, sentence)
            self._refusals.expect(told, left)

    def _refused(self, told: Told, given: Submit, refused: RefusedRun, policy: Policy) -> None:
        found = ground(self._books, policy, given, refused.reason)
        if not found.holds:
            name = f"{visible(given.tenant)}/{visible(given.run_id)}"
            sentence = (
                f"the request of {name} at offset {given.position} is refused as {refused.reason}, and was not so"
            )
            self._wrong("limits", told, sentence)
        self._refusals.expect(told, refused, limit=found.limit, value=found.value)

    def _let_in(self, told: Told, given: Submit, policy: Policy) -> None:
        books, leases = self._books, policy.leases
        for reason in objections(books, policy, given):
            name = f"{visible(given.tenant)}/{visible(given.run_id)}"
            self._wrong("limits", told, f"the request of {name} at offset {given.position} was let in; it was {reason}")
        if (given.tenant, given.run_id) in books.runs:
            return  # the one that is there goes on
        lease_ms = leases.lease_ms
        if given.lease_ms is not None:
            lease_ms = max(given.lease_ms, min(leases.min_lease_ms, lease_ms))
        books.hold(
            Run(
                books.flow(given.class_ or policy.classes[0].name, given.tenant),
                given.run_id,
                given.position,
                given.not_before_ms or 0,
                given.deadline_ms,
                given.max_attempts or leases.max_attempts,
                min(lease_ms, leases.max_lease_ms),
                len(given.body),
                digest(given.workflow, given.deadline_ms, given.submitted_ms, given.body),
            )
        )

    def _give_way(self, told: Told, policy: Policy) -> None:
        """Follow the runs that gave way to the newcomer."""
        while True:
            self._refusals.pass_unknown(told, self._books)
            first = told.refusals.first
            if first is None or first.reason != reasons.OVERLOADED:
                return
            run = self._books.runs.get((first.tenant, first.run_id))
            if run is None or not run.waits or told.refusal_of(run, {reasons.OVERLOADED}) is None:
                return
            if policy.limits.overload != "drop_longest":
                self._wrong("limits", told, f"{_named(run)} had to give way, and the policy says that nobody has to")
            self._refusals.expect(told, first)
            self._endings.drop(told, run)

    def _wrong(self, check: str, told: Told, sentence: str) -> None:
        self._findings.add(check, self._books.shard, sentence, step=told.step)


def digest(workflow: str, deadline_ms: int | None, submitted_ms: int, body: bytes) -> bytes:
    """Return a digest of what a request says to the worker."""
    head = f"{len(workflow)}:{workflow}:{deadline_ms}:{submitted_ms}:".encode()
    return blake2b(head + body, digest_size=8).digest()


def _named(run: Run) -> str:
    return f"{visible(run.tenant)}/{visible(run.run_id)}"
