from __future__ import annotations

import pytest

from tests.unit.client.fakes import Clock


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Monotonic time stands still until the test moves it."""
    time = Clock()
    monkeypatch.setattr("streams.clock.monotonic", lambda: time.now_s)
    return time
