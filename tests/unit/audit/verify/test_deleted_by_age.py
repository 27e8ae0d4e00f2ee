"""Topics of which the beginning was deleted in its time: nothing is wrong with them, and little hides behind that."""

from __future__ import annotations

import pytest

from streams.audit.recording import MemoryRecording
from tests.unit.audit.verify.tampered import check, recording
from tests.unit.audit.verify.tampering import documents, records

OUTPUTS = ("dispatch", "rejected", "journal", "state")
FAR = 1 << 45  # ms: a time that has not come


def written_later(ms: int) -> MemoryRecording:
    """As in Kafka: a step's records are written a little after the time that it has told."""
    return recording().replaced(
        {
            place: [each._replace(timestamp=each.timestamp + ms) for each in own]
            for place, own in recording().topics.items()
            if place[0] in OUTPUTS
        }
    )


def without_the_first(given: MemoryRecording, topic: str, number: int) -> MemoryRecording:
    return given.replaced({(topic, partition): records(given, topic, partition)[number:] for partition in range(2)})


@pytest.mark.parametrize("topic", ["dispatch", "rejected"])
@pytest.mark.parametrize("number", [1, 2, 5, 9])
@pytest.mark.parametrize("ms", [0, 1, 40, 3_000])
def test_nothing_is_wrong_where_the_oldest_are_gone(topic: str, number: int, ms: int) -> None:
    assert check(without_the_first(written_later(ms), topic, number)).problems == []


def test_one_that_is_gone_from_the_middle_is_found_whatever_time_the_first_ones_claim() -> None:
    given = without_the_first(written_later(3), "dispatch", 3)
    own = {partition: records(given, "dispatch", partition) for partition in range(2)}
    said = [each["shard"] for each in documents(given, "dispatch", 1)]
    index = next(index for index in range(5, len(said)) if said[index] == said[0])
    gone = documents(given, "dispatch", 1)[index]
    del own[1][index]
    own[0] = [each._replace(offset=index) for index, each in enumerate(own[0])]  # nothing was deleted here
    own[1][0] = own[1][0]._replace(timestamp=FAR)
    report = check(given.replaced({("dispatch", partition): each for partition, each in own.items()}))
    assert [(each.check, each.shard, each.step) for each in report.problems if "decided, and not" in each.sentence] == [
        ("dispatches", gone["shard"], gone["step"])
    ]
