"""What can only be done to the core that is interpreted: `make compiled` runs the same tests on machine code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import ModuleType
from unittest.mock import patch

import pytest

from streams.bench.core import is_compiled

interpreted = pytest.mark.skipif(is_compiled(), reason="compiled code shows neither its annotations nor its calls")


def patched(module: ModuleType, constant: str, value: object) -> AbstractContextManager[object]:
    """Give a constant of the core another value for a while. Compiled code keeps its own: the test is skipped there."""
    if is_compiled():
        pytest.skip("the constants of compiled code cannot be changed")
    return patch.object(module, constant, value)
