"""A tenant that has work and is served no more: of what its next run costs, only its row tells."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

from streams.audit.recording import MemoryRecording
from streams.audit.verify import Report, verify
from streams.core.policy import TenantRules
from tests.recorded import Recorder, first_policy
from tests.unit.audit.verify.tampering import records, restated

STARVED = "t0"
INTERVAL_MS = 10_000


class Silenced(Recorder):
    """Its first tenant asks for nothing more, at some time."""

    silent = False

    def _request(self, tenant: str) -> bytes:
        return super()._request("t1" if self.silent else tenant)


@cache
def starving() -> MemoryRecording:
    """One shard in which a tenant with work was paused; both topics say that it was not, and the chain is right."""
    recorder = Silenced(random.Random(1), 1, 3, abort_chance=0.0)
    plain = replace(first_policy(3), tenants={f"t{number}": TenantRules(weight=1) for number in range(3)})
    recorder.state_policy(plain)
    for tick in range(600):
        if tick == 20:
            paused = dict(plain.tenants) | {STARVED: TenantRules(weight=1, paused=True)}
            recorder.silent = True
            recorder.state_policy(replace(plain, tenants=paused))
        for _ in range(3):
            recorder.file()
        recorder.tick()
    [_, stated] = records(recorder.recording, "policy", 0)
    return restated(recorder.recording, 0, stated.offset, lambda policy: policy["tenants"][STARVED].pop("paused"))


def shares(report: Report) -> list[str]:
    return [each.sentence for each in report.problems if each.check == "shares"]


def test_it_is_found_by_what_the_others_got_meanwhile() -> None:
    found = shares(verify(starving(), interval_ms=INTERVAL_MS))
    assert found
    assert any(f"{STARVED} got 0 of" in each for each in found)


def test_without_the_rows_of_its_end_it_cannot_be_judged() -> None:
    topics = {place: own for place, own in starving().topics.items() if place[0] != "state"}
    assert shares(verify(replace(starving(), topics=topics), interval_ms=INTERVAL_MS)) == []
