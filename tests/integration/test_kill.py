"""A build that is broken on purpose is found out: without this the fault tests would prove nothing."""

from pathlib import Path

from streams import clock
from streams.local import LocalKafka
from tests.integration.arithmetic import gather, problems
from tests.integration.deployment import deploy
from tests.integration.faults.harms import KILLED
from tests.integration.traffic import traffic


def test_the_arithmetic_finds_dispatches_sent_outside_the_transaction(
    kafka: LocalKafka, prefix: str, tmp_path: Path
) -> None:
    here = deploy(kafka.bootstrap, prefix, tmp_path, shards=1)
    trace = tmp_path / "faults.txt"
    faults = f"before_commit=0.5;trace={trace}"

    def found_out() -> bool:
        found = problems(gather(here.servers, prefix, 1))
        return all(any(what in each for each in found) for what in ("dispatched 2 times", "sequence numbers twice"))

    with (
        here.scheduler("broken", module="tests.integration.broken_scheduler") as broken,
        traffic(here.servers, prefix, per_s=50) as (feeder, _),
    ):
        broken.wait_until_ready({0})
        clock.wait_until(lambda: feeder.filed > 100, 20, what="a hundred requests")
        broken.kill()
        # A step that was killed may have had nothing to send, and the next owner must get as far as deciding again.
        for _ in range(20):
            broken.start(faults=faults)
            clock.wait_until(lambda: broken.poll() == KILLED, 60, what="the fault")
            if found_out():
                break
    assert found_out()
    assert {line.split()[1] for line in trace.read_text().splitlines()} == {"before_commit"}
