import gc
import weakref
from collections.abc import Iterator

import pytest

from streams.app import collector


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    gc.enable()


def test_nothing_is_collected_while_anything_is_loaded() -> None:
    with collector.quiet():
        with collector.quiet():
            assert not gc.isenabled()
        assert not gc.isenabled()  # the other is still at it
    assert gc.isenabled()


def test_what_was_loaded_is_out_of_later_collections() -> None:
    with collector.quiet():
        rows = [[number] for number in range(10_000)]
    assert gc.get_freeze_count() >= len(rows)


def test_a_load_that_fails_leaves_the_collector_on() -> None:
    with pytest.raises(ValueError, match="bad"), collector.quiet():
        raise ValueError("bad")
    assert gc.isenabled()


class Circle:
    """Freed by the collector only, as a shard is."""

    def __init__(self) -> None:
        self.own = self


def loaded() -> "weakref.ref[Circle]":
    """What was loaded, frozen, and is held by nobody."""
    with collector.quiet():
        circle = Circle()
    return weakref.ref(circle)


def test_what_was_dropped_is_freed_before_the_next_load() -> None:
    """It was out of all collections for good: every load of a shard that was there before leaked the former one."""
    former = loaded()
    collector.drop()
    with collector.quiet():
        assert former() is None


def test_what_was_dropped_is_freed_by_a_sweep_unless_something_is_loaded() -> None:
    former = loaded()
    collector.drop()
    with collector.quiet():
        pass
    another = loaded()
    collector.drop()
    assert (former(), another() is None) == (None, False)
    collector.sweep()
    assert another() is None
    assert gc.get_freeze_count() > 0  # what lives is still out of later collections


def test_a_sweep_waits_for_nobody() -> None:
    former = loaded()
    with collector.quiet():
        collector.drop()
        collector.sweep()
        assert former() is not None
    collector.sweep()
    assert former() is None


def test_what_a_load_that_failed_has_made_is_freed() -> None:
    """A shard that cannot be read is looked at twice a minute."""
    made: list[weakref.ref[Circle]] = []

    def load() -> None:
        with collector.quiet():
            circle = Circle()
            made.append(weakref.ref(circle))
            raise ValueError("bad")

    # Another shard is loaded meanwhile, and what is there at its end is frozen.
    with collector.quiet(), pytest.raises(ValueError, match="bad"):
        load()
    collector.sweep()
    assert made[0]() is None
