"""Checkpoints: each holds the rows that its step has left, by the hash that the journal gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.audit.checkpoints import TOPIC, feet, open_checkpoint, prove
from streams.errors import CheckpointWrong

if TYPE_CHECKING:
    from streams.audit.recording import Recording
    from streams.audit.verify.findings import Findings


def hold_checkpoints(recording: Recording, shard: int, findings: Findings) -> None:
    """Read all of a shard's, one after the other; the rows of one are in memory."""
    for offset, foot in feet(recording, shard):
        findings.looked_at["checkpoints"] += 1
        try:
            proved = prove(recording, open_checkpoint(recording, offset, foot))
        except CheckpointWrong as error:
            findings.add(TOPIC, shard, str(error), step=foot.step, topic=TOPIC, offset=offset)
        else:
            findings.looked_at["checkpoints that the journal says nothing of"] += not proved
