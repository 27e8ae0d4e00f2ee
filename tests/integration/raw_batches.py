"""Batches written to Kafka as they are, which no client would do."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaProducer
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.structs import TopicPartition


def send(servers: str, topic: str, *batches: bytes, partition: int = 0) -> list[int]:
    """Write batches to a partition; return the error codes of Kafka's answers."""

    async def sent() -> list[int]:
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            await producer.partitions_for(topic)
            leader = producer.client.cluster.leader_for_partition(TopicPartition(topic, partition))
            asked = [ProduceRequest(None, -1, 10_000, [(topic, [(partition, batch)])]) for batch in batches]
            answers = [await producer.client.send(leader, each) for each in asked]
            return [each.topics[0][1][0][1] for each in answers]

    return asyncio.run(sent())
