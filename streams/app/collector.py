"""The garbage collector, kept from walking over a shard's rows again and again.

A shard holds up to a million long-lived objects that reference counting frees when their time comes. A full
collection of them stops every thread for a second, and while they are loaded it would come again and again.

A shard that is lost or loaded anew goes as a whole, and its objects stand in circles that only the collector frees:
whoever lets go of one says so, and it is freed before the next load or by `sweep`.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LOCK: Final = threading.Lock()
_YOUNG: Final = 50_000  # objects; Python's default of 700 means a collection per step
_loading = 0
_dropped = False  # since the last sweep


@contextmanager
def quiet() -> Iterator[None]:
    """While rows are loaded: collect nothing; afterwards take what is there out of all later collections."""
    global _loading  # noqa: PLW0603 - there is one collector in a process, and several threads that load
    with _LOCK:
        if _loading == 0:
            _free_dropped()  # first: a shard that is loaded anew is not to be in memory twice
        _loading += 1
        gc.disable()
    try:
        yield
    except BaseException:
        drop()  # what was made of the rows so far
        raise
    finally:
        with _LOCK:
            _loading -= 1
            if _loading == 0:
                gc.freeze()
                gc.set_threshold(_YOUNG, 20, 100)
                gc.enable()


def drop() -> None:
    """Say that nobody holds a shard any more."""
    global _dropped  # noqa: PLW0603 - as above
    _dropped = True


def sweep() -> None:
    """Free what was dropped; nothing if that is nothing, or if rows are being loaded: then the next load does it.

    Stops every thread for about a second per million runs in memory.
    """
    with _LOCK:
        if _loading == 0:
            _free_dropped()


def _free_dropped() -> None:
    global _dropped  # noqa: PLW0603 - as above
    if _dropped:
        _dropped = False
        gc.unfreeze()  # what was taken out of all collections would never be freed
        gc.collect()
        gc.freeze()
