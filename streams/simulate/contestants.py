"""The schedulers that are compared, by the names that the command line knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from streams.errors import ConfigError
from streams.simulate.baselines import Fifo, NoRestraint, RoundRobin
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.scheduler import Scheduler
from streams.simulate.story import Story

OURS: Final = "ours"


def _ours(story: Story) -> Scheduler:
    return DeficitRoundRobin(story.policy, slots=story.slots, shards=story.shards, reported=story.reported)


def _fifo(story: Story) -> Scheduler:
    return Fifo(lease_ms=story.policy.leases.lease_ms)


def _round_robin(story: Story) -> Scheduler:
    return RoundRobin(lease_ms=story.policy.leases.lease_ms)


def _no_restraint(story: Story) -> Scheduler:
    return NoRestraint(lease_ms=story.policy.leases.lease_ms)


CONTESTANTS: Final[Mapping[str, Callable[[Story], Scheduler]]] = {
    OURS: _ours,
    "fifo": _fifo,
    "round-robin": _round_robin,
    "no-restraint": _no_restraint,
}


def choose(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names as they are, each once. Raises `ConfigError` for one that is not known, or for none."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen or ("",):
        if name not in CONTESTANTS:
            raise ConfigError(f"must be some of {', '.join(CONTESTANTS)}", field="schedulers", value=name)
    return chosen
