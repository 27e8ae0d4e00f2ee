"""What can only be seen in the core that is interpreted: `make compiled` runs the same tests on machine code."""

from __future__ import annotations

import pytest

from streams.bench.core import is_compiled

interpreted = pytest.mark.skipif(is_compiled(), reason="compiled code shows neither its annotations nor its calls")
