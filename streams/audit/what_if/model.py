"""Plays the recorded traffic under one set of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.audit.what_if.fifo import WindowedFifo
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.pool import play_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.audit.what_if.traffic import Traffic
    from streams.simulate.deficit_round_robin import Stated
    from streams.simulate.pool import Played


def play_policies(traffic: Traffic, policies: Sequence[Stated], handover_ms: int) -> Played:
    """Play the real core under these policies, in as many shards as there were, each with its part of the window.

    Raises `ConfigError` for a window with fewer places than shards.
    """
    first, *changes = policies
    ours = DeficitRoundRobin(first.policy, slots=first.policy.window.runs, shards=traffic.shards, changes=changes)
    return play_out(traffic.arrivals, ours, slots=None, handover_ms=handover_ms)


def play_fifo(traffic: Traffic, policies: Sequence[Stated], handover_ms: int) -> Played:
    """Play one queue for all shards together, in the window of these policies."""
    return play_out(traffic.arrivals, WindowedFifo(policies), slots=None, handover_ms=handover_ms)
