"""Free loopback ports.

Taken below the range from which systems number outgoing connections (Linux: from 32768), or the
port of a node that is down could be given to any client before the node comes back. Between the
check and the node's own bind another process may still take one: a cluster that finds its port
taken starts again with others.
"""

import secrets
import socket
from contextlib import closing
from typing import Final

from streams.errors import StartFailed

LOOPBACK: Final = "127.0.0.1"
FIRST: Final = 20_000
LAST: Final = 32_000
_TRIES: Final = 1_000


def free_ports(count: int) -> list[int]:
    """`count` different ports that nobody listens on now."""
    found: list[int] = []
    for _ in range(_TRIES):
        if len(found) == count:
            return found
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if port not in found and is_free(port):
            found.append(port)
    raise StartFailed(f"no {count} free ports between {FIRST} and {LAST} on {LOOPBACK}: end what holds them")


def is_free(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        # As the broker does: a port in TIME_WAIT can be listened on.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether somebody accepts connections there."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
