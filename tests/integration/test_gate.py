"""The gate on a real Kafka: what comes through, and that it comes exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from streams import clock
from streams.admin.intakes import ensure_intakes
from streams.admin.kafka import admin_client
from streams.admin.topics import Layout, ensure
from streams.client import KafkaSettings, Publisher
from streams.core import reasons
from streams.gate.checking import ADMITTED
from streams.gate.turns import SHARE_RECORDS
from streams.local import LocalKafka
from streams.wire import (
    FORWARDED,
    Refusal,
    decode_rejection,
    decode_request,
    encode_cancel,
    encode_request,
    intake_topic,
    partition_for,
)
from tests.integration.faults.harms import KILLED, is_frozen, terminate, thaw
from tests.integration.processes import ChildProcess
from tests.integration.topics import Seen, read_topic

SHARDS: Final = 2
WAIT_S: Final = 60.0
_RIGHT: Final = "tests.integration.faulty_gate"
_BROKEN: Final = "tests.integration.broken.no_membership"


class Intakes:
    """A deployment's topics, and the writers to its tenants' own."""

    def __init__(self, servers: str, prefix: str) -> None:
        self.kafka = KafkaSettings(servers=servers, prefix=prefix)
        self.admin = admin_client(self.kafka)
        ensure(self.admin, Layout(shards=SHARDS, prefix=prefix))
        self.filed: list[str] = []  # the places of what must come through, as the gate names them
        self._producer = Producer(self.kafka.client())

    def add(self, *tenants: str) -> None:
        ensure_intakes(self.admin, self.kafka.prefix, tenants)

    def write(self, tenant: str, value: bytes | None, key: bytes | None = None, **more: object) -> None:
        """Write to the tenant's topic whatever is given, as only its principal can."""
        self._producer.produce(intake_topic(self.kafka.prefix, tenant), value, key, **more)  # type: ignore[arg-type]

    def fill(self, tenant: str, count: int, start: int = 0) -> None:
        """Honest runs of a tenant."""
        topic = intake_topic(self.kafka.prefix, tenant)
        for number in range(start, start + count):
            self.write(tenant, encode_request(tenant=tenant, run_id=f"{tenant}-{number}", workflow="w"))
        self.filed += [f"{topic}:0:{number}" for number in range(start, start + count)]
        self.flush()

    def flush(self) -> None:
        assert self._producer.flush(WAIT_S) == 0

    def requests(self) -> list[Seen]:
        return read_topic(self.kafka.servers, self.kafka.topics.requests)

    def refusals(self) -> list[tuple[Seen, Refusal]]:
        return [
            (seen, decode_rejection(seen.value)) for seen in read_topic(self.kafka.servers, self.kafka.topics.rejected)
        ]

    def wait_for(self, count: int) -> list[Seen]:
        """Wait until so many records have come through, or more."""

        def enough() -> list[Seen] | None:
            seen = self.requests()
            return seen if len(seen) >= count else None

        return clock.wait_until(enough, WAIT_S, 0.3, what=f"{count} requests") or []

    def gate(self, folder: Path, name: str, faults: str = "", module: str = _RIGHT) -> ChildProcess:
        """A gate process with its faults, not started."""
        return ChildProcess(folder, name, module, self.kafka.servers, self.kafka.prefix, name, faults)


def origin(seen: Seen) -> str:
    return dict(seen.headers)[ADMITTED].decode()


def assert_each_once(intakes: Intakes) -> None:
    """Everything that was filed came through, once, on its tenant's partition, each tenant's in order."""
    seen = intakes.wait_for(len(intakes.filed))
    assert Counter(map(origin, seen)) == Counter(intakes.filed)
    last: dict[bytes, int] = {}
    for each in seen:
        assert each.key is not None
        assert each.partition == partition_for(each.key.decode(), SHARDS)
        number = int(origin(each).rpartition(":")[2])
        assert number > last.get(each.key, -1), f"{each.key!r}: {number} after {last[each.key]}"
        last[each.key] = number


@pytest.fixture
def intakes(kafka: LocalKafka, prefix: str) -> Intakes:
    return Intakes(kafka.bootstrap, prefix)


