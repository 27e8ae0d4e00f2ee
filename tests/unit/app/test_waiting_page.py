from __future__ import annotations

import http.client
import socket
from contextlib import closing

import pytest

from streams.app.waiting_page import waiting_page
from streams.local.ports import LOOPBACK, free_ports


def ask(port: int, path: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=5)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()


def test_the_process_lives_and_is_not_ready() -> None:
    (port,) = free_ports(1)
    with waiting_page(LOOPBACK, port):
        assert ask(port, "/healthz") == (200, b'{"status": "waiting for Kafka"}')
        assert ask(port, "/readyz")[0] == 503
        assert ask(port, "/else")[0] == 404


def test_the_port_is_free_again_at_once() -> None:
    (port,) = free_ports(1)
    with waiting_page(LOOPBACK, port):
        ask(port, "/healthz")
    with socket.create_server((LOOPBACK, port)):
        pass


def test_a_port_that_is_taken_is_an_error() -> None:
    with (
        socket.create_server((LOOPBACK, 0)) as taken,
        pytest.raises(OSError, match="in use"),
        waiting_page(LOOPBACK, taken.getsockname()[1]),
    ):
        pass


def test_without_a_port_nothing_is_served() -> None:
    with waiting_page(LOOPBACK, None):
        pass
