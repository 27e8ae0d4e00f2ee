from __future__ import annotations

import pytest

from streams import clock
from streams.app.shard_clock import ShardClock

HOUR_MS = 3_600_000


class Hands:
    """Both clocks, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_ms = 10 * HOUR_MS
        self.monotonic_ms = 500
        monkeypatch.setattr(clock, "now_ms", lambda: self.wall_ms)
        monkeypatch.setattr(clock, "monotonic", lambda: self.monotonic_ms / 1000)

    def pass_(self, ms: int) -> None:
        self.wall_ms += ms
        self.monotonic_ms += ms


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    return Hands(monkeypatch)


def test_it_is_the_wall_clock_s_time(hands: Hands) -> None:
    shard = ShardClock(0)
    for ms in (0, 1, 40, 7):
        hands.pass_(ms)
        assert shard.now_ms() == hands.wall_ms


def test_it_goes_forward_with_the_wall_clock(hands: Hands) -> None:
    shard = ShardClock(0)
    hands.wall_ms += HOUR_MS
    assert shard.now_ms() == 11 * HOUR_MS


def test_it_goes_on_when_the_wall_clock_goes_back(hands: Hands) -> None:
    shard = ShardClock(0)
    assert shard.now_ms() == 10 * HOUR_MS
    hands.wall_ms -= HOUR_MS
    for passed in range(1, 2_000):  # in many small steps: none of them may be lost to rounding
        hands.pass_(1)
        assert 0 <= 10 * HOUR_MS + passed - shard.now_ms() <= 1


def test_once_the_wall_clock_has_caught_up_it_is_followed_again(hands: Hands) -> None:
    shard = ShardClock(0)
    shard.now_ms()
    hands.wall_ms -= 50
    hands.pass_(20)
    assert shard.now_ms() == 10 * HOUR_MS + 20
    hands.wall_ms += 100
    assert shard.now_ms() == hands.wall_ms


def test_it_does_not_begin_before_the_last_step_and_does_not_stand_still_there(hands: Hands) -> None:
    shard = ShardClock(12 * HOUR_MS)
    assert shard.now_ms() == 12 * HOUR_MS
    hands.pass_(30)
    assert shard.now_ms() == 12 * HOUR_MS + 30
