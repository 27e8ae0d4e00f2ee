"""What cannot be read is set aside with its reason and its place, once, and holds up nobody."""

from pathlib import Path

from streams import clock
from streams.local import LocalKafka
from streams.wire import encode_completion, encode_request
from tests.integration.deployment import deploy
from tests.integration.traffic import make_producer

GOOD = 6
BAD_REQUESTS: dict[bytes | None, str] = {
    b"{": "value",
    b"\xff\xfe": "value",
    b"[]": "value",
    b'{"tenant": "acme", "workflow": "w"}': "run_id",
    b'{"tenant": "acme", "run_id": "x"}': "workflow",
    b'{"tenant": "acme", "run_id": "x", "workflow": "w", "estimate": -1}': "estimate",
    b'{"tenant": "acme", "run_id": "x", "workflow": "w", "estimate": "many"}': "estimate",
    b'{"tenant": "", "run_id": "x", "workflow": "w"}': "tenant",
    b"\x00\x00\x00\x00\x01rest": "value",
    b'{"tenant": "acme", "run_id": "x", "workflow": "w", "payload": "' + b"y" * 1_000_000 + b'"}': "value",
}
BAD_COMPLETIONS: dict[bytes | None, str] = {
    b"": "value",
    b'{"tenant": "acme", "run_id": "x", "attempt": 0, "status": "succeeded"}': "attempt",
    b'{"tenant": "acme", "run_id": "x", "attempt": 1, "status": "done"}': "status",
}


def test_bad_records_are_refused_once_and_their_neighbours_served(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    producer = make_producer(here.servers)
    good = iter(range(GOOD))

    def file_good() -> None:
        number = next(good, None)
        if number is not None:
            value = encode_request(tenant="acme", run_id=f"run-{number}", workflow="w")
            producer.produce(here.names.requests, value, b"acme")

    for bad in BAD_REQUESTS:
        producer.produce(here.names.requests, bad, b"acme")
        file_good()
    producer.produce(here.names.requests, None, b"acme")
    producer.produce(here.names.requests, encode_request(tenant="acme", run_id="y", workflow="w"), b"\xff\xff")
    for bad in BAD_COMPLETIONS:
        producer.produce(here.names.completions, bad, b"acme")
    assert producer.flush(30) == 0
    bad_ones = len(BAD_REQUESTS) + len(BAD_COMPLETIONS) + 2

    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0})
        clock.wait_until(lambda: len(here.gather().refusals) == bad_ones, 30, what="all refusals")
        for number in range(GOOD):
            report = encode_completion(tenant="acme", run_id=f"run-{number}", attempt=1, status="succeeded", tokens=3)
            producer.produce(here.names.completions, report, b"acme")
        assert producer.flush(30) == 0
        # A restart reads its inputs from its positions on: nothing is refused again.
        assert scheduler.stop() == 0
        scheduler.start()
        scheduler.wait_until_ready({0})
        evidence = here.prove()

    assert len(evidence.dispatches) == GOOD
    refusals = evidence.refusals
    assert len(refusals) == bad_ones
    assert {each.reason for each in refusals} == {"invalid"}
    assert len({(each.position.topic, each.position.offset) for each in refusals}) == bad_ones
    records = {(here.names.requests, seen.offset): seen for seen in evidence.requests}
    records |= {(here.names.completions, seen.offset): seen for seen in evidence.completions}
    expected: dict[bytes | None, str] = {**BAD_REQUESTS, **BAD_COMPLETIONS, None: "value"}
    for refusal in refusals:
        seen = records[refusal.position.topic, refusal.position.offset]
        assert refusal.position.partition == 0
        if seen.key == b"acme":
            assert refusal.field == expected[seen.value]
            assert refusal.original == (seen.value and seen.value[:65_536])
            assert refusal.original_size == (None if seen.value is None else len(seen.value))
        else:
            assert (refusal.field, refusal.original_key) == ("key", b"\xff\xff")


def test_a_run_of_the_largest_size_goes_all_the_way_round(kafka: LocalKafka, prefix: str, tmp_path: Path) -> None:
    """Whatever a request may hold fits a row, a dispatch and a rejection: the bound is checked before the core."""
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    producer = make_producer(here.servers)
    largest = encode_request(tenant="t" * 255, run_id="r" * 255, workflow="w" * 255, payload="x" * 999_100)
    assert 999_900 < len(largest) <= 1_000_000
    for _ in range(2):  # the second is refused as a duplicate, with its payload
        producer.produce(here.names.requests, largest, b"t" * 255)
    assert producer.flush(30) == 0
    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0})
        clock.wait_until(lambda: here.gather().dispatches, 30, what="its dispatch")
        evidence = here.gather()
    assert len(evidence.dispatches[0].payload_json) > 999_000
    assert [each.reason for each in evidence.refusals] == ["duplicate"]
    assert len(evidence.refusals[0].payload_json) > 999_000
