"""The bound for all tenants, by a replay: what the core measures while it decides again what was decided.

Tenants with a cap or in a group don't earn their weight in every round, and in which they do no topic tells; see
`stretch`. The core knows: after each step that has moved something the widest gap of each class is held against its
bound (`streams.core.gap`). O(flows) a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.audit.checkpoints import TOPIC
from streams.audit.replay import ShardReplay, choose_start
from streams.errors import CheckpointWrong, NotReplayable, visible

if TYPE_CHECKING:
    from streams.audit.recording import Recording
    from streams.audit.verify.findings import Findings
    from streams.core.shard import Shard


def hold_bound(recording: Recording, shard: int, findings: Findings) -> None:
    """Replay a shard. Where it does not come out as recorded it ends, and that is a problem.

    It begins at the beginning; if that can no longer be replayed, at the first checkpoint that can, and that is told in
    `looked_at`. Raises as reading does, and `NotReplayable` if there is neither.
    """
    try:
        try:
            _replay(ShardReplay(recording, shard), shard, findings)
        except NotReplayable:
            start = choose_start(recording, shard, since_ms=None, from_checkpoint=True)
            findings.looked_at["shards measured from a checkpoint on"] += 1
            _replay(ShardReplay(recording, shard, start), shard, findings)
    except CheckpointWrong as error:
        findings.add("bound", shard, f"the replay cannot begin: {error}", topic=TOPIC)


def _replay(replay: ShardReplay, shard: int, findings: Findings) -> None:
    for step in replay:
        if not step.problems and (step.entry.decisions or step.entry.settlements):
            _hold(step.core, shard, step.entry.step, findings)
    if replay.divergence is not None:
        where = replay.divergence
        findings.add("bound", shard, f"the replay ends: {where}", step=where.step, offset=where.offset)


def _hold(core: Shard, shard: int, step: int, findings: Findings) -> None:
    for each in core.snapshot().classes:
        findings.looked_at["gaps measured in a replay"] += 1
        if each.gap > each.bound:
            sentence = (
                f"class {visible(each.class_)}: the widest gap is {each.gap} tokens per weight, its bound {each.bound}"
            )
            findings.add("bound", shard, sentence, step=step)
