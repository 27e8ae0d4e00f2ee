"""The story that the arithmetic is tried on: everything it speaks of happens once."""

from __future__ import annotations

from streams.core.policy import Leases, Policy, TenantRules, Window
from tests.integration.arithmetic import Evidence
from tests.story import Story
from tests.unit.app.fakes import NAMES, tenant_of

SHARDS = 2
LEASE_MS = 10_000
ACME, OTHER = tenant_of(0, SHARDS), tenant_of(1, SHARDS)  # ACME's shard is the one that the story is about
POLICY = Policy(
    name="story",
    window=Window(runs=8),
    leases=Leases(lease_ms=LEASE_MS, min_lease_ms=1, backoff_ms=100, max_backoff_ms=100, max_attempts=5),
    tenants={OTHER: TenantRules(max_queued_runs=1, max_runs_in_flight=1)},
)


def serve(story: Story) -> None:
    """Let whatever is dispatched succeed, until nothing is left."""
    reported: set[tuple[str, str, int]] = set()
    for _ in range(3):  # what is dispatched, and what that makes room for
        story.step(200)
        for each in story.dispatched():
            attempt = (each.tenant, each.run_id, each.attempt)
            if attempt not in reported and attempt != (ACME, "silent", 1):
                reported.add(attempt)
                story.report(*attempt, "succeeded", shard=each.shard, tokens=7)
    story.step()


def told() -> Evidence:
    """The story: runs that succeed, fail, fall silent, are cancelled, refused, doubled, unreadable and gone astray."""
    story = Story(POLICY, shards=SHARDS)
    for run_id in ("good", "good", "failing", "silent", "unwanted", "regretted"):
        story.ask(ACME, run_id)
    story.cancel(ACME, "unwanted")
    story.put(NAMES.requests, 0, None, b"{")
    story.put(NAMES.completions, 0, None, b"{")
    story.ask(OTHER, "astray")
    story.step()
    story.report(ACME, "good", 1, "succeeded", tokens=70)
    story.report(ACME, "failing", 1, "failed", tokens=40, retryable=True)
    story.cancel(ACME, "regretted")
    for run_id in ("crowd-1", "crowd-2"):  # one place is taken by the run that was astray, one may wait
        story.ask(OTHER, run_id, shard=1)
    story.step(4_000)
    story.report(ACME, "silent", 1, "heartbeat", tokens=5)
    story.step(1_000)
    story.take_over()
    story.step(60_000)  # an outage: nobody's lease runs
    story.report(ACME, "regretted", 1, "failed", tokens=30)
    story.step(LEASE_MS)  # the silent one is given up
    story.report(ACME, "silent", 1, "failed", tokens=90)  # and heard of after all
    story.step()
    serve(story)
    return story.evidence()
