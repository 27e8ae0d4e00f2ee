"""One contract, two kinds of groups: the same tests for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the module names its exports nowhere
    AdminClient,
    ConfigResource,
)

from streams import clock
from streams.client.classic_intake import open_classic_intake
from streams.client.intake import Intake, Taken
from streams.client.share_group import WANTED, prepare
from streams.client.share_intake import open_share_intake
from streams.local import LocalKafka
from tests.integration.client_rig import WAIT_S, Rig

Kind = Literal["share", "classic"]
both = pytest.mark.parametrize("kind", ["share", "classic"])


def open_intake(rig: Rig, kind: Kind) -> Intake:
    group = f"{rig.kafka.prefix}workers"
    if kind == "classic":
        return open_classic_intake(rig.kafka, group)
    prepare(rig.kafka, group)
    return open_share_intake(rig.kafka, group)


def take_until(
    intake: Intake, enough: Callable[[set[str]], bool], *, room: int = 100, settle: bool = True
) -> list[str]:
    """Take until the runs that came are enough; return their ids in the order of arrival."""
    found: list[str] = []

    def look() -> bool:
        taken: Taken = intake.take(room, 0.2)
        found.extend(each.run_id for each in taken.assignments)
        if settle:
            intake.settle()
        return enough(set(found))

    clock.wait_until(look, WAIT_S, 0, what="the runs that were dispatched")
    return found


def ids(*ranges: range) -> set[str]:
    return {f"r{number}" for each in ranges for number in each}


@both
def test_what_was_dispatched_before_comes_too(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    rig.dispatcher.dispatch(*ids(range(20)))
    intake = open_intake(rig, kind)
    assert sorted(take_until(intake, lambda found: len(found) >= 20)) == sorted(ids(range(20)))
    intake.close()


@both
def test_nothing_of_an_aborted_step_comes(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    intake = open_intake(rig, kind)
    rig.dispatcher.dispatch("good-1")
    rig.dispatcher.dispatch(*ids(range(50)), commit=False)
    rig.dispatcher.dispatch("good-2")
    rig.dispatcher.dispatch(*ids(range(50)), commit=False)
    rig.dispatcher.dispatch("good-3")
    wanted = {"good-1", "good-2", "good-3"}
    assert set(take_until(intake, lambda found: wanted <= found)) == wanted
    intake.close()


@both
def test_never_more_than_there_is_room_for(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    rig = Rig(kafka.bootstrap, prefix, dispatch_partitions=1)
    rig.dispatcher.dispatch(*ids(range(40)))
    intake = open_intake(rig, kind)
    found: list[str] = []

    def take_three() -> bool:
        taken = intake.take(3, 0.2)
        assert len(taken.assignments) <= 3
        assert taken.refused == []
        found.extend(each.run_id for each in taken.assignments)
        intake.settle()
        return len(found) >= 40

    clock.wait_until(take_three, WAIT_S, 0, what="forty runs, three at a time")
    assert sorted(found) == sorted(ids(range(40)))
    intake.close()


@both
def test_what_is_not_settled_is_handed_out_again(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    rig.dispatcher.dispatch(*ids(range(10)))
    first = open_intake(rig, kind)
    assert take_until(first, lambda found: len(found) > 0, room=1, settle=False)
    first.close()
    second = open_intake(rig, kind)
    assert set(take_until(second, lambda found: len(found) >= 10)) == ids(range(10))
    second.close()


@both
def test_what_is_settled_is_not_handed_out_again(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    rig.dispatcher.dispatch(*ids(range(10)))
    first = open_intake(rig, kind)
    take_until(first, lambda found: len(found) >= 10)
    first.close()
    rig.dispatcher.dispatch("last")
    second = open_intake(rig, kind)
    assert take_until(second, lambda found: "last" in found) == ["last"]
    second.close()


@both
def test_two_members_share_what_comes(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    members = [open_intake(rig, kind) for _ in range(2)]
    found: list[list[str]] = [[], []]
    steps = 0

    def feed_and_take() -> bool:
        nonlocal steps
        rig.dispatcher.dispatch(*[f"s{steps}-{n}" for n in range(8)])
        steps += 1
        for member, mine in zip(members, found, strict=True):
            mine.extend(each.run_id for each in member.take(4, 0.1).assignments)
            member.settle()
        return all(len(mine) >= 10 for mine in found)

    clock.wait_until(feed_and_take, WAIT_S, 0, what="ten runs for each of two members")
    assert not set(found[0]) & set(found[1])
    for member in members:
        member.close()


@both
def test_a_revocation_is_handed_on(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    rig.dispatcher.revoke("r1", attempt=3)
    intake = open_intake(rig, kind)
    found: list[tuple[str, int]] = []

    def look() -> bool:
        found.extend((each.run_id, each.attempt) for each in intake.take(5, 0.2).revocations)
        intake.settle()
        return bool(found)

    clock.wait_until(look, WAIT_S, 0, what="the revocation")
    assert found == [("r1", 3)]
    intake.close()


def test_the_share_group_is_made_to_read_what_it_must(kafka: LocalKafka, prefix: str) -> None:
    rig = Rig(kafka.bootstrap, prefix)
    group = f"{prefix}g"
    resource = ConfigResource(ConfigResource.Type.GROUP, group)
    admin = AdminClient(rig.kafka.client())
    for _ in range(2):  # and again, when nothing is to be done
        prepare(rig.kafka, group)
        entries = admin.describe_configs([resource])[resource].result(WAIT_S)
        assert {name: entries[name].value for name in WANTED} == WANTED
    assert WANTED == {"share.isolation.level": "read_committed", "share.auto.offset.reset": "earliest"}


@both
def test_the_whole_window_is_opened_again_and_again(kafka: LocalKafka, prefix: str, kind: Kind) -> None:
    """More than 2,000 offsets in steps that fill the worker: where a lost end marker would stop a share partition."""
    rig = Rig(kafka.bootstrap, prefix, dispatch_partitions=1)
    intake = open_intake(rig, kind)
    window, steps = 64, 45
    begin = clock.monotonic()
    for step in range(steps):
        wanted = {f"s{step}-{number}" for number in range(window)}
        rig.dispatcher.dispatch(*wanted)
        assert set(take_until(intake, wanted.issubset, room=window)) == wanted
        for _ in range(2):  # as an idle worker does: here the marker used to come by itself, and to be lost
            assert intake.take(window, 0.02).assignments == []
            intake.settle()
    assert clock.monotonic() - begin < WAIT_S
    intake.close()
