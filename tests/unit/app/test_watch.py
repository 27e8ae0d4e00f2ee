from __future__ import annotations

from collections.abc import Mapping

import pytest

from streams import clock
from streams.app.watch import KafkaWatch
from streams.errors import Unavailable

HERE = {"requests": "a", "state": "b"}


class Stage:
    """A watch over a Kafka that answers what it is told to, look by look."""

    def __init__(self, *answers: Mapping[str, str] | Exception) -> None:
        self.left = list(answers)
        self.changes = 0
        self.failures: list[BaseException] = []
        self.watch = KafkaWatch(
            "there:9092", self._ask, on_change=self._changed, on_failure=self.failures.append, look_s=0.001
        )

    def _ask(self) -> Mapping[str, str]:
        answer = self.left.pop(0)
        if not self.left:
            self.watch.close()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _changed(self) -> None:
        self.changes += 1

    def run(self) -> None:
        self.watch.run()


def test_an_outage_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    stage = Stage(HERE, *[Unavailable("no answer")] * 3, HERE, HERE)
    stage.run()
    assert [record.message.split()[0] for record in caplog.records] == [
        "streams.app.kafka_away",
        "streams.app.kafka_back",
    ]
    assert (stage.watch.away_s, stage.changes) == (0.0, 0)


def test_how_long_kafka_has_been_away_can_be_asked() -> None:
    stage = Stage(HERE, Unavailable("no answer"))
    stage.run()
    assert clock.wait_until(lambda: stage.watch.away_s, 5) > 0


@pytest.mark.parametrize("later", [{"requests": "a"}, {"requests": "a", "state": "c"}])
def test_a_topic_that_is_gone_or_made_anew_is_told(later: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(HERE, later, later, later)
    stage.run()
    assert stage.changes == 1
    assert "topics=['state']" in caplog.text


def test_a_topic_that_one_look_misses_is_not_gone() -> None:
    stage = Stage(HERE, {}, HERE, {"requests": "a"}, HERE)
    stage.run()
    assert stage.changes == 0


def test_a_topic_that_comes_back_is_told_too() -> None:
    stage = Stage({}, HERE, HERE)
    stage.run()
    assert stage.changes == 1


def test_a_watch_that_ends_by_an_error_is_heard_of() -> None:
    """Health would say for ever what was so at its last look."""
    bug = RuntimeError("a bug")
    stage = Stage(HERE, bug, HERE)
    stage.run()
    assert stage.failures == [bug]


def test_it_looks_at_once() -> None:
    """A topic that was made anew in the first seconds was taken for the one that had been there all the time."""
    stage = Stage(HERE)
    stage.watch._look_s = 600  # type: ignore[misc]
    stage.watch.start()
    clock.wait_until(lambda: not stage.left, 5, what="the first look")
