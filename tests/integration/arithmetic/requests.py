"""Requests: each is accepted or refused, once; what cannot be read is refused once; what went astray is forwarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from streams.core import counts, reasons
from tests.integration.arithmetic.evidence import Evidence
from tests.integration.arithmetic.inputs import Place, Run

# Said to a run that was accepted: it is given up. The rest is said at the door, and three of them at either place.
AFTER_ADMISSION = {reasons.EXPIRED, reasons.DEAD_LETTERED}
AT_EITHER = {reasons.OVERLOADED, reasons.TOO_LARGE, reasons.UNKNOWN_TENANT}


def accepted(evidence: Evidence) -> set[Run]:
    """The runs that came in and had to be served: not those given up or taken back before they were dispatched."""
    inputs, refused = evidence.inputs, evidence.refused
    return {
        (each.tenant, each.run_id)
        for place, each in inputs.submits
        if place not in refused and inputs.cancels.get((each.tenant, each.run_id), -1) < each.position
    }


def perhaps_accepted(evidence: Evidence) -> set[Run]:
    """The runs that may have been dispatched: all but those of which each request was refused at the door."""
    allowed, refused = AFTER_ADMISSION | AT_EITHER, evidence.refused
    return {
        (each.tenant, each.run_id)
        for place, each in evidence.inputs.submits
        if allowed.issuperset(refused.get(place, ()))
    }


def each_answered_once(evidence: Evidence) -> Iterator[str]:
    """No record is refused twice, what cannot be read is refused, and nothing is refused that nobody asked for."""
    inputs, refused = evidence.inputs, evidence.refused
    known = {place for place, _ in inputs.submits} | {*inputs.unusable, *inputs.astray}
    for place, why in refused.items():
        if len(why) > 1:
            yield f"{_shown(place)} was refused {len(why)} times: {why}"
        if place not in known:
            yield f"{_shown(place)} was refused ({why[0]}), and no request that could be stands there"
    for place in inputs.unusable:
        if refused.get(place) != [reasons.INVALID]:
            yield f"{_shown(place)} cannot be used, and the refusals of it are {refused.get(place, [])}"
    for shard, entries in evidence.journal.items():
        asked = sum(place[1] == shard for place, _ in inputs.submits)
        answers = {
            name: sum(entry.counts.get(name, 0) for entry in entries) for name in (counts.ACCEPTED, counts.REFUSED)
        }
        if sum(answers.values()) != asked:
            yield f"shard {shard}: {asked} requests were applied, and the answers are {answers}"


def refused_as_the_journal_says(evidence: Evidence) -> Iterator[str]:
    """The rejected topic holds what the journal says, and nothing else but unreadable records."""
    said: Counter[tuple[object, ...]] = Counter(
        (entry.shard, entry.step, *each._replace(position=max(each.position, -1)))  # any before a move: -1
        for entry in evidence.entries
        for each in entry.rejections
    )
    done: Counter[tuple[object, ...]] = Counter(
        (each.shard, each.step, each.tenant, each.run_id, each.reason, each.position.offset)
        for each in evidence.refusals
        if each.reason != reasons.INVALID
    )
    for what in (said - done) + (done - said):
        yield f"refusal {what}: {said[what]} times in the journal, {done[what]} times in the rejected topic"


def forwarded_once(evidence: Evidence) -> Iterator[str]:
    """A record on the wrong partition has one copy on the right one, or was refused because none could be written."""
    inputs, refused = evidence.inputs, evidence.refused
    for place in inputs.astray:
        topic, shard, offset = place
        times = inputs.copies[f"{getattr(evidence.names, topic)}:{shard}:{offset}"]
        if times + len(refused.get(place, ())) != 1:
            yield f"{_shown(place)} is of another shard's tenant and was forwarded {times} times"


def _shown(place: Place) -> str:
    topic, partition, offset = place
    return f"{topic}, partition {partition}, offset {offset}"
