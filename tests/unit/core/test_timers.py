"""Due times: put off, ended, doubled, and never piling up."""

from __future__ import annotations

from streams.core.timers import Timers


class Clockwork:
    """Items by name, each with the time it waits for."""

    def __init__(self) -> None:
        self.due: dict[str, int] = {}
        self.timers: Timers[str] = Timers(self.due.get)

    def set(self, name: str, due: int, tie: int = 0) -> None:
        self.due[name] = due
        self.timers.set(due, tie, name)

    def pop(self, now: int) -> list[str]:
        popped = []
        for name in self.timers.pop_due(now):
            popped.append(name)
            del self.due[name]
        return popped


def test_nothing_waits() -> None:
    clockwork = Clockwork()
    assert clockwork.timers.next_due() is None
    assert clockwork.pop(10) == []


def test_what_is_due_comes_in_order_of_time_then_tie() -> None:
    clockwork = Clockwork()
    clockwork.set("late", 30)
    clockwork.set("second", 10, tie=2)
    clockwork.set("first", 10, tie=1)
    assert clockwork.timers.next_due() == 10
    assert clockwork.pop(20) == ["first", "second"]
    assert clockwork.timers.next_due() == 30


def test_an_item_that_no_longer_waits_is_dropped() -> None:
    clockwork = Clockwork()
    clockwork.set("gone", 10)
    clockwork.set("here", 20, tie=1)
    del clockwork.due["gone"]
    assert clockwork.timers.next_due() == 20


def test_an_item_that_was_put_off_comes_at_its_new_time() -> None:
    clockwork = Clockwork()
    clockwork.set("run", 10)
    clockwork.due["run"] = 50
    assert clockwork.pop(49) == []
    assert clockwork.timers.next_due() == 50
    assert clockwork.pop(50) == ["run"]


def test_an_item_due_earlier_than_its_entry_has_an_entry_of_its_own() -> None:
    clockwork = Clockwork()
    clockwork.set("run", 50)
    clockwork.set("run", 10)
    assert clockwork.pop(60) == ["run"]
    assert clockwork.timers.next_due() is None


def test_tidying_keeps_the_living_and_drops_the_dead() -> None:
    clockwork = Clockwork()
    for number in range(2_000):
        clockwork.set(f"run{number}", 1_000 + number, tie=number)
    for number in range(3, 2_000):
        del clockwork.due[f"run{number}"]
    clockwork.due["run1"] = 9_000
    clockwork.timers.tidy(live=3)
    assert len(clockwork.timers._heap) == 3
    assert clockwork.pop(10_000) == ["run0", "run2", "run1"]


def test_a_few_dead_entries_are_left_alone() -> None:
    clockwork = Clockwork()
    for number in range(100):
        clockwork.set(f"run{number}", number, tie=number)
    clockwork.due.clear()
    clockwork.timers.tidy(live=0)
    assert len(clockwork.timers._heap) == 100
