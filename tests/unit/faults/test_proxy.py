"""The network between schedulers and brokers fails as it is told to, and counts it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from streams import clock
from streams.local.ports import LOOPBACK
from tests.integration.faults.proxy import Network

WAIT_S = 10.0


class Echo(threading.Thread):
    """A broker that says what it hears."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.server = socket.create_server((LOOPBACK, 0))
        self.address = f"{LOOPBACK}:{self.server.getsockname()[1]}"

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.echo, args=(connection,), daemon=True).start()

    def echo(self, connection: socket.socket) -> None:
        with closing(connection):
            try:
                while heard := connection.recv(1024):
                    connection.sendall(heard)
            except OSError:
                return


@pytest.fixture
def network() -> Iterator[Network]:
    echo = Echo()
    echo.start()
    with Network(1) as made:
        made.lead_to(echo.address)
        yield made
    echo.server.shutdown(socket.SHUT_RDWR)
    echo.server.close()
    echo.join()


def connected(network: Network) -> socket.socket:
    found = socket.create_connection((LOOPBACK, network.ports[0]), WAIT_S)
    found.sendall(b"hello")
    assert found.recv(1024) == b"hello"
    return found


def is_cut(connection: socket.socket) -> bool:
    try:
        return connection.recv(1024) == b""
    except ConnectionResetError:
        return True


def test_what_is_whole_passes_everything_on(network: Network) -> None:
    with closing(connected(network)) as connection:
        connection.sendall(b"x" * 300_000)
        got = 0
        while got < 300_000:
            got += len(connection.recv(65_536))
    assert network.damage.cut == network.damage.delayed == network.damage.held == 0


def test_connections_are_cut(network: Network) -> None:
    with closing(connected(network)) as one, closing(connected(network)) as two:
        assert network.cut() == 2
        assert is_cut(one)
        assert is_cut(two)
    with closing(connected(network)):
        assert network.damage.cut == 2


def test_who_is_refused_comes_in_later(network: Network) -> None:
    with closing(connected(network)) as before:
        network.refuse()
        assert is_cut(before)
        with closing(socket.create_connection((LOOPBACK, network.ports[0]), WAIT_S)) as refused:
            assert is_cut(refused)
    assert network.damage.refused == 1
    network.heal()
    connected(network).close()


def test_a_silence_holds_what_is_said_until_it_ends(network: Network) -> None:
    with closing(connected(network)) as connection:
        network.silence()
        connection.sendall(b"anybody?")
        clock.wait_until(lambda: network.damage.held == 1, WAIT_S, what="a chunk that is held")
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.recv(1024)
        network.heal()
        connection.settimeout(WAIT_S)
        assert connection.recv(1024) == b"anybody?"


def test_chunks_are_delayed_either_way(network: Network) -> None:
    with closing(connected(network)) as connection:
        network.delay(0.05)
        begun = clock.monotonic()
        connection.sendall(b"slowly")
        assert connection.recv(1024) == b"slowly"
        assert clock.monotonic() - begun >= 0.1
    assert network.damage.delayed == 2
