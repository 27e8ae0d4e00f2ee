"""What is said of the new shards before and after a migration."""

from __future__ import annotations

import pytest

from streams.admin.migration.spread import remarks, runs_of
from streams.core.policy import Limits, Policy, Window
from streams.core.records import Record
from tests.assertions import plain
from tests.builders import make_policy
from tests.drivers import Driver

GIVEN_UP = "with the next newcomer runs are given up"


def shard_of(runs: int) -> list[Record]:
    """One with a run in flight, and the others queued; each of 10 bytes."""
    driver = Driver(make_policy(runs=1))
    driver.submit("a", *[f"r{number}" for number in range(runs)], body=bytes(10))
    return [plain(each) for each in driver.shard.dump()]


def policy(**limits: object) -> Policy:
    return Policy(window=Window(runs=2), limits=Limits(**{"max_queued_bytes": None, **limits}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"max_queued_runs": 3, "max_queued_bytes": 40}, []),
        (
            {"max_queued_runs": 2},
            ["a new shard has 3 queued runs, above the policy's limit of 2: newcomers are refused until it is below"],
        ),
        (
            {"max_queued_bytes": 9, "overload": "drop_longest"},
            ["a new shard has 40 bytes of runs, above the policy's limit of 9: " + GIVEN_UP],
        ),
    ],
)
def test_a_merged_shard_may_be_above_the_limits_of_one(limits: dict[str, object], told: list[str]) -> None:
    shards = [shard_of(4), shard_of(2)]
    assert runs_of(shards) == [4, 2]
    assert list(remarks(shards, policy(**limits))) == told


def test_more_shards_than_places_in_the_window() -> None:
    assert list(remarks([[], []], policy())) == []
    assert list(remarks([[], [], []], policy())) == [
        "3 shards share a window of 2 runs: each has one place all the same"
    ]
