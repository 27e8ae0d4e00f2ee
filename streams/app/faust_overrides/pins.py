"""Pins: what each override replaces, or counts on, by a hash of the stock source.

Faust's internals carry no promise. An upgrade that touches a method we replace may have fixed what we work around, or
may need what we left out; the test over `OVERRIDES` then fails and names it, to be read and pinned again.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Override:
    """One stock method and what stands in its place."""

    owner: type[Any]
    name: str
    pin: str  # of the stock source that was read when the override was written
    reason: str  # the replacement's docstring

    def __str__(self) -> str:
        return f"{self.owner.__module__}.{self.owner.__qualname__}.{self.name}"


OVERRIDES: Final[list[Override]] = []


def replaces(owner: type[Any], name: str, pin: str) -> Callable[[F], F]:
    """Mark a method as standing in for `owner.name`; its docstring must say why."""

    def mark(replacement: F) -> F:
        OVERRIDES.append(Override(owner, name, pin, inspect.getdoc(replacement) or ""))
        return replacement

    return mark


def rests_on(owner: type[Any], name: str, pin: str, reason: str) -> None:
    """Pin a method that is left alone, but whose ways an override counts on."""
    OVERRIDES.append(Override(owner, name, pin, reason))


def fingerprint(owner: type[Any], name: str) -> str:
    """Return the pin of a stock method as it is installed now."""
    stock = vars(owner)[name]
    if isinstance(stock, property):
        stock = stock.fget
    # A background task of Mode wraps its function.
    source = inspect.getsource(getattr(stock, "fun", stock))
    return hashlib.sha256(source.encode()).hexdigest()[:12]
