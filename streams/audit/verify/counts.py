"""The counts of a step against what it lists: both are in the journal, and each can be altered alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from streams.core import counts, reasons
from streams.core.inputs import Submit
from streams.core.outcomes import LOST

if TYPE_CHECKING:
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.inputs import Inputs
    from streams.wire import JournalEntry

# What a run that had been accepted can be refused by later, beside the two that are always said later.
_LATER: Final = (counts.DROPPED, counts.REMOVED, counts.UNDELIVERABLE)


def hold_counts(entry: JournalEntry, inputs: Inputs, findings: Findings) -> None:
    """Hold each count that the lists of a step tell against them."""
    said, listed = entry.counts, Counter(each.reason for each in entry.rejections)
    later = sum(said.get(name, 0) for name in _LATER)
    at_the_door = sum(listed.values()) - listed[reasons.EXPIRED] - listed[reasons.DEAD_LETTERED] - later
    by_reason = sum(number for name, number in said.items() if name.startswith(f"{counts.REFUSED}."))
    told = {
        counts.DISPATCHED: len(entry.decisions),
        counts.REVOKED: len(entry.revokes),
        counts.LOST: sum(each.outcome == LOST for each in entry.settlements),
        counts.UNREPORTED: sum(not each.reported for each in entry.settlements),
        counts.EXPIRED: listed[reasons.EXPIRED],
        counts.DEAD_LETTERED: listed[reasons.DEAD_LETTERED],
        counts.REFUSED: at_the_door,
    }
    for name, number in told.items():
        if said.get(name, 0) != number:
            _wrong(findings, entry, f"{said.get(name, 0)} {name} are counted, {number} listed")
    if by_reason != at_the_door:
        _wrong(findings, entry, f"{by_reason} refused are counted by reason, {at_the_door} listed")
    if inputs.deleted or inputs.missing:
        return
    asked = sum(isinstance(each, Submit) for each in inputs.requests) + len(inputs.too_large)
    findings.looked_at["requests"] += asked
    answered = said.get(counts.ACCEPTED, 0) + said.get(counts.REFUSED, 0)
    if asked != answered:
        findings.add(
            "inputs", entry.shard, f"{asked} requests went in; {answered} were accepted or refused", step=entry.step
        )


def _wrong(findings: Findings, entry: JournalEntry, sentence: str) -> None:
    findings.add("counts", entry.shard, sentence, step=entry.step)
