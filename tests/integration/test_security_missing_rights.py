"""A scheduler that lacks a right ends and says which: a mistake to be corrected, not an outage to be waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streams import clock
from streams.admin.acls import Operation, Resource, Right, Role, apply, rights
from streams.admin.kafka import admin_client
from streams.admin.topics import Layout, ensure
from streams.kafka import scheduler_group
from tests.integration.processes import SchedulerProcess
from tests.integration.secured import ADMIN, SecuredKafka

WAIT_S: Final = 60.0
TO_BE_CORRECTED: Final = 2


def test_a_scheduler_without_a_right_does_not_wait_for_it(secured: SecuredKafka, prefix: str, tmp_path: Path) -> None:
    """Without the first it stood still, without the second it took its shards over and over: both without end."""
    kafka = secured.settings(ADMIN, prefix)
    admin = admin_client(kafka)
    ensure(admin, Layout(prefix=prefix))
    granted, group, state = rights(Role.SCHEDULER, kafka), scheduler_group(prefix), kafka.topics.state
    for verb, missing, reason in (
        ("join", Right(Resource.GROUP, group, Operation.READ), f"GroupAuthorizationFailedError('{group}')"),
        ("write", Right(Resource.TOPIC, state, Operation.WRITE), "writing a step: Failed to add partition(s)"),
        ("read", Right(Resource.TOPIC, state, Operation.READ), f"reading {state}: "),
    ):
        user = f"{prefix}cannot-{verb}"
        assert missing in granted
        apply(admin, f"User:{user}", [right for right in granted if right != missing])
        config = secured.config_file(user)
        with SchedulerProcess(
            tmp_path, verb, kafka=secured.servers, prefix=prefix, shards=1, kafka_config=config
        ) as scheduler:
            assert clock.wait_until(scheduler.poll, WAIT_S, what=f"the end of {user}") == TO_BE_CORRECTED
            [said] = [line for line in scheduler.log.read_text().splitlines() if "streams.app.failed" in line]
            assert reason in said
