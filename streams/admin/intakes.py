"""Intake topics of tenants (`streams.gate`): created when a tenant gets one, and looked after like the others."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka.admin import AdminClient

from streams.admin.kafka import look
from streams.admin.topics import Plan, Wanted, apply, describe, plan, replicas
from streams.wire import INTAKE_CONFIGS, intake_topic


def wanted_intakes(
    prefix: str, tenants: Iterable[str], brokers: int, replication: int | None = None
) -> tuple[Wanted, ...]:
    """Return the topics as they should be. Raises `BadRecord` for a tenant that cannot have one, `ConfigError`.

    One partition each: a tenant's records keep their order, so that a cancel does not overtake its run.
    """
    number, insync = replicas(replication, brokers)
    topics = dict.fromkeys(intake_topic(prefix, tenant) for tenant in tenants)
    return tuple(Wanted(topic, 1, number, {**INTAKE_CONFIGS, **insync}) for topic in topics)


def ensure_intakes(
    admin: AdminClient, prefix: str, tenants: Iterable[str], replication: int | None = None
) -> tuple[tuple[Wanted, ...], Plan]:
    """Make the topics as they should be; return them, and what was done. Raises as above, and as `apply` does."""
    topics = wanted_intakes(prefix, tenants, look(admin).brokers, replication)
    todo = plan(describe(admin, [topic.name for topic in topics]), topics)
    apply(admin, todo)
    return topics, todo
