"""The runs that ended and are remembered, a page for each step in which some did; the open accounts of lost attempts.

As much of it as the policy states: it is what a duplicate is told by, and what a late report may still be booked on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.core import policy
from streams.core.endings import MAX_PAGES
from streams.core.lost import MAX_OF_PAGE

if TYPE_CHECKING:
    from streams.audit.verify.subjects import Flow, Identity, Key


@dataclass(slots=True)
class Page:
    """The runs that ended in one step."""

    step: int
    at_ms: int
    runs: list[Identity] = field(default_factory=list)
    accounts: list[Key] = field(default_factory=list)


class Account(NamedTuple):
    """The open account of a lost attempt of a run that has ended."""

    flow: Flow
    charged: int  # tokens it was settled at
    page: Page


class Memory:
    """Of one shard."""

    def __init__(self) -> None:
        self._pages: Final[deque[Page]] = deque()
        self._ended: Final[dict[Identity, Page]] = {}
        self._accounts: Final[dict[Key, Account]] = {}

    def __contains__(self, identity: Identity) -> bool:
        return identity in self._ended

    def remember(self, identity: Identity, flow: Flow, step: int, at_ms: int, lost: Mapping[int, int]) -> None:
        """Remember a run that has ended, and the accounts of its lost attempts, the latest first as far as they fit."""
        page = self._write(identity, step, at_ms)
        latest = sorted(lost, reverse=True)[: max(0, MAX_OF_PAGE - len(page.accounts))]
        for number in reversed(latest):
            self._keep(page, flow, (*identity, number), lost[number])

    def keep_account(self, key: Key, flow: Flow, charged: int, step: int, at_ms: int) -> None:
        """Keep the account of an attempt open that is given up after its run has ended."""
        page = self._ended.get(key[:2]) or self._write(key[:2], step, at_ms)
        if len(page.accounts) < MAX_OF_PAGE:
            self._keep(page, flow, key, charged)

    def account(self, key: Key) -> Account | None:
        """Return the account of a lost attempt if it is open."""
        return self._accounts.get(key)

    def close(self, key: Key) -> None:
        self._accounts.pop(key).page.accounts.remove(key)

    def forget(self, now_ms: int, rules: policy.Memory) -> None:
        """Forget what is above the stated time or number, at the end of a step."""
        most = MAX_PAGES
        oldest_ms = now_ms - rules.ended_ms
        while most and self._pages and (self._pages[0].at_ms < oldest_ms or len(self._ended) > rules.ended_runs):
            page = self._pages.popleft()
            for identity in page.runs:
                self._ended.pop(identity, None)  # it may be there twice, if somebody has let it in again
            for key in page.accounts:
                self._accounts.pop(key, None)
            most -= 1

    def _write(self, identity: Identity, step: int, at_ms: int) -> Page:
        if not self._pages or self._pages[-1].step != step:
            self._pages.append(Page(step, at_ms))
        page = self._pages[-1]
        page.runs.append(identity)
        self._ended[identity] = page
        return page

    def _keep(self, page: Page, flow: Flow, key: Key, charged: int) -> None:
        page.accounts.append(key)
        self._accounts[key] = Account(flow, charged, page)
