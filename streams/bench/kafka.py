"""The Kafka that a benchmark measures with: one that is given, or a local one while it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def some_kafka(servers: str | None) -> Iterator[str]:
    """Give its bootstrap servers. None: one is started, with all that makes it fast."""
    if servers is not None:
        yield servers
        return
    from streams.local import LocalKafka  # noqa: PLC0415 - only this needs the `local` extra

    with LocalKafka(heap_mb=512, full_jit=True) as local:
        yield local.bootstrap
