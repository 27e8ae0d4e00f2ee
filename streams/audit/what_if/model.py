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
    """Play the real core under these policies, in as many shards as there were, each with its part of the window."""
    first, *changes = policies
    runs = first.policy.window.runs
    slots = None if runs is None else max(runs, traffic.shards)  # as live: no shard is without a place
    ours = DeficitRoundRobin(first.policy, slots=slots, shards=traffic.shards, changes=changes)
    return play_out(traffic.arrivals, ours, slots=None, handover_ms=handover_ms)


def play_fifo(traffic: Traffic, policies: Sequence[Stated], handover_ms: int) -> Played:
    """Play one queue for all shards together, in the window of these policies."""
    return play_out(traffic.arrivals, WindowedFifo(policies), slots=None, handover_ms=handover_ms)