def test_only_what_is_in_the_tenants_own_name_comes_through(intakes: Intakes, tmp_path: Path) -> None:
    kafka, globex = intakes.kafka, "GLÖBEX/1"
    intakes.add("acme", globex, "flood")
    intakes.fill("flood", 10 * SHARE_RECORDS)
    # Each tenant may do to its own runs what it likes.
    for tenant in ("acme", globex):
        with Publisher(kafka, own_topic_of=tenant) as publisher:
            publisher.submit(tenant, "run-1", "w", {"by": tenant})
            publisher.cancel(tenant, "run-1")
    # acme lies.
    lies: list[tuple[bytes | None, bytes | None]] = [
        (encode_request(tenant=globex, run_id="run-2", workflow="w"), globex.encode()),
        (encode_cancel(tenant=globex, run_id="run-1"), b"acme"),
        (b'{"tenant":"acme","run_id":"\xff', b"acme"),
        (encode_request(tenant="acme", run_id="run-3", workflow="w"), b"\xff"),
        (None, b"acme"),
    ]
    for value, key in lies:
        intakes.write("acme", value, key)
    forged = encode_request(tenant="acme", run_id="run-4", workflow="w")
    intakes.write("acme", forged, globex.encode(), headers={FORWARDED: b"elsewhere", "trace": b"1"}, timestamp=1)
    intakes.flush()
    own = intake_topic(kafka.prefix, "acme")
    with ChildProcess(
        tmp_path, "gate", "streams.cli", "gate", "--kafka", kafka.servers, "--prefix", kafka.prefix
    ) as gate:
        passed = intakes.wait_for(len(intakes.filed) + 5)
        # Who comes later is found, and did not have to be there at the start.
        intakes.add("late")
        intakes.fill("late", 1)
        passed = intakes.wait_for(len(intakes.filed) + 5)
        assert terminate(gate)
    came = {
        tenant: [(seen, decode_request(seen.key, seen.value, 0, 1)) for seen in passed if seen.key == tenant.encode()]
        for tenant in ("acme", globex, "flood", "late")
    }
    assert {tenant: len(each) for tenant, each in came.items()} == {
        "acme": 3,
        globex: 2,
        "flood": 10 * SHARE_RECORDS,
        "late": 1,
    }
    for tenant in ("acme", globex):
        assert [(request.tenant, request.run_id, type(request).__name__) for _, request in came[tenant]][:2] == [
            (tenant, "run-1", "Submit"),
            (tenant, "run-1", "Cancel"),
        ]
    seen, _ = came["acme"][2]
    assert (seen.key, seen.value, seen.partition) == (b"acme", forged, partition_for("acme", SHARDS))
    assert seen.headers == (("trace", b"1"), (ADMITTED, f"{own}:0:7".encode()))
    assert seen.timestamp_ms > 1_700_000_000_000  # the broker's, not the one that acme made up
    # The flood had filed ten shares before anybody else; whoever shares its partition waited for two at most.
    for tenant in ("acme", globex):
        for seen, _ in came[tenant]:
            assert seen.offset <= 2 * SHARE_RECORDS + 10
    refused = intakes.refusals()
    assert [(each.position, each.original, each.original_key) for _, each in refused] == [
        ((own, 0, 2 + number), value, key) for number, (value, key) in enumerate(lies)
    ]
    assert {(seen.key, each.tenant) for seen, each in refused} == {(b"acme", "acme")}
    assert [(each.reason, each.field) for _, each in refused] == [
        (reasons.NOT_YOUR_TENANT, "tenant"),
        (reasons.NOT_YOUR_TENANT, "tenant"),
        (reasons.INVALID, "value"),
        (reasons.INVALID, "key"),
        (reasons.INVALID, "value"),
    ]


def test_killed_inside_a_turn_nothing_is_lost_or_doubled(intakes: Intakes, tmp_path: Path) -> None:
    intakes.add("a", "b")
    intakes.fill("a", 4 * SHARE_RECORDS)
    intakes.fill("b", SHARE_RECORDS // 2)
    trace = tmp_path / "faults"
    for faults in ("before_commit@2", "after_commit@1"):
        with intakes.gate(tmp_path, "one", f"{faults};trace={trace}") as gate:
            clock.wait_until(lambda: not gate.running, WAIT_S, what=f"the fault {faults}")
            assert gate.poll() == KILLED
    assert [line.split()[1] for line in trace.read_text().splitlines()] == ["before_commit", "after_commit"]
    assert 0 < len(intakes.requests()) < len(intakes.filed)  # so there was something to lose and to double
    with intakes.gate(tmp_path, "one") as gate:
        assert_each_once(intakes)
        terminate(gate)


@contextmanager
def woken(intakes: Intakes, folder: Path, module: str = _RIGHT) -> Iterator[ChildProcess]:
    """A gate that froze with a turn in its hands, and that wakes up after another has taken over and done its work.

    The transaction of that turn has not begun, so there is nothing that could time out.
    """
    intakes.add("a", "b")
    intakes.fill("a", 3 * SHARE_RECORDS)
    intakes.fill("b", SHARE_RECORDS)
    trace = folder / "faults"
    with intakes.gate(folder, "zombie", f"before_begin@2;signal=STOP;trace={trace}", module) as zombie:
        clock.wait_until(lambda: trace.exists() and is_frozen(zombie), WAIT_S, what="the freeze")
        with intakes.gate(folder, "heir") as heir:
            intakes.wait_for(len(intakes.filed))
            thaw(zombie)
            clock.wait_until(
                lambda: "streams.gate.again" in zombie.log.read_text() or len(intakes.requests()) > len(intakes.filed),
                WAIT_S,
                what="what becomes of the zombie's turn",
            )
            terminate(heir)
        yield zombie


def test_a_gate_that_wakes_after_another_has_taken_over_writes_nothing(intakes: Intakes, tmp_path: Path) -> None:
    with woken(intakes, tmp_path) as zombie:
        assert_each_once(intakes)
        assert "the group has gone on without this gate" in zombie.log.read_text()
        # It has learned of it, and is a gate like any other.
        intakes.fill("a", 5, start=3 * SHARE_RECORDS)
        assert_each_once(intakes)
        terminate(zombie)


def test_a_gate_that_is_no_member_of_its_group_is_found_out(intakes: Intakes, tmp_path: Path) -> None:
    with woken(intakes, tmp_path, _BROKEN):
        twice = [place for place, times in Counter(map(origin, intakes.requests())).items() if times > 1]
    assert len(twice) >= SHARE_RECORDS  # at least what the zombie held of one tenant
