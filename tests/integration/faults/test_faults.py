"""Faults of every kind, one after another and two at a time, under load: nothing lost, nothing done twice.

Three brokers (replication 3, two in sync), one or two schedulers and one that comes and goes, workers in processes of
their own, a producer. What happens stands in a `Plan`; each fault proves that it happened; the topics prove the rest.

The short form has each kind once. `make chaos` has several rounds of it, each a deployment of its own, 320 faults in
all. They are drawn from seeds; both can be given:

    FAIRSTREAM_CHAOS_SEED     the seed of the first round, 1 by default; the others follow it
    FAIRSTREAM_CHAOS_FAULTS   faults of each round, 80 by default; less than there are kinds is as many as there are

A round that failed is played again with its seed and FAIRSTREAM_CHAOS_FAULTS as they were. The order of the faults, and
who is hit as far as there was a choice, are the same then; what they hit each of them in the middle of is not.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from streams import clock
from streams.core.outcomes import LOST
from streams.local import LocalKafka
from tests.integration.arithmetic import Evidence
from tests.integration.faults.harms import start_brokers
from tests.integration.faults.kinds import HARMS
from tests.integration.faults.plan import Burst, Plan, spread
from tests.integration.faults.proxy import Network
from tests.integration.faults.record import missing, table
from tests.integration.faults.stage import Stage

LOG: Final = logging.getLogger(__name__)

LONG: Final = os.environ.get("FAIRSTREAM_TEST_PROFILE") == "nightly"
SEED: Final = int(os.environ.get("FAIRSTREAM_CHAOS_SEED", "1"))
FAULTS: Final = int(os.environ.get("FAIRSTREAM_CHAOS_FAULTS", "80"))

BROKERS: Final = 3
LISTENER: Final = "PROXIED"
LONGEST_S: Final = 2.5  # of a fault that lasts: shorter and longer than sessions of schedulers and brokers

SHORT_ROUNDS: Final = [Plan(seed=SEED)]
LONG_ROUNDS: Final = [
    Plan(seed=SEED + number, counts=spread(FAULTS), schedulers=schedulers, intake=intake)
    for number, (schedulers, intake) in enumerate([(2, "share"), (2, "classic"), (1, "share"), (2, "share")])
]


class Cluster(NamedTuple):
    """Brokers, and the network that schedulers reach them by."""

    kafka: LocalKafka
    network: Network

    def mend(self) -> None:
        """Put right what a round that failed has left broken."""
        self.network.heal()
        start_brokers(self.kafka, range(1, BROKERS + 1))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Network(BROKERS) as network:
        kafka = LocalKafka(
            BROKERS,
            listeners={LISTENER: "PLAINTEXT"},
            advertised={LISTENER: network.ports},
            # A killed broker is missed soon, so that what it led moves while the test still runs.
            settings={"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"},
        )
        with kafka:
            network.lead_to(kafka.bootstrap_of(LISTENER))
            yield Cluster(kafka, network)


def strike(stage: Stage, burst: Burst) -> None:
    """Bring these faults about together, end them, and wait until the deployment has recovered."""
    with ExitStack() as stack:
        for fault in burst:
            stack.enter_context(HARMS[fault](stage))
        clock.pause(stage.chance.uniform(0.2, LONGEST_S))  # how long they last
    stage.await_progress(" and ".join(burst))


def summary(stage: Stage, evidence: Evidence) -> str:
    lost = sum(each.outcome == LOST for entries in evidence.journal.values() for e in entries for each in e.settlements)
    return (
        f"{stage.feeder.filed} runs filed, {len(evidence.dispatches)} dispatches, {lost} attempts lost, "
        f"{sum(len(entries) for entries in evidence.journal.values())} steps, "
        f"epochs {[entries[-1].epoch for entries in evidence.journal.values()]}"
    )


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize(
    "plan", LONG_ROUNDS if LONG else SHORT_ROUNDS, ids=lambda plan: f"seed{plan.seed}-{plan.schedulers}{plan.intake}"
)
def test_faults_lose_nothing_and_double_nothing(cluster: Cluster, plan: Plan, prefix: str, tmp_path: Path) -> None:
    cluster.mend()
    with Stage(cluster.kafka, cluster.network, plan, prefix, tmp_path) as stage:
        for burst in plan.bursts():
            strike(stage, burst)
        evidence = stage.drain()
        LOG.info("\n%s", table(plan, stage.fired, summary(stage, evidence)))
        assert missing(plan, stage.fired) == {}
        assert stage.ended == []
