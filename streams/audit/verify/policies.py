"""The policies that the journal keeps against those of the policy topic, as far as compaction has left them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core.policy import Policy
from streams.core.policy_check import policy_document
from streams.core.state import BUILT_IN
from streams.errors import BadRecord, visible
from streams.wire import decode_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streams.audit.recording import Recording
    from streams.audit.verify.findings import Findings
    from streams.wire import AppliedPolicy, JournalEntry, PolicyChange

_SHOWN: Final = 3  # of the differences between two policies
_LATE_MS: Final = 60_000  # a scheduler that reads its topics at all knows a policy long before


class Policies:
    """Of all shards. Holds what the policy topic holds: one policy of each name, beside what is not compacted yet."""

    def __init__(self, recording: Recording, findings: Findings) -> None:
        self._findings: Final = findings
        self._stated: Final[dict[int, PolicyChange]] = {}
        self._written_ms: Final[list[tuple[int, int]]] = []  # offset and time of each that can be read, in order
        self._late: Final[set[tuple[int, int]]] = set()  # shard and offset of what was said to be late
        self._first: Final = recording.bounds("policy", 0)[0]
        for record in recording.read("policy", 0):
            if record.value is None:
                continue
            try:
                self._stated[record.offset] = decode_policy(record.value)
            except BadRecord:
                continue  # the shards have passed it over as well
            self._written_ms.append((record.offset, record.timestamp))

    def apply(self, entry: JournalEntry, missed: int | None) -> Policy | None:
        """Return the policy in force after a step's policies; None: it is not known.

        `missed` is the version in force before; None: not known.
        """
        applied = [each.first for each in entry.inputs if each.topic == "policy"]
        kept = {each.offset: each for each in entry.policies}
        if entry.core is not None and list(kept) != applied:
            self._wrong(entry, f"the journal's inputs name the policies {applied}, and it keeps {list(kept)}")
        for each in kept.values():
            self._compare(entry, each)
        if applied and missed is not None:
            for offset in range(missed + 1, max(applied)):
                if offset in self._stated and offset not in applied:
                    self._wrong(entry, f"the policy at offset {offset} was passed over")
        version = max(applied, default=entry.policy_version if missed is None else missed)
        if version != entry.policy_version:
            self._wrong(entry, f"version {entry.policy_version} is in force by the journal, {version} by its inputs")
        if version == BUILT_IN:
            return Policy()
        if version in kept:
            return kept[version].policy
        stated = self._stated.get(version)
        return stated.policy if stated is not None else None

    def hold_time(self, entry: JournalEntry) -> None:
        """Hold a step against the policies that were stated long before, and were not in force then."""
        if not self._written_ms or self._written_ms[-1][0] <= entry.policy_version:
            return
        for offset, at_ms in self._written_ms:
            late_ms = entry.now_ms - at_ms
            if offset > entry.policy_version and late_ms > _LATE_MS and (entry.shard, offset) not in self._late:
                self._late.add((entry.shard, offset))
                sentence = f"the policy at offset {offset} is not in force {late_ms / 1000:,.0f} s after it was stated"
                self._wrong(entry, sentence, offset)

    def _compare(self, entry: JournalEntry, kept: AppliedPolicy) -> None:
        """Hold the journal's copy of a policy against the topic's record."""
        self._findings.looked_at["policies"] += 1
        stated = self._stated.get(kept.offset)
        if stated is None:  # replaced since then, and compacted away
            self._findings.looked_at["policies that the policy topic has no more"] += 1
            return
        where = f"the policy at offset {kept.offset}"
        if (kept.author, kept.applied_ms) != (stated.author, stated.applied_ms):
            mine, theirs = (
                f"{visible(kept.author)} at {kept.applied_ms}",
                f"{visible(stated.author)} at {stated.applied_ms}",
            )
            self._wrong(entry, f"{where} was stated by {mine} in the journal, by {theirs} in the policy topic")
        differences = [*_differences(policy_document(kept.policy), policy_document(stated.policy), "")]
        if differences:
            more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
            self._wrong(entry, f"{where}: {'; '.join(differences[:_SHOWN])}{more}", kept.offset)

    def _wrong(self, entry: JournalEntry, sentence: str, offset: int | None = None) -> None:
        topic = "journal" if offset is None else "policy"
        self._findings.add("policies", entry.shard, sentence, step=entry.step, topic=topic, offset=offset)


def _differences(kept: object, stated: object, where: str) -> Iterator[str]:
    """Yield where two documents differ, with both sides."""
    if isinstance(kept, dict) and isinstance(stated, dict):
        yield from _members(kept, stated, where)
    elif kept != stated:
        yield f"{visible(where)} is {kept!r} in the journal, {stated!r} in the policy topic"


def _members(kept: Mapping[str, object], stated: Mapping[str, object], where: str) -> Iterator[str]:
    for name in sorted(kept.keys() | stated.keys()):
        yield from _differences(kept.get(name), stated.get(name), f"{where}.{name}".removeprefix("."))
