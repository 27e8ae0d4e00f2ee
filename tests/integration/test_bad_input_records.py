"""Faults of single records that others have had (`tests/data/cases/faults.json`), on one deployment, by their ids.

One story, told once: bad records among good ones, then a topic that takes less than it did. Each test reads a fault's
part of it; the whole of it must add up.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass

import pytest
from aiokafka import AIOKafkaProducer

from streams import clock
from streams.admin.kafka import admin_client, set_topic_configs
from streams.core.policy import Policy, TenantRules, Window
from streams.core.records import RunRecord
from streams.core.snapshot import FlowView
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import Refusal, decode_status
from tests.integration.arithmetic import Evidence, problems, problems_when_drained
from tests.integration.deployment import LEASES, Deployment, deploy
from tests.integration.teller import TOKENS, WAIT_S, Teller, value_of
from tests.integration.topics import read_topic

NOT_TEXT = b"\xa2\xff"
DEEP = b"[" * 10_000_000
UNREADABLE = (b"\x00\x01", b"[]", b"{}", b'{"tenant":"shape","run_id":', DEEP)
TIMES = (1_755_933_141_855_875, -1, 0)
LOWERED = 500_000


@dataclass
class Story:
    """What there was to see."""

    here: Deployment
    evidence: Evidence
    waiting: list[FlowView]  # all views of the tenant whose timestamps are wrong, while it had runs waiting
    log: str

    def dispatched(self, tenant: str) -> list[str]:
        return [each.run_id for each in self.evidence.dispatches if each.tenant == tenant]

    def refusals(self, wanted: bytes | None, *, of: str = "value") -> list[Refusal]:
        places = {seen.offset for seen in self.evidence.requests if getattr(seen, of) == wanted}
        assert places, "it was sent"
        return [each for each in self.evidence.refusals if each.position.offset in places]


async def file_at(here: Deployment, times: dict[str, int], tenant: str) -> None:
    """File runs with timestamps that librdkafka would not write."""
    async with AIOKafkaProducer(bootstrap_servers=here.servers) as producer:
        for run_id, timestamp in times.items():
            value = value_of(tenant, run_id)
            await producer.send_and_wait(here.names.requests, value, tenant.encode(), timestamp_ms=timestamp)


async def file_large(here: Deployment, value: bytes, key: bytes) -> None:
    async with AIOKafkaProducer(bootstrap_servers=here.servers, max_request_size=12_000_000) as producer:
        await producer.send_and_wait(here.names.requests, value, key)


def waiting_views(here: Deployment, tenant: str) -> list[FlowView]:
    views = [decode_status(seen.value).view for seen in read_topic(here.servers, here.names.status) if seen.value]
    return [each for each in views if isinstance(each, FlowView) and each.tenant == tenant and each.queued_runs]


def send_bad_records_among_good_ones(here: Deployment, teller: Teller) -> None:
    for number in range(100):
        teller.file(value_of("key", f"run-{number}"), NOT_TEXT if number == 50 else b"key")
    teller.file(value_of("null", "with-tenant"), None)
    teller.file(b'{"run_id":"without","workflow":"w"}', None)
    teller.flush()
    for number, bad in enumerate(UNREADABLE):
        asyncio.run(file_large(here, bad, b"shape"))
        teller.file(value_of("shape", f"run-{number}"), b"shape")
        teller.flush()
    asyncio.run(file_at(here, {f"at-{timestamp}": timestamp for timestamp in TIMES}, "clock"))


def make_a_topic_take_less(here: Deployment, teller: Teller) -> None:
    """One run of `large` may be in flight. Behind it a large one waits that was let in when there was room for it."""
    kafka = KafkaSettings(servers=here.servers, prefix=here.prefix)
    for run_id, payload in (("first", "x"), ("big", "x" * 900_000), ("behind", "x"), ("big-too", "x" * 900_000)):
        teller.file(value_of("large", run_id, payload), b"large")
    teller.flush()

    def queued() -> int:
        return sum(row.tenant == "large" for row in here.gather().rows_of(0, RunRecord))

    clock.wait_until(lambda: queued() == 4, WAIT_S, what="the large runs to wait")
    for topic in (here.names.dispatch, here.names.rejected):
        set_topic_configs(admin_client(kafka), topic, {"max.message.bytes": str(LOWERED)})
    teller.finish()
    clock.wait_until(
        lambda: any(each.run_id == "behind" for each in here.gather().dispatches), WAIT_S, what="the run behind it"
    )
    teller.file(value_of("large", "at-the-door", "x" * 900_000), b"large")
    teller.file(value_of("large", "last"), b"large")
    teller.flush()


@pytest.fixture(scope="module")
def story(kafka: LocalKafka, tmp_path_factory: pytest.TempPathFactory) -> Story:
    here = deploy(kafka.bootstrap, f"bad-records-{uuid.uuid4().hex[:8]}.", tmp_path_factory.mktemp("records"), shards=1)
    one = TenantRules(max_runs_in_flight=1)
    here.apply(Policy(window=Window(runs=500), leases=LEASES, tenants={"clock": one, "large": one}))
    settings = KafkaSettings(servers=here.servers, prefix=here.prefix)
    # What a broker would refuse by default: it must not be what keeps us whole.
    loose = {"max.message.bytes": "12000000", "message.timestamp.after.max.ms": str((1 << 63) - 1)}
    set_topic_configs(admin_client(settings), here.names.requests, loose)
    teller = Teller(here)
    send_bad_records_among_good_ones(here, teller)
    with here.scheduler(status_interval_ms=100) as scheduler:
        scheduler.wait_until_ready({0})
        clock.wait_until(lambda: waiting_views(here, "clock"), WAIT_S, what="a view of runs that wait")
        make_a_topic_take_less(here, teller)
        evidence = teller.drain()
        waiting = waiting_views(here, "clock")
        assert scheduler.stop() == 0
        return Story(here, evidence, waiting, scheduler.log.read_text())


def test_all_of_it_adds_up(story: Story) -> None:
    assert [*problems(story.evidence), *problems_when_drained(story.evidence)] == []


def test_fault_61_a_key_that_is_no_text_holds_nobody_up(story: Story) -> None:
    assert sorted(story.dispatched("key")) == sorted(f"run-{number}" for number in range(100) if number != 50)
    (refusal,) = story.refusals(NOT_TEXT, of="key")
    assert (refusal.reason, refusal.field, refusal.original_key) == ("invalid", "key", NOT_TEXT)


def test_fault_63_a_key_that_is_missing_matters_only_if_the_value_names_no_tenant(story: Story) -> None:
    assert story.dispatched("null") == ["with-tenant"]
    (refusal,) = story.refusals(None, of="key")
    assert (refusal.field, refusal.original) == ("tenant", b'{"run_id":"without","workflow":"w"}')


@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: repr(value[:20]))
def test_fault_65_what_cannot_be_read_is_refused_once_and_passed(story: Story, value: bytes) -> None:
    (refusal,) = story.refusals(value)
    assert refusal.reason == "invalid"
    assert (refusal.original, refusal.original_size) == (value[:65_536], len(value))
    assert story.dispatched("shape") == [f"run-{number}" for number in range(len(UNREADABLE))]


def test_fault_67_a_run_too_large_for_the_workers_topic_is_a_dead_letter(story: Story) -> None:
    assert story.log.count("streams.app.step_aborted") >= 1, "Kafka refused a step"
    assert "Message size too large" in story.log
    refused = {each.run_id: each for each in story.evidence.refusals if each.tenant == "large"}
    assert refused.keys() == {"big", "big-too", "at-the-door"}
    for each in refused.values():
        assert each.reason == "too_large"
        assert (each.payload_json, each.left_out) == (b"", 900_014), "a short stub"
        assert each.limit is not None
        assert each.limit <= LOWERED < (each.value or 0)
    assert story.dispatched("large") == ["first", "behind", "last"]
    taken_out = [each for entry in story.evidence.journal[0] for each in entry.undeliverable]
    assert {each.run_id for each in taken_out} == {"big", "big-too"}
    settled = [each for entry in story.evidence.journal[0] for each in entry.settlements if each.tenant == "large"]
    assert sum(each.actual for each in settled) == 3 * TOKENS, "nothing is charged for it"


def test_fault_75_a_timestamp_that_cannot_be_right_is_no_waiting_time(story: Story) -> None:
    filed = {seen.timestamp_ms for seen in story.evidence.requests if seen.key == b"clock"}
    assert filed >= {TIMES[0], TIMES[2]}
    assert story.dispatched("clock") == [f"at-{timestamp}" for timestamp in TIMES]
    assert story.waiting
    assert {each.oldest_submitted_ms for each in story.waiting} == {0}, "unknown"
