"""Replay: the recorded inputs go through the same core again, and every decision is compared.

The journal of a shard names, step by step, which records were taken in, when, and under which rules. They are read by
the code that read them then (`streams.intake`) and given to the same door (`streams.core.shard`); what comes out must
be what was recorded, down to the hash of the state. So a replay proves a decision; it does not read it.
"""

from streams.audit.replay.beginning import choose_start
from streams.audit.replay.deployment import ReplayOptions, ShardOutcome, replay_shard, replay_shards
from streams.audit.replay.divergence import Divergence
from streams.audit.replay.inputs import Inputs
from streams.audit.replay.shard_replay import ReplayedStep, ShardReplay

__all__ = [
    "Divergence",
    "Inputs",
    "ReplayOptions",
    "ReplayedStep",
    "ShardOutcome",
    "ShardReplay",
    "choose_start",
    "replay_shard",
    "replay_shards",
]
