"""What a worker opens at its start, while not all of Kafka is there."""

import pytest

from streams.client import waiting
from streams.client.waiting import open_when_up
from streams.errors import ConfigError, Unavailable


class Door:
    """Opens at the given try; before it, it raises."""

    def __init__(self, opens_at: int, error: Exception) -> None:
        self.tries = 0
        self._opens_at = opens_at
        self._error = error

    def open(self) -> str:
        self.tries += 1
        if self.tries < self._opens_at:
            raise self._error
        return "open"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_AGAIN_S", 0.0)


def test_what_is_not_there_yet_is_tried_again_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    door = Door(4, Unavailable("no leader"))
    assert open_when_up(door.open, give_up=lambda: False) == "open"
    assert door.tries == 4
    assert caplog.text.count("no leader") == 1


def test_who_is_told_to_stop_gives_up() -> None:
    door = Door(10, Unavailable())
    assert open_when_up(door.open, give_up=lambda: door.tries == 2) is None
    assert door.tries == 2


def test_what_waiting_cannot_mend_is_raised() -> None:
    with pytest.raises(ConfigError, match="no such topic"):
        open_when_up(Door(2, ConfigError("no such topic")).open, give_up=lambda: False)
