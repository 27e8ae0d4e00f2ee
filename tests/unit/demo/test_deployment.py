from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streams.demo.deployment import Deployment, _commands
from streams.errors import StartFailed
from streams.kafka import KafkaSettings
from streams.simulate.story import Story

KAFKA = KafkaSettings(servers="nowhere:1", prefix="t.")


def deployment(log: Path, exit_status: int | None) -> Deployment:
    process = cast("Any", SimpleNamespace(exit_status=exit_status))
    unused = cast("Any", None)
    return Deployment(kafka=KAFKA, publisher=unused, observer=unused, processes={log: process})


def test_nothing_is_said_while_the_processes_run(tmp_path: Path) -> None:
    deployment(tmp_path / "fleet.log", None).check()


def test_a_process_that_has_ended_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "scheduler.log"
    log.write_text("\n".join(f"line {number}" for number in range(100)), encoding="utf-8")
    with pytest.raises(
        StartFailed, match=r"the scheduler ended with exit status 2.*\nline 85\n(.*\n)+line 99$"
    ) as caught:
        deployment(log, 2).check()
    assert caught.value.log == log


def test_the_processes_are_what_a_person_would_type(tmp_path: Path, story: Story) -> None:
    commands = dict(_commands(KAFKA, story, tmp_path / "kafka.properties", tmp_path))
    scheduler, fleet = commands[tmp_path / "scheduler.log"], commands[tmp_path / "fleet.log"]
    assert scheduler[0] == "scheduler"
    assert fleet[:2] == ["worker", "--simulate"]
    for command in (scheduler, fleet):
        options = dict(pairwise(command))
        assert (options["--kafka"], options["--prefix"]) == ("nowhere:1", "t.")
        assert options["--kafka-config"] == str(tmp_path / "kafka.properties")
    assert ("--concurrency", str(story.slots)) in list(pairwise(fleet))
