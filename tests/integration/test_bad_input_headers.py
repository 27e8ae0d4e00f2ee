"""Batches that Kafka takes and clients fail at, among good ones: refused once each, and nobody is held up.

One story on one deployment: what a hostile producer sends by itself, since no client would; all codecs; a restart.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from streams import clock
from streams.audit.kafka_recording import KafkaRecording
from streams.audit.replay import ShardReplay
from streams.core import reasons
from streams.core.policy import Policy, Window
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.wire import Refusal, decode_dispatch, decode_rejection, encode_completion
from tests.garbled import CODECS, Garbled, Given, batch_of
from tests.integration.arithmetic import Evidence
from tests.integration.deployment import LEASES, Deployment, deploy
from tests.integration.raw_batches import send
from tests.integration.teller import TOKENS, WAIT_S, Teller, value_of
from tests.integration.topics import read_topic

FILED = 100
BAD = 50  # in the middle of them
SQUEEZED = 5  # a batch for each codec
PAYLOAD = "x" * 20_000  # of which a codec leaves a hundredth or less
MANY = [("name", None)] * 20_000
GARBLED = [("good", b"1"), (Garbled("bad"), b"2")]
BOMB_BYTES = 320 << 20
MAX_GROWTH_BYTES = 250 << 20
ACME = b"acme"


@dataclass
class Story:
    """What there was to see."""

    here: Deployment
    evidence: Evidence  # before anything was filed that no other reader of the topic could read
    packed: dict[str, int]  # codec -> bytes of its batch
    accepted: list[int]  # Kafka's answers to the batches that cannot be read
    refusals: list[Refusal]  # in the end
    dispatched: list[str]  # in the end
    growth_bytes: int

    def run_ids(self, prefix: str) -> list[str]:
        return [each.run_id for each in self.evidence.dispatches if each.run_id.startswith(prefix)]


def batch(*given: Given, codec: str = "none") -> bytes:
    return batch_of(*given, codec=codec, at_ms=clock.now_ms())


def filed(run_id: str, payload: object = None) -> Given:
    return Given(value_of("acme", run_id, payload), ACME)


def send_garbled_headers(here: Deployment) -> dict[str, int]:
    """File runs, one of them with headers that cannot be read, as one batch; and such a batch by each codec."""
    given = [filed(f"run-{number}") for number in range(FILED)]
    given[BAD] = given[BAD]._replace(headers=GARBLED)
    given[BAD + 1] = given[BAD + 1]._replace(headers=MANY)
    batches = {"": batch(*given)}
    for codec in CODECS:
        given = [filed(f"{codec}-{number}", PAYLOAD) for number in range(SQUEEZED)]
        given[2] = given[2]._replace(headers=GARBLED)
        batches[codec] = batch(*given, codec=codec)
    assert set(send(here.servers, here.names.requests, *batches.values())) == {0}
    return {codec: len(each) for codec, each in batches.items()}


def report_with_garbled_headers(here: Deployment) -> None:
    """Report on ten runs at once; on the fifth it cannot be read, and a later report must settle it."""
    outcome: Any = {"tenant": "acme", "attempt": 1, "status": "succeeded", "tokens": TOKENS}
    given = [Given(encode_completion(run_id=f"run-{each}", **outcome), ACME) for each in range(10)]
    given[5] = given[5]._replace(headers=GARBLED)
    assert send(here.servers, here.names.completions, batch(*given)) == [0]


def send_what_nobody_can_read(here: Deployment) -> list[int]:
    """Each is followed by a good run."""
    batches = [
        batch(filed("before-0"), filed("never-0")._replace(delta=1_000_000_000), filed("never-1")),
        batch(Given(bytes(BOMB_BYTES), ACME), codec="zstd"),
    ]
    answers = []
    for number, each in enumerate(batches):
        answers += send(here.servers, here.names.requests, each, batch(filed(f"beside-{number}")))
    return answers


def dispatched(here: Deployment) -> list[str]:
    return [decode_dispatch(seen.value).run_id for seen in read_topic(here.servers, here.names.dispatch)]


def refused(here: Deployment) -> list[Refusal]:
    return [decode_rejection(seen.value) for seen in read_topic(here.servers, here.names.rejected)]


@pytest.fixture(scope="module")
def story(kafka: LocalKafka, tmp_path_factory: pytest.TempPathFactory) -> Story:
    here = deploy(kafka.bootstrap, f"bad-headers-{uuid.uuid4().hex[:8]}.", tmp_path_factory.mktemp("headers"), shards=1)
    here.apply(Policy(window=Window(runs=500), leases=LEASES))
    teller = Teller(here)
    packed = send_garbled_headers(here)
    with here.scheduler() as scheduler:
        scheduler.wait_until_ready({0})
        good = FILED - 1 + len(CODECS) * (SQUEEZED - 1)
        clock.wait_until(lambda: len(dispatched(here)) == good, WAIT_S, what="the good runs to be served")
        report_with_garbled_headers(here)
        teller.leave(*(("acme", f"run-{number}", 1) for number in range(10) if number != 5))
        clock.wait_until(lambda: len(refused(here)) == 2 + len(CODECS), WAIT_S, what="the bad report to be refused")
        evidence = teller.drain()
        process, growth = psutil.Process(scheduler.pid), 0
        idle = process.memory_info().rss
        accepted = send_what_nobody_can_read(here)

        def served(run_id: str) -> bool:
            nonlocal growth
            growth = max(growth, process.memory_info().rss - idle)
            return run_id in dispatched(here)

        clock.wait_until(lambda: served("beside-1"), WAIT_S, what="the last good run to be served")
        scheduler.kill()
        scheduler.start()
        assert send(here.servers, here.names.requests, batch(filed("after"))) == [0]
        clock.wait_until(lambda: "after" in dispatched(here), WAIT_S, what="a run to be served after the takeover")
        assert scheduler.stop() == 0
    return Story(here, evidence, packed, accepted, refused(here), dispatched(here), growth)


def test_headers_that_cannot_be_read_are_refused_once_by_name(story: Story) -> None:
    requests, completions = story.here.names.requests, story.here.names.completions
    places = [(requests, BAD), *((requests, FILED + SQUEEZED * number + 2) for number in range(len(CODECS)))]
    places.append((completions, 5))
    refusals = [each for each in story.refusals if each.field == "headers"]
    assert [(each.position.topic, each.position.offset) for each in refusals] == places
    assert {each.reason for each in refusals} == {reasons.INVALID}
    assert {"can't decode byte 0xff" in each.detail for each in refusals} == {True}
    values = {seen.offset: seen.value for seen in story.evidence.requests}
    for each in refusals[:-1]:
        assert (each.original, each.original_key) == (values[each.position.offset], ACME)


def test_their_neighbours_are_served_in_order(story: Story) -> None:
    assert story.run_ids("run-") == [f"run-{number}" for number in range(FILED) if number != BAD]
    assert len(story.run_ids("")) == len(set(story.run_ids("")))


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_however_well_it_packs(codec: str, story: Story) -> None:
    assert codec == "none" or 15 * story.packed[codec] < SQUEEZED * len(PAYLOAD)
    assert story.run_ids(f"{codec}-") == [f"{codec}-{number}" for number in range(SQUEEZED) if number != 2]


def test_a_report_that_was_refused_has_settled_nothing(story: Story) -> None:
    reports = [seen.offset for seen in story.evidence.completions if b'"run-5"' in (seen.value or b"")]
    assert len(reports) == 2, "the second one was wanted, and came"


def test_batches_that_nobody_can_read_are_refused_once_each(story: Story) -> None:
    """Kafka takes them: it looks neither at the offsets of a batch's records, nor at the size that it unpacks to."""
    assert set(story.accepted) == {0}
    refusals = [each for each in story.refusals if each.field == "batch"]
    first = FILED + SQUEEZED * len(CODECS)
    # The three in the first batch, a good one, the one in the second.
    assert [each.position.offset for each in refusals] == [first + 2, first + 4]
    for each, why in zip(refusals, ("its offset is 1000", "larger than"), strict=True):
        assert why in each.detail
    assert len(story.refusals) == 2 + len(CODECS) + 2


def test_nothing_is_passed_over_after_them_nor_after_a_takeover(story: Story) -> None:
    late = [run_id for run_id in story.dispatched if not run_id.startswith(("run-", *(f"{each}-" for each in CODECS)))]
    assert late == ["before-0", "beside-0", "beside-1", "after"]


def test_an_audit_sets_aside_the_same_records(story: Story) -> None:
    """What this client cannot read at all, the journal names: so the steps come out as they did."""
    recording = KafkaRecording(KafkaSettings(servers=story.here.servers, prefix=story.here.prefix))
    replay = ShardReplay(recording, 0)
    unread = [each for step in replay for each in step.entry.unread]
    assert replay.divergence is None
    assert len(unread) == len(story.refusals)


def test_memory_is_not_what_a_producer_makes_of_it(story: Story) -> None:
    assert story.growth_bytes < MAX_GROWTH_BYTES < BOMB_BYTES
