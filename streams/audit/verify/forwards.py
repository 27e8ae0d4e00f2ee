"""Records of another shard's tenant: each has its copy, byte for byte, where it belongs."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from streams.audit.verify.matching import Matching
from streams.wire import FORWARDED

if TYPE_CHECKING:
    from collections.abc import Collection

    from streams.audit.recording import Rec, Recording
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.inputs import Inputs
    from streams.wire import JournalEntry, TopicNames

_TOPICS: Final = ("completions", "requests")


class Astray(NamedTuple):
    """A record that a step has forwarded."""

    shard: int
    step: int
    topic: str
    offset: int
    digest: bytes
    home: int  # the shard of its tenant


class Copy(NamedTuple):
    """A record that says where it comes from."""

    shard: int
    topic: str
    offset: int
    digest: bytes


class Forwards:
    """Of all shards."""

    def __init__(self, names: TopicNames, findings: Findings) -> None:
        self._names: Final = {"completions": names.completions, "requests": names.requests}
        self._findings: Final = findings
        self._pairs: Final[Matching[Astray, Copy]] = Matching()
        self._read_to: Final[dict[tuple[str, int], int]] = {}

    def follow(self, entry: JournalEntry, inputs: Inputs) -> None:
        """Take in what a step has sent on, and what it got that was."""
        for topic, record, home in inputs.astray:
            self._findings.looked_at["records that were forwarded"] += 1
            origin = f"{self._names[topic]}:{entry.shard}:{record.offset}"
            astray = Astray(entry.shard, entry.step, topic, record.offset, _digest(record), home)
            copy = self._pairs.say(origin, astray)
            if copy is not None:
                self._compare(astray, copy)
        for topic, record, origin in inputs.copies:
            self._copied(entry.shard, topic, record, origin)
        for each in entry.inputs:
            self._read_to[each.topic, entry.shard] = each.last

    def finish(self, recording: Recording, complete: Collection[int]) -> None:
        """Look for copies that no step has taken in yet, and say which are not there.

        `complete` are the shards whose inputs are all there; elsewhere a copy may have been, or be still to come.
        """
        for topic in _TOPICS:
            for shard in range(recording.shards):
                for record in recording.read(topic, shard, self._read_to.get((topic, shard), -1) + 1):
                    origin = next((value for name, value in record.headers if name == FORWARDED), None)
                    if origin is not None:
                        self._copied(shard, topic, record, origin.decode(errors="replace"))
        for said in self._pairs.only_said():
            if said.home not in complete:
                continue
            sentence = f"{said.topic}, offset {said.offset}, is of another shard's tenant, and has no copy there"
            self._findings.add("forwards", said.shard, sentence, step=said.step, topic=said.topic, offset=said.offset)

    def _copied(self, shard: int, topic: str, record: Rec, origin: str) -> None:
        copy = Copy(shard, topic, record.offset, _digest(record))
        astray = self._pairs.do(origin, copy)
        if astray is not None:
            self._compare(astray, copy)

    def _compare(self, astray: Astray, copy: Copy) -> None:
        if astray.digest != copy.digest:
            sentence = (
                f"{copy.topic}, shard {copy.shard}, offset {copy.offset}, is not what shard {astray.shard} had at"
            )
            self._findings.add(
                "forwards",
                copy.shard,
                f"{sentence} offset {astray.offset}",
                step=astray.step,
                topic=copy.topic,
                offset=copy.offset,
            )


def _digest(record: Rec) -> bytes:
    return blake2b(record.value or b"", digest_size=8).digest()
