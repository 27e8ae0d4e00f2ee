"""The bound for all tenants, by a replay: what the core measures while it decides again what was decided.

Tenants with a cap or in a group don't earn their weight in every round, and in which they do no topic tells; see
`stretch`. The core knows: after each step that has moved something the widest gap of each class is held against its
bound (`streams.core.gap`). O(flows) a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.audit.replay import ShardReplay
from streams.errors import visible

if TYPE_CHECKING:
    from streams.audit.recording import Recording
    from streams.audit.verify.findings import Findings
    from streams.core.shard import Shard


def hold_bound(recording: Recording, shard: int, findings: Findings) -> None:
    """Replay a shard from its beginning. Where it does not come out as recorded it ends, and that is a problem.

    Raises as `ShardReplay` does: `NotReplayable` if the recording does not reach back far enough.
    """
    replay = ShardReplay(recording, shard)
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
