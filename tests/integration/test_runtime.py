"""The whole way round on a real Kafka: request, dispatch, completion, account settled."""

from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from streams import clock
from streams.core.policy import Policy, TenantRules, Window
from streams.core.snapshot import ClassView, FlowView, ShardView
from streams.intake import FORWARDED_ON
from streams.local import LocalKafka
from streams.wire import (
    FORWARDED,
    decode_rejection,
    decode_status,
    encode_completion,
    encode_request,
    partition_for,
)
from tests.integration.deployment import LEASES, deploy
from tests.integration.topics import read_topic
from tests.integration.traffic import make_producer, traffic


def test_every_run_is_served_once_and_every_token_accounted_for(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=2)
    with here.scheduler() as scheduler, traffic(here.servers, prefix, per_s=300) as (feeder, _):
        scheduler.wait_until_ready({0, 1})
        clock.wait_until(lambda: feeder.filed > 600, 30, what="600 runs filed")
        feeder.finish()
        evidence = here.prove()
        assert scheduler.ask("/healthz")[0] == 200

    assert {each.shard for each in evidence.dispatches} == {0, 1}
    assert any(each.attempt > 1 for each in evidence.dispatches)  # some failed or came back at first
    assert all(partition_for(each.tenant, 2) == each.shard for each in evidence.dispatches)
    assert {each.reason for each in evidence.refusals} == {"duplicate"}
    versions = {entry.policy_version for entries in evidence.journal.values() for entry in entries}
    assert versions == {0}  # no step ran under the built-in policy


def test_status_shows_shards_and_tenants(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    producer = make_producer(here.servers)
    producer.produce(here.names.requests, encode_request(tenant="acme", run_id="r", workflow="w"), b"acme")
    assert producer.flush(30) == 0

    def views() -> list[FlowView | ClassView | ShardView]:
        return [decode_status(seen.value).view for seen in read_topic(here.servers, here.names.status)]

    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0})
        clock.wait_until(
            lambda: any(isinstance(view, FlowView) and view.flight_runs == 1 for view in views()),
            20,
            what="acme's view",
        )
        clock.wait_until(
            lambda: any(isinstance(view, ShardView) and view.flight_runs == 1 for view in views()),
            20,
            what="shard's view",
        )


def test_a_policy_change_is_an_input_of_a_step_and_binds_at_once(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1, window=1)
    producer = make_producer(here.servers)
    for number in range(3):
        value = encode_request(tenant="acme", run_id=f"run-{number}", workflow="w")
        producer.produce(here.names.requests, value, b"acme")
    assert producer.flush(30) == 0

    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0})
        clock.wait_until(lambda: len(here.gather().dispatches) == 1, 20, what="a full window of one")
        version = here.apply(Policy(name="default", window=Window(runs=3), leases=LEASES))
        clock.wait_until(lambda: len(here.gather().dispatches) == 3, 20, what="two more places")

    changed = [entry for entry in here.gather().journal[0] if any(each.topic == "policy" for each in entry.inputs)]
    assert [each.first for entry in changed for each in entry.inputs if each.topic == "policy"] == [0, version]
    assert len(changed[-1].decisions) == 2


def test_a_record_on_the_wrong_shard_is_forwarded_once_and_refused_if_it_is_still_astray(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=2)
    tenants = ["a", "b", "c", "d"]
    assert {partition_for(tenant, 2) for tenant in tenants} == {0, 1}
    producer = make_producer(here.servers)
    for tenant in tenants:
        wrong = 1 - partition_for(tenant, 2)
        request = encode_request(tenant=tenant, run_id="run", workflow="w")
        producer.produce(here.names.requests, request, tenant.encode(), partition=wrong)
    producer.produce(
        here.names.requests,
        encode_request(tenant="a", run_id="astray", workflow="w"),
        b"a",
        partition=1 - partition_for("a", 2),
        headers=[(FORWARDED, b"elsewhere:0:0")],
    )
    assert producer.flush(30) == 0

    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0, 1})
        clock.wait_until(lambda: len(here.gather().dispatches) == 4, 20, what="four dispatches")
        clock.wait_until(lambda: read_topic(here.servers, here.names.rejected), 20, what="the refusal of the fifth")
        for tenant in tenants:
            report = encode_completion(tenant=tenant, run_id="run", attempt=1, status="succeeded", tokens=7)
            wrong = 1 - partition_for(tenant, 2)
            producer.produce(here.names.completions, report, tenant.encode(), partition=wrong)
        assert producer.flush(30) == 0
        evidence = here.prove()

    assert {(each.tenant, each.run_id) for each in evidence.dispatches} == {(tenant, "run") for tenant in tenants}
    assert all(each.shard == partition_for(each.tenant, 2) for each in evidence.dispatches)
    for seen, marked_already in ((evidence.requests, 1), (evidence.completions, 0)):
        forwarded = [each for each in seen if any(name == FORWARDED for name, _ in each.headers)]
        assert len(forwarded) == 4 + marked_already
        assert len(seen) == 8 + marked_already
    counted = sum(entry.counts.get(FORWARDED_ON, 0) for entries in evidence.journal.values() for entry in entries)
    assert counted == 8
    (message,) = read_topic(here.servers, here.names.rejected)
    assert decode_rejection(message.value).field == "headers"


def test_committed_offsets_follow_for_those_who_watch_the_lag(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=2)
    group = f"{prefix}watched"
    watcher = Consumer({"bootstrap.servers": here.servers, "group.id": group})
    places = [TopicPartition(topic, n) for topic in (here.names.requests, here.names.completions) for n in range(2)]

    def lag() -> int:
        committed = watcher.committed(places, timeout=10)
        ends = [watcher.get_watermark_offsets(place, timeout=10)[1] for place in places]
        return sum(end - max(place.offset, 0) for place, end in zip(committed, ends, strict=True))

    with here.scheduler(group=group) as scheduler, traffic(here.servers, prefix, per_s=200) as (feeder, _):
        scheduler.wait_until_ready({0, 1})
        clock.wait_until(lambda: feeder.filed > 200, 30, what="traffic")
        feeder.finish()
        here.prove()
        clock.wait_until(lambda: lag() == 0, 30, 0.5, what="no lag")
        assert sum(place.offset for place in watcher.committed(places, timeout=10)) > 400
    watcher.close()


def test_a_policy_that_names_twenty_thousand_tenants_is_taken(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    """Its row in the state is far larger than anything a request brings."""
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    tenants = {f"tenant-{number:05}-{'x' * 100}": TenantRules(weight=number % 7 + 1) for number in range(20_000)}
    version = here.apply(Policy(name="default", window=Window(runs=64), leases=LEASES, tenants=tenants))
    producer = make_producer(here.servers)
    producer.produce(here.names.requests, encode_request(tenant="acme", run_id="r", workflow="w"), b"acme")
    assert producer.flush(30) == 0
    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0})
        clock.wait_until(lambda: len(here.gather().dispatches) == 1, 30, what="a dispatch")
        assert scheduler.stop() == 0
        scheduler.start()
        scheduler.wait_until_ready({0})  # and it is read again
        clock.wait_until(lambda: len(read_topic(here.servers, here.names.journal)) >= 2, 30, what="another step")
        assert here.gather().journal[0][-1].policy_version == version
