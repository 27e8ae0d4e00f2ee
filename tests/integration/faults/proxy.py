"""A TCP proxy in front of each broker: the network between schedulers and Kafka, which can be made to fail.

Brokers advertise the proxies' ports on a listener of its own (`LocalKafka(listeners=..., advertised=...)`), so whoever
comes in by that listener stays on it. What was done is counted: a fault that met no connection is none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from streams.local.ports import LOOPBACK

T = TypeVar("T")

_CHUNK: Final = 64 * 1024
_ANSWER_S: Final = 10.0


@dataclass
class Damage:
    """What has been done so far."""

    cut: int = 0  # connections
    refused: int = 0  # connections
    delayed: int = 0  # chunks
    held: int = 0  # chunks that waited for the silence to end


@dataclass(eq=False)
class _Link:
    """One connection from end to end."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter

    def abort(self) -> None:
        self.near.transport.abort()
        self.far.transport.abort()


class Network:
    """All proxies, on a thread of their own. The verbs are for any other thread, and act on all proxies at once."""

    def __init__(self, brokers: int) -> None:
        self.ports: list[int] = []  # to be advertised; in the order of the brokers
        self.damage: Final = Damage()
        self._brokers = brokers
        self._targets: list[int] = []
        self._links: set[_Link] = set()
        self._refusing = False
        self._delay_s = 0.0
        self._talking = asyncio.Event()
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lead_to(self, bootstrap: str) -> None:
        """Say which brokers the proxies are in front of, once these have their ports."""
        self._targets = [int(address.rpartition(":")[2]) for address in bootstrap.split(",")]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{LOOPBACK}:{port}" for port in self.ports)

    # --- the faults

    def cut(self) -> int:
        """Break off every connection, and return how many there were."""
        return self._call(self._cut)

    def refuse(self) -> None:
        """Let nobody in, and nobody stay."""
        self._refusing = True
        self.cut()

    def delay(self, seconds: float) -> None:
        """Keep every chunk, either way, for so long."""
        self._delay_s = seconds

    def silence(self) -> None:
        """Keep every connection open and let nothing through: what a broken switch does, and no reset tells of it."""
        self._call(self._talking.clear)

    def heal(self) -> None:
        self._refusing = False
        self._delay_s = 0.0
        self._call(self._talking.set)

    # --- on the loop

    async def _open(self) -> None:
        self._talking.set()
        self._servers = []
        for number in range(self._brokers):
            server = await asyncio.start_server(self._serving(number), LOOPBACK, 0)
            self._servers.append(server)
            self.ports.append(server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        self._cut()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _serving(
        self, number: int
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._refusing:
                self.damage.refused += 1
                writer.transport.abort()
                return
            try:
                far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self._targets[number])
            except OSError:  # the broker is down
                writer.transport.abort()
                return
            link = _Link(writer, far_writer)
            self._links.add(link)
            pumps = [asyncio.ensure_future(self._pump(*ends)) for ends in ((reader, far_writer), (far_reader, writer))]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
                self._links.discard(link)
                link.abort()

        return serve

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            if not self._talking.is_set():
                self.damage.held += 1
                await self._talking.wait()
            if self._delay_s:
                self.damage.delayed += 1
                await asyncio.sleep(self._delay_s)
            writer.write(chunk)
            await writer.drain()

    def _cut(self) -> int:
        number = len(self._links)
        for link in self._links:
            link.abort()
        self.damage.cut += number
        return number

    # --- from other threads

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_ANSWER_S)

    def _call(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return self._do(call())
