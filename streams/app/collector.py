"""The garbage collector, kept from walking over a shard's rows again and again.

A shard holds up to a million long-lived objects that reference counting frees when their time comes. A full
collection of them stops every thread for a second, and while they are loaded it would come again and again.
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


@contextmanager
def quiet() -> Iterator[None]:
    """While rows are loaded: collect nothing; afterwards take what is there out of all later collections."""
    global _loading  # noqa: PLW0603 - there is one collector in a process, and several threads that load
    with _LOCK:
        _loading += 1
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            _loading -= 1
            if _loading == 0:
                gc.freeze()
                gc.set_threshold(_YOUNG, 20, 100)
                gc.enable()
