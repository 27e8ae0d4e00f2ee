"""A deployment for one test: topics of its own on the shared Kafka, a policy, and schedulers when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streams.admin.kafka import admin_client
from streams.admin.policy import publish_policy
from streams.admin.topics import Layout, ensure
from streams.core.policy import Leases, Policy, Window
from streams.kafka import KafkaSettings
from streams.wire import PolicyChange, TopicNames, topic_names
from tests.integration.arithmetic import Evidence, gather, gather_when_drained, problems, problems_when_drained
from tests.integration.processes import SchedulerProcess

# Leases outlast every fault of a test: a lost attempt would be a second cause of a second dispatch.
LEASES: Final = Leases(lease_ms=3_600_000, backoff_ms=20, max_backoff_ms=100, max_attempts=5)


@dataclass(frozen=True)
class Deployment:
    """Where it is, and how to work with it."""

    servers: str
    prefix: str
    shards: int
    folder: Path

    @property
    def names(self) -> TopicNames:
        return topic_names(self.prefix)

    def scheduler(self, name: str = "scheduler", **settings: Any) -> SchedulerProcess:
        """A scheduler process, not started."""
        where = {"kafka": self.servers, "prefix": self.prefix, "shards": self.shards}
        return SchedulerProcess(self.folder, name, **{**where, **settings})

    def apply(self, policy: Policy) -> int:
        """Publish a policy; return its version."""
        change = PolicyChange(policy=policy, author="test", applied_ms=0)
        return publish_policy(KafkaSettings(servers=self.servers, prefix=self.prefix), change)

    def gather(self) -> Evidence:
        return gather(self.servers, self.prefix, self.shards)

    def prove(self, deadline_s: float = 60.0) -> Evidence:
        """Wait until everything is served, and prove that all is as it must be."""
        evidence = gather_when_drained(self.servers, self.prefix, self.shards, deadline_s)
        found = [*problems(evidence), *problems_when_drained(evidence)]
        assert not found, f"{len(found)} problems: {found[:20]}"
        return evidence


def deploy(
    servers: str, prefix: str, folder: Path, *, shards: int, window: int = 64, leases: Leases = LEASES
) -> Deployment:
    """Make the topics, and state a policy."""
    kafka = KafkaSettings(servers=servers, prefix=prefix)
    ensure(admin_client(kafka), Layout(shards=shards, dispatch_partitions=shards, prefix=prefix))
    made = Deployment(servers, prefix, shards, folder)
    made.apply(Policy(name="default", window=Window(runs=window), leases=leases))
    return made
