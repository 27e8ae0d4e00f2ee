"""Which shard a tenant belongs to: Kafka's default partitioner, so that any Java client agrees.

librdkafka's own default differs; its clients set `partitioner=murmur2_random` to agree. A record that a foreign
producer put elsewhere is forwarded once by the shard that finds it, and carries `FORWARDED` from then on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

# A record header; its value is "topic:partition:offset" of the first place, as UTF-8. For people: never parsed.
FORWARDED: Final = "fairstream-forwarded-from"

# The setting that makes librdkafka place keys as `partition_for` does. Every producer of ours has it.
PARTITIONER: Final = "murmur2_random"

_MIX: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C
_MASK: Final = 0xFFFFFFFF


# Cached because hashing costs about 3 us; bounded because tenants are not.
@lru_cache(maxsize=65_536)
def partition_for(tenant: str, partitions: int) -> int:
    """Return the partition of `tenant`'s key among `partitions` (> 0)."""
    return (murmur2(tenant.encode()) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of `data` (Austin Appleby, 2008), unsigned, seeded as Kafka's `Utils.murmur2`."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _MIX & _MASK
        k = (k ^ k >> 24) * _MIX & _MASK
        h = h * _MIX & _MASK ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MIX & _MASK
    h = (h ^ h >> 13) * _MIX & _MASK
    return h ^ h >> 15
