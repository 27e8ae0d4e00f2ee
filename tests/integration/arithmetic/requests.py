"""Requests: each is accepted or refused, once; what cannot be read is refused once; what went astray is forwarded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from streams.core import counts, reasons
from streams.core.inputs import Cancel, Completion, Submit
from streams.errors import BadRecord
from streams.wire import FORWARDED, decode_completion, decode_request, partition_for
from tests.integration.arithmetic.evidence import Evidence, Run
from tests.integration.topics import Seen

Place = tuple[str, int, int]  # topic without its prefix, partition, offset

# Said to a run that was accepted: it is given up. The rest is said at the door, and three of them at either place.
AFTER_ADMISSION = {reasons.EXPIRED, reasons.DEAD_LETTERED}
AT_EITHER = {reasons.OVERLOADED, reasons.TOO_LARGE, reasons.UNKNOWN_TENANT}


@dataclass
class _Records:
    """The applied records of both input topics, sorted by what a shard must do with them."""

    submits: list[tuple[Place, Submit]] = field(default_factory=list)
    cancels: dict[Run, int] = field(default_factory=dict)  # the offset of the last one
    unreadable: list[Place] = field(default_factory=list)  # or forwarded once, and still not where it belongs
    astray: list[Place] = field(default_factory=list)
    copies: Counter[str] = field(default_factory=Counter)  # of forwarded records, by where they come from


def accepted(evidence: Evidence) -> set[Run]:
    """The runs that came in and had to be served: not those given up or taken back before they were dispatched."""
    records, refused = _sorted(evidence), _reasons(evidence)
    return {
        (each.tenant, each.run_id)
        for place, each in records.submits
        if not refused[place] and records.cancels.get((each.tenant, each.run_id), -1) < each.position
    }


def perhaps_accepted(evidence: Evidence) -> set[Run]:
    """The runs that may have been dispatched: all but those of which each request was refused at the door."""
    allowed, refused = AFTER_ADMISSION | AT_EITHER, _reasons(evidence)
    return {
        (each.tenant, each.run_id) for place, each in _sorted(evidence).submits if allowed.issuperset(refused[place])
    }


def each_answered_once(evidence: Evidence) -> Iterator[str]:
    """No record is refused twice, what cannot be read is refused, and nothing is refused that nobody asked for."""
    records, refused = _sorted(evidence), _reasons(evidence)
    known = {place for place, _ in records.submits} | {*records.unreadable, *records.astray}
    for place, why in refused.items():
        if len(why) > 1:
            yield f"{_shown(place)} was refused {len(why)} times: {why}"
        if place not in known:
            yield f"{_shown(place)} was refused ({why[0]}), and no request that could be stands there"
    for place in records.unreadable:
        if refused[place] != [reasons.INVALID]:
            yield f"{_shown(place)} cannot be used, and the refusals of it are {refused[place]}"
    for shard, entries in evidence.journal.items():
        asked = sum(place[1] == shard for place, _ in records.submits)
        answers = {
            name: sum(entry.counts.get(name, 0) for entry in entries) for name in (counts.ACCEPTED, counts.REFUSED)
        }
        if sum(answers.values()) != asked:
            yield f"shard {shard}: {asked} requests were applied, and the answers are {answers}"


def refused_as_the_journal_says(evidence: Evidence) -> Iterator[str]:
    """The rejected topic holds what the journal says, and nothing else but unreadable records."""
    said: Counter[tuple[object, ...]] = Counter(
        (entry.shard, entry.step, *each) for entry in evidence.entries for each in entry.rejections
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
    records, refused = _sorted(evidence), _reasons(evidence)
    for place in records.astray:
        topic, shard, offset = place
        times = records.copies[f"{getattr(evidence.names, topic)}:{shard}:{offset}"]
        if times + len(refused[place]) != 1:
            yield f"{_shown(place)} is of another shard's tenant and was forwarded {times} times"


def _sorted(evidence: Evidence) -> _Records:
    records = _Records()
    for topic, decode in (("requests", _request), ("completions", _completion)):
        for seen in getattr(evidence, topic):
            origin = dict(seen.headers).get(FORWARDED)
            if origin is not None:
                records.copies[origin.decode(errors="replace")] += 1
            if seen.offset > evidence.applied(seen.partition).get(topic, -1):
                continue
            place = (topic, seen.partition, seen.offset)
            try:
                given = decode(seen)
            except BadRecord:
                records.unreadable.append(place)
                continue
            if partition_for(given.tenant, len(evidence.shards)) != seen.partition:
                (records.astray if origin is None else records.unreadable).append(place)
            elif isinstance(given, Submit):
                records.submits.append((place, given))
            elif isinstance(given, Cancel):
                records.cancels[given.tenant, given.run_id] = given.position
    return records


def _request(seen: Seen) -> Submit | Cancel | Completion:
    return decode_request(seen.key, seen.value, seen.offset, seen.timestamp_ms)


def _completion(seen: Seen) -> Submit | Cancel | Completion:
    return decode_completion(seen.key, seen.value, seen.offset)


def _reasons(evidence: Evidence) -> dict[Place, list[str]]:
    """Why each record was refused, as often as it was."""
    topics = {getattr(evidence.names, topic): topic for topic in ("requests", "completions")}
    found: dict[Place, list[str]] = defaultdict(list)
    for each in evidence.refusals:
        if each.position.topic in topics:
            found[topics[each.position.topic], each.position.partition, each.position.offset].append(each.reason)
    return found


def _shown(place: Place) -> str:
    topic, partition, offset = place
    return f"{topic}, partition {partition}, offset {offset}"
