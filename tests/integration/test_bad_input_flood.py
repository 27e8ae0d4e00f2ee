"""A flood of damaged records on every input: each is refused once, the good ones are served, memory stays bounded.

Of each wave everything lies in Kafka before the scheduler sees any of it: it comes as fast as it can be fetched. What
must become of a record is judged by reading it here, beside the scheduler: by the rules of the wire, as a client does.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from streams import clock
from streams.core import reasons
from streams.core.inputs import Submit
from streams.core.policy import Memory, Policy, Window
from streams.errors import BadRecord
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.partition import open_reader, read_to_end
from streams.wire import (
    FORWARDED,
    Assignment,
    decode_completion,
    decode_dispatch,
    decode_rejection,
    decode_request,
    partition_for,
)
from tests.integration.arithmetic import looks_idle
from tests.integration.damage import COMPLETIONS, POLICY, REQUESTS, Damaged, damaged_records
from tests.integration.deployment import LEASES, Deployment, deploy
from tests.integration.processes import SchedulerProcess
from tests.integration.traffic import Workers, make_producer

NIGHTLY: Final = os.environ.get("FAIRSTREAM_TEST_PROFILE") == "nightly"
RECORDS: Final = 1_000_000 if NIGHTLY else 20_000
WAVE: Final = 20_000  # the next one comes when nothing of the last is left: it is not the backlog that is measured
LARGE: Final = 40  # of a megabyte each, beside those, in each wave
DEADLINE_S: Final = 300  # for a wave
SHARDS: Final = 2
SEED: Final = 20_260_101

# What a process may hold for each shard beside what it holds when idle: an inbox of 32 MiB of records; a step that was
# taken from it, encoded and waiting in the producer (8 MiB of input, three times); twice that, for Python gives memory
# back late. Nothing of it grows with the number of records, and what a shard remembers of runs is small (`MEMORY`).
MEMORY: Final = Memory(ended_runs=10_000, flows=5_000, histories=5_000)
MAX_GROWTH_BYTES: Final = SHARDS * 2 * (32 + 3 * 8) * 1024 * 1024

_BULK: Final = b"\xff" * 1_000_000

Place = tuple[str, int, int]  # topic, partition, offset


@dataclass
class Judgement:
    """What must become of each record, by what it holds."""

    unreadable: set[Place] = field(default_factory=set)
    astray: set[Place] = field(default_factory=set)  # to be forwarded
    submits: dict[Place, tuple[str, str]] = field(default_factory=dict)
    copies: Counter[Place] = field(default_factory=Counter)  # of those that were forwarded


@dataclass
class Seen:
    """What did."""

    refused: dict[Place, str] = field(default_factory=dict)
    twice: list[Place] = field(default_factory=list)
    peak_bytes: int = 0
    seconds: float = 0.0


def fill(here: Deployment, records: Iterator[tuple[int, Damaged]]) -> tuple[int, set[Place]]:
    """Write a wave; return how many policies are to be refused, and where the last record of each input stands."""
    producer = make_producer(here.servers)
    bad_policies = 0
    ends: set[Place] = set()

    def on_end(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        ends.add((message.topic() or "", message.partition() or 0, message.offset() or 0))

    for number, each in islice(records, WAVE):
        bad_policies += each.topic == POLICY and each.value is not None
        partition = number % SHARDS if each.anywhere else -1  # -1: by its key
        producer.produce(here.prefix + each.topic, each.value, each.key, partition, headers=each.headers)
    for number in range(LARGE):
        # Large in its value, which is no JSON; in its key; in a header.
        value, key, header = ((_BULK, b"k", b""), (b"{", _BULK, b""), (b"[]", None, _BULK))[number % 3]
        producer.produce(here.names.requests, value, key, number % SHARDS, headers=[("h", header)])
    for topic in (here.names.requests, here.names.completions):
        for shard in range(SHARDS):
            producer.produce(topic, b"the end", b"end", shard, on_delivery=on_end)
    assert producer.flush(DEADLINE_S) == 0
    return bad_policies, ends


def watch(here: Deployment, scheduler: SchedulerProcess, consumer: Consumer, ends: set[Place], seen: Seen) -> None:
    """Read the refusals as they come, and look at the scheduler's memory, until nothing is left to be done."""
    begun = clock.monotonic()
    process = psutil.Process(scheduler.pid)

    def done() -> bool:
        assert scheduler.poll() is None, "it ended"
        seen.peak_bytes = max(seen.peak_bytes, process.memory_info().rss)
        messages = [each for each in consumer.consume(2_000, 0.1) if each.error() is None]
        for message in messages:
            refusal = decode_rejection(message.value())
            if refusal.position in seen.refused:
                seen.twice.append(refusal.position)
            seen.refused[refusal.position] = refusal.reason
        return not messages and ends <= seen.refused.keys() and looks_idle(here.servers, here.prefix, SHARDS)

    clock.wait_until(done, DEADLINE_S, 0.0, what="the end of the wave")
    seen.seconds += clock.monotonic() - begun


