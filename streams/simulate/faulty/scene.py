"""What all who take part are given."""

from __future__ import annotations

from typing import NamedTuple

from streams.simulate.faulty.chances import ASTRAY, Chances
from streams.simulate.faulty.log import Log
from streams.wire import partition_for


class Scene(NamedTuple):
    """One deployment's topics, its luck, and its size."""

    log: Log
    chances: Chances
    shards: int

    def send(self, topic: str, tenant: str, value: bytes | None) -> None:
        """Write a record by its tenant, as a producer does; some have another idea of where that is."""
        partition = partition_for(tenant, self.shards)
        if self.shards > 1 and self.chances.fires(ASTRAY):
            partition = (partition + self.chances.random.randrange(1, self.shards)) % self.shards
        self.log.append((topic, partition), tenant.encode(), value)
