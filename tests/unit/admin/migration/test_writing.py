"""What each failure of a migration's transaction means for whoever runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from streams.admin.migration import writing
from streams.admin.migration.writing import Writer
from streams.errors import FairstreamError, OwnershipLost, StepAborted, Unavailable
from streams.kafka import KafkaSettings
from streams.transactions import Meaning, Out


class FakeTransactions:
    failure: FairstreamError

    def __init__(self, *_: object, meaning: Meaning, **_more: object) -> None:
        self.meaning = meaning

    def write(self, _records: list[Out]) -> None:
        raise self.failure


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    monkeypatch.setattr(writing, "Transactions", FakeTransactions)
    monkeypatch.setattr(writing, "open_producer", lambda *_, **_more: None)
    return lambda: Writer(KafkaSettings(servers="nowhere:1"), "b-migration")


def test_what_another_try_may_mend_is_for_a_supervisor_to_try(make: Callable[[], Any]) -> None:
    FakeTransactions.failure = StepAborted("nothing was written: the broker went away")
    with pytest.raises(Unavailable, match="the broker went away; run it again"):
        make().write([])
    FakeTransactions.failure = OwnershipLost("fenced")
    with pytest.raises(OwnershipLost):
        make().write([])


def test_who_has_taken_over_is_guessed(make: Callable[[], Any]) -> None:
    failure = make()._transactions.meaning(KafkaError(KafkaError._FENCED, fatal=True), "writing")
    assert isinstance(failure, OwnershipLost)
    assert "is another migration, or a scheduler, running?" in str(failure)