def judge(here: Deployment) -> Judgement:
    found = Judgement()
    with open_reader(KafkaSettings(servers=here.servers), "judge") as consumer:
        for name in (REQUESTS, COMPLETIONS):
            topic = here.prefix + name
            for shard in range(SHARDS):
                for message in read_to_end(consumer, topic, shard):
                    offset = message.offset()
                    assert offset is not None
                    origin = dict(message.headers() or ()).get(FORWARDED)
                    place = (topic, shard, offset)
                    try:
                        given = (
                            decode_request(message.key(), message.value(), offset, 0)
                            if name == REQUESTS
                            else decode_completion(message.key(), message.value(), offset)
                        )
                    except BadRecord:
                        found.unreadable.add(place)
                        continue
                    if partition_for(given.tenant, SHARDS) != shard:
                        (found.astray if origin is None else found.unreadable).add(place)
                        continue
                    if origin is not None and _place(origin):
                        found.copies[_place(origin)] += 1
                    if isinstance(given, Submit):
                        found.submits[place] = (given.tenant, given.run_id)
    return found


def _place(mark: bytes | str) -> Place:
    """The place that a mark speaks of. A forged one may say anything; then it is no place of an astray record."""
    topic, _, rest = (mark if isinstance(mark, str) else mark.decode(errors="replace")).partition(":")
    shard, _, offset = rest.partition(":")
    return (topic, int(shard), int(offset)) if shard.isdecimal() and offset.isdecimal() else ("", 0, 0)


def first_dispatches(here: Deployment) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    with open_reader(KafkaSettings(servers=here.servers), "dispatches") as consumer:
        for partition in range(SHARDS):
            for message in read_to_end(consumer, here.names.dispatch, partition):
                given = decode_dispatch(message.value())
                if isinstance(given, Assignment) and given.attempt == 1:
                    found[given.tenant, given.run_id] += 1
    return found


@pytest.mark.chaos
def test_damaged_records_are_refused_once_and_the_good_ones_served(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=SHARDS)
    here.apply(Policy(window=Window(runs=1_000), leases=LEASES, memory=MEMORY))
    workers = Workers(here.servers, here.prefix)
    records = enumerate(damaged_records(SEED, RECORDS))
    bad_policies, seen = 0, Seen()
    settings = KafkaSettings(servers=here.servers)
    # It is frozen while a wave is written, and must not be missed.
    with here.scheduler(session_timeout_s=60.0) as scheduler, open_reader(settings, "refusals") as consumer:
        consumer.assign([TopicPartition(here.names.rejected, shard, OFFSET_BEGINNING) for shard in range(SHARDS)])
        scheduler.wait_until_ready({0, 1})
        idle_bytes = psutil.Process(scheduler.pid).memory_info().rss
        workers.start()
        try:
            for _ in range(0, RECORDS, WAVE):
                scheduler.send(signal.SIGSTOP)
                more, ends = fill(here, records)
                bad_policies += more
                scheduler.send(signal.SIGCONT)
                watch(here, scheduler, consumer, ends, seen)
        finally:
            workers.finish()
        log = scheduler.log.read_text()

    judged = judge(here)
    assert seen.twice == []
    invalid = {place for place, reason in seen.refused.items() if reason == reasons.INVALID}
    assert invalid == judged.unreadable
    assert len(invalid) > RECORDS // 2
    assert {place: judged.copies[place] for place in judged.astray} == dict.fromkeys(judged.astray, 1)
    served = first_dispatches(here)
    assert served == Counter(run for place, run in judged.submits.items() if place not in seen.refused)
    good = {run for run in served if run[0].startswith("good-") and run[1].startswith("good-")}
    assert len(good) == RECORDS // 10
    assert log.count("streams.app.policy_refused") == bad_policies > RECORDS // 2_000
    assert "streams.app.step_aborted" not in log
    growth = seen.peak_bytes - idle_bytes
    print(  # noqa: T201 - what the long form is run for
        f"{RECORDS:,} records: {len(invalid):,} invalid, {len(seen.refused) - len(invalid):,} refused otherwise, "
        f"{len(judged.astray):,} forwarded, {len(served):,} served ({len(good):,} good), {bad_policies:,} policies; "
        f"{seen.seconds:.0f} s from the scheduler's start to the end; RSS {idle_bytes >> 20} MiB idle, "
        f"{seen.peak_bytes >> 20} MiB at most (bound {(idle_bytes + MAX_GROWTH_BYTES) >> 20})"
    )
    assert growth < MAX_GROWTH_BYTES, f"{growth >> 20} MiB more than when it was idle"
