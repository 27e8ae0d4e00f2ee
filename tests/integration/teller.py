"""Files and finishes runs one by one, for stories in which it matters which run is where."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from streams import clock
from streams.wire import encode_completion, encode_request
from tests.integration.arithmetic import Evidence, problems, problems_when_drained
from tests.integration.deployment import Deployment
from tests.integration.traffic import make_producer

WAIT_S: Final = 60
TOKENS: Final = 7  # of every run


def value_of(tenant: str, run_id: str, payload: object = None) -> bytes:
    return encode_request(tenant=tenant, run_id=run_id, workflow="w", payload=payload)


class Teller:
    """The producer and the worker of a story."""

    def __init__(self, here: Deployment) -> None:
        self.here = here
        self._producer = make_producer(here.servers)
        self._finished: set[tuple[str, str, int]] = set()

    def file(self, value: bytes | None, key: bytes | None) -> None:
        self._producer.produce(self.here.names.requests, value, key)

    def flush(self) -> None:
        assert self._producer.flush(WAIT_S) == 0

    def leave(self, *attempts: tuple[str, str, int]) -> None:
        """Never report on these: somebody else does."""
        self._finished.update(attempts)

    def finish(self, *, but: Collection[str] = ()) -> None:
        """Report on what has been dispatched since, but for the runs of these ids."""
        for each in self.here.gather().dispatches:
            attempt = (each.tenant, each.run_id, each.attempt)
            if attempt not in self._finished and each.run_id not in but:
                self._finished.add(attempt)
                value = encode_completion(
                    tenant=each.tenant, run_id=each.run_id, attempt=each.attempt, status="succeeded", tokens=TOKENS
                )
                self._producer.produce(self.here.names.completions, value, each.tenant.encode())
        self.flush()

    def drain(self) -> Evidence:
        """Finish everything until the arithmetic says that nothing is left."""
        found: list[Evidence] = []

        def drained() -> bool:
            self.finish()
            found.append(self.here.gather())
            return not [*problems(found[-1]), *problems_when_drained(found[-1])]

        clock.wait_until(drained, WAIT_S, 0.3, what="the end of all runs")
        return found[-1]
