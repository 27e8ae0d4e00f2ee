"""Accounts of attempts that were given up as lost: they stay open, for the worker may yet say what it spent.

As long as the run has not ended they are kept with it (`Run.lost`); after that on the page that remembers its id
(`EndedRecord.lost`), and for as long as that page. Each is amended once at most, and then it is closed. Both places
are bounded: a run whose workers are never heard of may be tried any number of times, and many runs may end in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streams.core.flows import Flow
from streams.core.records import EndedRecord

if TYPE_CHECKING:
    from streams.core.runs import Flight, Run

MAX_OF_RUN: Final = 32  # the latest attempts: the longer ago one was given up, the less likely it is heard of
MAX_OF_PAGE: Final = 1_000  # so that the row of a page stays small, whatever ends in one step

Attempt = tuple[str, str, int]  # tenant, run_id, number


class Account(NamedTuple):
    """The open account of an attempt of a run that has ended."""

    flow: Flow
    page: EndedRecord
    charged: int  # tokens


def give_up(run: Run, attempt: int, charged: int) -> None:
    """Open the account of an attempt of `run` that is given up at `charged` tokens. The oldest may close for it."""
    run.lost = run.lost | {attempt: charged}  # a new one: most runs share an empty one
    if len(run.lost) > MAX_OF_RUN:
        del run.lost[min(run.lost)]


class Lost:
    """The accounts on all pages. Each keeps its flow known: `Flow.open` counts it."""

    __slots__ = ("_accounts",)

    def __init__(self) -> None:
        """Begin without any."""
        self._accounts: dict[Attempt, Account] = {}

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._accounts)

    def keep(self, run: Run, page: EndedRecord) -> None:
        """Take over the accounts of a run that ends, the latest attempts first as far as the page has room."""
        latest = sorted(run.lost, reverse=True)[: max(0, MAX_OF_PAGE - len(page.lost))]
        for attempt in reversed(latest):
            self._keep(run.flow, page, run.run_id, attempt, run.lost[attempt])

    def keep_attempt(self, flight: Flight, page: EndedRecord) -> None:
        """Open the account of an attempt whose run has ended before, if the page that remembers it has room."""
        if len(page.lost) < MAX_OF_PAGE:
            self._keep(flight.flow, page, flight.run_id, flight.attempt, flight.reported)

    def find(self, attempt: Attempt) -> Account | None:
        """Return the account of an attempt if it is open."""
        return self._accounts.get(attempt)

    def close(self, attempt: Attempt) -> None:
        """Close an account that is open: its page has changed. The caller counts it off in its flow."""
        account = self._accounts.pop(attempt)
        account.page.lost.remove((*attempt[:2], account.flow.class_, attempt[2], account.charged))

    def drop(self, page: EndedRecord) -> list[Flow]:
        """Close all accounts of a page that is forgotten; return the flow of each, to be counted off by the caller."""
        return [self._accounts.pop((tenant, run_id, attempt)).flow for tenant, run_id, _, attempt, _ in page.lost]

    def open(self, flow: Flow, page: EndedRecord, run_id: str, attempt: int, charged: int) -> None:
        """Take in an account that is on its page already."""
        self._accounts[flow.tenant, run_id, attempt] = Account(flow, page, charged)
        flow.open += 1

    def _keep(self, flow: Flow, page: EndedRecord, run_id: str, attempt: int, charged: int) -> None:
        page.lost.append((flow.tenant, run_id, flow.class_, attempt, charged))
        self.open(flow, page, run_id, attempt, charged)
