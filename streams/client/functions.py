"""Which function does which workflow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar, cast

from streams.client.run import Run
from streams.errors import ConfigError

# A function gets the run and returns the tokens it cost in total, or None if `Run.spent` has told them.
Plain = Callable[[Run], int | None]
Async = Callable[[Run], Coroutine[Any, Any, int | None]]
F = TypeVar("F", bound=Plain | Async)


class Function(NamedTuple):
    """A registered function, as one of the two kinds; the other is None."""

    plain: Plain | None
    coroutine: Async | None


class Functions:
    """The functions of a worker by workflow name, with a default for the rest."""

    def __init__(self) -> None:
        self._by_workflow: dict[str | None, Function] = {}  # None: the default

    def __len__(self) -> int:
        return len(self._by_workflow)

    def add(self, workflow: str | None, function: Plain | Async) -> None:
        """Register a function; for None, as the default. Raises `ConfigError` if there is one already."""
        if workflow in self._by_workflow:
            name = "the default" if workflow is None else "this workflow"
            raise ConfigError(f"{name} has a function already", field="workflow", value=workflow)
        self._by_workflow[workflow] = (
            Function(None, cast("Async", function)) if is_async(function) else Function(cast("Plain", function), None)
        )

    def find(self, workflow: str) -> Function | None:
        """Return the workflow's function, else the default, else None."""
        return self._by_workflow.get(workflow) or self._by_workflow.get(None)


def is_async(function: Plain | Async) -> bool:
    """Say whether calling it makes a coroutine: `async def`, also as a method, a partial or a `__call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
