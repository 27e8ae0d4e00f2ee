"""A real Kafka for the integration tests: one node for all of them, a topic prefix for each.

If it cannot be started the tests fail; they are never skipped.
"""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.local import LocalKafka
from tests.integration.secured import SecuredKafka, secured_kafka

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder is an integration test."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def kafka() -> Iterator[LocalKafka]:
    """The shared node. Do not kill it: that is what `mortal` is for."""
    with LocalKafka() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def mortal_of_module() -> Iterator[LocalKafka]:
    """Ends a transaction soon after its timeout; by default that takes 10 s more."""
    with LocalKafka(settings={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}) as cluster:
        yield cluster


@pytest.fixture
def mortal(mortal_of_module: LocalKafka) -> LocalKafka:
    """A node that may be killed, one for the tests of a file: up, whatever the test before has left."""
    if not mortal_of_module.pids:
        mortal_of_module.start(1)
    return mortal_of_module


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """The shared node that asks for TLS, a password, and rights. Do not kill it either."""
    with secured_kafka(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A topic and group prefix of the test's own, ending in a dot; it tells the test's name in Kafka's log."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:60]
    return f"{name}-{uuid.uuid4().hex[:8]}."
