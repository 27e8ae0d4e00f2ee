"""The verbs of harm: what can be done to a process or a broker, each with the proof that it was done.

A verb returns one sentence of what was seen afterwards (an exit code, a state, a new process id), and fails if it saw
anything else: a fault that did not happen proves nothing about what survives it.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Final

import psutil
from confluent_kafka import Producer

from streams import clock
from streams.local import LocalKafka
from tests.integration.processes import ChildProcess

KILLED: Final = -signal.SIGKILL
SEEN_S: Final = 10.0  # for a signal to have its effect on a busy machine
HALTED_S: Final = 60.0  # for a broker to write as much as it still can

_CHUNK: Final = 256 * 1024
_SEND_S: Final = 0.2
_LAST_WORDS: Final = 128 * 1024  # of a broker that cannot write any more, in its log
_HALTED: Final = b"Shutdown broker because all log dirs"


def kill(victim: ChildProcess) -> str:
    """`kill -9`."""
    pid = victim.pid
    assert victim.running, f"{victim.name} had ended with {victim.poll()} before it could be killed"
    victim.kill()
    assert victim.poll() == KILLED, f"{victim.name} ended with {victim.poll()}"
    assert not alive(pid), f"{victim.name}: process {pid} is still there"
    return f"process {pid} is gone, exit code {KILLED}"


def terminate(victim: ChildProcess) -> str:
    """SIGTERM, which a process must follow in time and with exit code 0."""
    pid = victim.pid
    code = victim.stop()
    assert code == 0, f"{victim.name} ended with {code} after SIGTERM"
    return f"process {pid} is gone, exit code 0"


def freeze(victim: ChildProcess) -> str:
    """SIGSTOP, until `thaw`."""
    victim.send(signal.SIGSTOP)
    clock.wait_until(lambda: is_frozen(victim), SEEN_S, what=f"{victim.name} stopped")
    return f"process {victim.pid} is stopped"


def thaw(victim: ChildProcess) -> str:
    """SIGCONT: what was a member is a zombie now, if it was frozen for long enough."""
    assert is_frozen(victim), f"{victim.name} was not stopped any more"
    victim.send(signal.SIGCONT)
    clock.wait_until(lambda: not is_frozen(victim), SEEN_S, what=f"{victim.name} going on")
    return f"process {victim.pid} goes on"


def kill_broker(kafka: LocalKafka, node: int) -> str:
    """`kill -9`; the data stays as it was at that instant."""
    pid = kafka.pids[node]
    kafka.kill(node)
    assert not alive(pid), f"broker {node}: process {pid} is still there"
    return f"broker {node}: process {pid} is gone"


def fill_disk(kafka: LocalKafka, node: int, topic: str) -> str:
    """Let no file of the broker grow beyond a limit, and let `topic` (a replica of which it has) grow beyond it.

    Kafka has no quota on disk; the system has a limit on the size of the files that a process writes (Linux alone can
    set that of another process). To the broker it is what a full disk is: it cannot append, and halts. The limit leaves
    it room for saying so.
    """
    assert sys.platform == "linux", "only Linux can limit another process"
    pid, words = kafka.pids[node], kafka.log_path(node)
    logs = [path.stat().st_size for path in words.parent.glob("data/*/*.log")]
    before = words.stat().st_size
    limit = max(*logs, before + _LAST_WORDS)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, limit))
    with closing(Producer({"bootstrap.servers": kafka.bootstrap, "acks": 1, "log_level": 0})) as producer:

        def halted() -> bool:
            producer.produce(topic, bytes(_CHUNK))
            producer.flush(_SEND_S)
            return not alive(pid)

        clock.wait_until(halted, HALTED_S, what=f"broker {node} halting on a full disk")
        producer.purge()
    kafka.kill(node)  # it is dead: only to tell the one that watches over it
    with words.open("rb") as file:
        file.seek(before)
        assert _HALTED in file.read(), f"broker {node} ended, and not because of its disk: see {words}"
    return f"broker {node}: no file beyond {limit} bytes: process {pid} has halted, as all its log dirs have failed"


def start_broker(kafka: LocalKafka, node: int) -> str:
    """Start it again and wait until it answers."""
    begun = clock.monotonic()
    kafka.start(node)
    return f"process {kafka.pids[node]} answers after {clock.monotonic() - begun:.1f} s"


def start_brokers(kafka: LocalKafka, nodes: Sequence[int]) -> str:
    """Start several and wait until all answer: none can before a majority runs."""
    for node in nodes:
        kafka.start(node, wait=False)
    return "; ".join(start_broker(kafka, node) for node in nodes)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that its parent has not collected does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_frozen(process: ChildProcess) -> bool:
    return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
