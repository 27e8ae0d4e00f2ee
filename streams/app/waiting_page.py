"""Answers `/healthz` and `/readyz` while the process waits for Kafka, before there is an app to answer."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Final

_STATUSES: Final = {"/healthz": HTTPStatus.OK, "/readyz": HTTPStatus.SERVICE_UNAVAILABLE}
_BODY: Final = json.dumps({"status": "waiting for Kafka"}).encode()


class _Page(BaseHTTPRequestHandler):
    timeout = 5.0  # for a request to come in: nobody can hold a thread for longer

    def do_GET(self) -> None:
        status = _STATUSES.get(self.path, HTTPStatus.NOT_FOUND)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing: probes come every few seconds."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # the app wants the port now

    def server_bind(self) -> None:
        """Bind; the stock server would ask the name service for its own name first."""
        TCPServer.server_bind(self)


class _Server6(_Server):
    address_family = socket.AF_INET6


@contextmanager
def waiting_page(host: str, port: int | None) -> Iterator[None]:
    """Serve the page while the block runs; nothing if there is no port. Raises `OSError` for one that is taken."""
    if port is None:
        yield
        return
    kind = _Server6 if ":" in host else _Server
    with kind((host, port), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
