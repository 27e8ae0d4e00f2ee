import gc
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
