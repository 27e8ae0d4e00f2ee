"""Free ports."""

import socket

import pytest

from streams.errors import StartFailed
from streams.local import ports


def test_they_are_different_and_free() -> None:
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert all(ports.FIRST <= port < ports.LAST and ports.is_free(port) for port in found)


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind((ports.LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.answers(port)
    assert not ports.answers(port)


def test_none_left_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda _port: False)
    with pytest.raises(StartFailed, match="no 2 free ports"):
        ports.free_ports(2)
