from __future__ import annotations

import pytest

from streams.app.unserved import Trouble, Unserved, trouble_of
from streams.errors import (
    ConfigError,
    DeploymentMoved,
    FairstreamError,
    NotAuthorized,
    OwnershipLost,
    StateUnreadable,
    Unavailable,
)


@pytest.fixture
def unserved() -> Unserved:
    return Unserved(lost_grace_s=30, refused_retry_s=20)


@pytest.mark.parametrize(
    ("failure", "fenced", "trouble"),
    [
        (OwnershipLost(), True, Trouble.LOST),
        (OwnershipLost(), False, Trouble.LOST),
        (Unavailable(), False, Trouble.WAITING),
        (StateUnreadable(), True, Trouble.REFUSED),
        (ConfigError("other counts"), True, Trouble.REFUSED),
        (ConfigError("not authorized"), False, None),
        (DeploymentMoved(), True, None),
        (NotAuthorized(), True, None),
        (FairstreamError(), True, None),
        (RuntimeError("a bug"), True, None),
        (None, True, None),
    ],
)
def test_only_what_another_try_may_mend_is_tried_again(
    failure: BaseException | None, fenced: bool, trouble: Trouble | None
) -> None:
    assert trouble_of(failure, fenced=fenced) is trouble


def test_the_reasons_are_named_in_the_order_of_the_shards(unserved: Unserved) -> None:
    unserved.begin(3, Trouble.WAITING, Unavailable("no answer"), 0)
    unserved.begin(1, Trouble.REFUSED, StateUnreadable("no row"), 0)
    assert list(unserved.reasons.items()) == [(1, "refused: no row"), (3, "waiting: no answer")]


@pytest.mark.parametrize(
    ("trouble", "pauses"),
    [
        (Trouble.LOST, [0.5, 1, 2, 4, 8, 8]),
        (Trouble.WAITING, [1, 2, 4, 8, 15, 15]),
        (Trouble.REFUSED, [20, 20, 20]),
    ],
)
def test_pauses_grow_up_to_a_longest(unserved: Unserved, trouble: Trouble, pauses: list[float]) -> None:
    found = []
    for _ in pauses:
        unserved.begin(0, trouble, FairstreamError("why"), 0)
        found.append(unserved.pause_s(0))
    assert found == pauses
    for _ in range(2_000):
        unserved.begin(0, trouble, FairstreamError("why"), 0)
    assert unserved.pause_s(0) == pauses[-1]


def test_a_shard_that_is_lost_over_and_over_is_hopeless_after_the_grace(unserved: Unserved) -> None:
    for now in (0.0, 10.0, 29.0):
        unserved.begin(0, Trouble.LOST, OwnershipLost("fenced"), now)
        assert not unserved.hopeless(0, now)
        unserved.served(0, now)
    unserved.begin(0, Trouble.LOST, OwnershipLost("fenced"), 31)
    assert unserved.hopeless(0, 31)


def test_a_shard_that_was_served_for_long_in_between_is_a_new_case(unserved: Unserved) -> None:
    unserved.begin(0, Trouble.LOST, OwnershipLost("fenced"), 0)
    unserved.served(0, 1)
    unserved.begin(0, Trouble.LOST, OwnershipLost("fenced"), 32)
    unserved.begin(0, Trouble.LOST, OwnershipLost("fenced"), 33)
    assert not unserved.hopeless(0, 33)


@pytest.mark.parametrize("trouble", [Trouble.WAITING, Trouble.REFUSED])
def test_what_is_not_lost_is_never_hopeless(unserved: Unserved, trouble: Trouble) -> None:
    for now in range(0, 1_000, 100):
        unserved.begin(0, trouble, FairstreamError("why"), now)
        assert not unserved.hopeless(0, now)


def test_another_trouble_is_another_case(unserved: Unserved, caplog: pytest.LogCaptureFixture) -> None:
    unserved.begin(0, Trouble.WAITING, Unavailable("no answer"), 0)
    unserved.begin(0, Trouble.REFUSED, StateUnreadable("no row"), 1)
    unserved.begin(0, Trouble.REFUSED, StateUnreadable("no row"), 2)
    unserved.begin(0, Trouble.REFUSED, StateUnreadable("another row"), 3)
    said = [(record.levelname, record.message) for record in caplog.records]
    assert said == [
        ("WARNING", "streams.app.shard_waiting shard=0: no answer"),
        ("ERROR", "streams.app.shard_refused shard=0: no row"),
        ("ERROR", "streams.app.shard_refused shard=0: another row"),
    ]


def test_a_shard_that_is_served_again_is_in_no_trouble(unserved: Unserved) -> None:
    for trouble in Trouble:
        unserved.begin(0, trouble, FairstreamError("why"), 0)
        unserved.served(0, 1)
        assert unserved.trouble(0) is None
        assert unserved.reasons == {}
    unserved.served(7, 1)  # one that never was


def test_a_shard_that_is_not_ours_any_more_is_forgotten(unserved: Unserved) -> None:
    for shard, trouble in enumerate(Trouble):
        unserved.begin(shard, trouble, FairstreamError("why"), 0)
    unserved.keep({0, 1}, decided_anew=False)
    assert list(unserved.reasons) == [0, 1]
    unserved.keep({0, 1}, decided_anew=True)
    assert list(unserved.reasons) == [1]  # what was lost was lost to the group's decision
