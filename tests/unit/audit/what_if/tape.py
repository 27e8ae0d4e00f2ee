"""A record made by hand: requests, dispatches, reports and steps of a shard at stated moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streams.audit.recording import MemoryRecording, Rec
from streams.core.effects import Dispatch, Effects, Rejection, Settlement
from streams.core.inputs import STARTED, SUCCEEDED
from streams.core.policy import Policy, Window
from streams.wire import (
    AppliedPolicy,
    InputRange,
    encode_cancel,
    encode_completion,
    encode_dispatch,
    encode_journal,
    encode_request,
)

BEGIN_MS: Final = 1_700_000_000_000
POLICY: Final = Policy(name="plain", quantum=100, window=Window(runs=2))


class Tape:
    """Moments are ms after `BEGIN_MS`. A step takes in whatever was written since the last one."""

    def __init__(self, policy: Policy = POLICY, *, recording: MemoryRecording | None = None, shard: int = 0) -> None:
        self.recording = recording or MemoryRecording()
        self.shard = shard
        self._read = {"completions": 0, "requests": 0}
        self._seq = 0
        self._steps = 0
        self._policies = 0
        self.step(-1_000, policy=policy)

    def request(self, at_ms: int, run_id: str, *, tenant: str = "a", **more: object) -> int:
        """Write a request and return its offset."""
        value = encode_request(tenant=tenant, run_id=run_id, workflow="work", **more)  # type: ignore[arg-type]
        return self.write("requests", at_ms, value)

    def cancel(self, at_ms: int, run_id: str, *, tenant: str = "a") -> None:
        self.write("requests", at_ms, encode_cancel(tenant=tenant, run_id=run_id))

    def report(
        self,
        at_ms: int,
        run_id: str,
        status: str,
        *,
        tenant: str = "a",
        attempt: int = 1,
        tokens: int | None = None,
        retryable: bool = False,
    ) -> None:
        """Write what a worker says."""
        value = encode_completion(
            tenant=tenant, run_id=run_id, attempt=attempt, status=status, tokens=tokens, retryable=retryable
        )
        self.write("completions", at_ms, value)

    def step(
        self,
        at_ms: int,
        *,
        hands_out: Sequence[str | tuple[str, int]] = (),
        settles: Sequence[Settlement] = (),
        rejects: Sequence[tuple[str, str, int]] = (),
        policy: Policy | None = None,
        tenant: str = "a",
    ) -> None:
        """Write a step: runs handed out, or (run, attempt); settlements; (run, reason, position) rejected."""
        self._steps += 1
        effects = Effects(self._steps, BEGIN_MS + at_ms)
        for each in hands_out:
            run_id, attempt = (each, 1) if isinstance(each, str) else each
            self._seq += 1
            dispatch = Dispatch(
                self._seq, tenant, run_id, "work", "default", attempt, 50, 60_000, None, b"", 0, 1, 100, 50
            )
            effects.dispatches.append(dispatch)
            self.write("dispatch", at_ms, encode_dispatch(dispatch, self.shard, self._steps, 1))
        effects.settlements += settles
        effects.rejections += [
            Rejection(tenant, run_id, reason, "", None, None, None, position, b"")
            for run_id, reason, position in rejects
        ]
        applied = []
        if policy is not None:
            applied.append(AppliedPolicy(self._policies, "somebody", 0, policy))
            self._policies += 1
        value = encode_journal(
            effects,
            shard=self.shard,
            epoch=1,
            policy_version=self._policies - 1,
            inputs=[*(InputRange("policy", each.offset, each.offset) for each in applied), *self._ranges()],
            policies=applied,
        )
        self.write("journal", at_ms, value)

    def served(self, at_ms: int, run_id: str, *, tokens: int = 50, lasts_ms: int = 100, tenant: str = "a") -> None:
        """Let a run be filed, handed out, begun and done without any delay but its own."""
        self.request(at_ms, run_id, tenant=tenant)
        self.serve_filed(at_ms, run_id, tokens=tokens, lasts_ms=lasts_ms, tenant=tenant)

    def serve_filed(self, at_ms: int, run_id: str, *, tokens: int = 50, lasts_ms: int = 100, tenant: str = "a") -> None:
        """The same of one that was filed before."""
        self.step(at_ms, hands_out=[run_id], tenant=tenant)
        self.report(at_ms, run_id, STARTED, tenant=tenant)
        self.report(at_ms + lasts_ms, run_id, SUCCEEDED, tokens=tokens, tenant=tenant)
        self.step(at_ms + lasts_ms, settles=[settled(run_id, tokens=tokens, tenant=tenant)])

    @staticmethod
    def ms(at_ms: int) -> int:
        """Return a moment as it stands in a request: ms since the epoch."""
        return BEGIN_MS + at_ms

    def write(self, topic: str, at_ms: int, value: bytes) -> int:
        records = self.recording.topics.setdefault((topic, self.shard), [])
        records.append(Rec(len(records), BEGIN_MS + at_ms, b"key", value))
        return len(records) - 1

    def _ranges(self) -> list[InputRange]:
        ranges = []
        for topic, first in self._read.items():
            end = len(self.recording.topics.get((topic, self.shard), []))
            if end > first:
                ranges.append(InputRange(topic, first, end - 1))
            self._read[topic] = end
        return ranges


def settled(
    run_id: str, *, tokens: int, outcome: str = SUCCEEDED, attempt: int = 1, charged: int = 50, tenant: str = "a"
) -> Settlement:
    return Settlement(tenant, run_id, attempt, outcome, charged, tokens, reported=True)
