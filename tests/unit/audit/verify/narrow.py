"""Topics that take less than they did, a policy that removes a tenant, and a backlog that gives way."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

from streams.app.step import Stepper
from streams.audit.recording import MemoryRecording
from streams.core.inputs import Undeliverable
from streams.core.policy import Limits
from streams.intake import Reader
from streams.wire import MAX_MESSAGE_BYTES
from tests.recorded import Recorder, _Owner, first_policy
from tests.unit.app.fakes import NAMES

LARGEST: Final = 30  # bytes of a body: one that says max_tokens has more


class Small:
    """The limits of topics that take little."""

    largest_body: Final = LARGEST

    def of(self, _topic: str) -> int:
        return MAX_MESSAGE_BYTES


class Narrow(Recorder):
    """Every owner finds that some runs, which were let in, fit no more."""

    def _take_over(self, shard: int) -> _Owner:
        owner = super()._take_over(shard)
        fits_no_more = [Undeliverable(tenant, run_id, 900, 800) for tenant, run_id in self._recent[-4:]]
        owner.stepper = Stepper(
            owner.stepper.core,
            owner.stepper.positions,
            self._writers[shard],
            Reader(NAMES, shard, self.shards, Small()),
            shard=shard,
            state=owner.stepper._state,
            undeliverable=fits_no_more,
        )
        return owner


def narrow(seed: int = 2) -> MemoryRecording:
    """Return what is recorded of one shard."""
    recorder = Narrow(random.Random(seed), 1, 5, abort_chance=0.0)
    first = replace(first_policy(5), limits=Limits(max_queued_runs=12, overload="drop_longest"))
    named = {name: rules for name, rules in first.tenants.items() if name != "t0"}
    recorder.state_policy(first)
    for tick in range(90):
        if tick == 45:
            recorder.state_policy(replace(first, tenants=named, closed=True, on_removal="reject"))
        if tick % 9 == 0:
            recorder.change_owner()
        recorder.file()
        recorder.file()
        recorder.tick()
    return recorder.recording
