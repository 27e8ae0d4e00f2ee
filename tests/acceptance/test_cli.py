"""The command line end to end: a local Kafka, a scheduler, and everything a user does with them."""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streams import clock
from tests.acceptance.conftest import STOP_S, Shell

WAIT_S = 60.0


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own, since all tests share one deployment."""
    return f"tenant-{uuid.uuid4().hex[:8]}"


@contextmanager
def worker(shell: Shell, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that must end well on SIGTERM."""
    with shell.start("worker", *arguments) as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_S) == 0
        finally:
            process.kill()


def row_of(shell: Shell, tenant: str) -> dict[str, Any]:
    """What `status` shows of a tenant; empty if it is not there yet."""
    done = shell.run("status", "--json", "--tenant", tenant)
    assert done.status == 0, done.err
    rows: list[dict[str, Any]] = done.json["tenants"]
    return rows[0] if rows else {}


def wait_for_row(shell: Shell, tenant: str, **expected: object) -> dict[str, Any]:
    """Wait until the tenant's row has these values."""
    rows: list[dict[str, Any]] = []

    def as_expected() -> bool:
        rows.append(row_of(shell, tenant))
        return {name: rows[-1].get(name) for name in expected} == expected

    try:
        clock.wait_until(as_expected, WAIT_S, 0.2)
    except TimeoutError:
        raise AssertionError(f"{tenant}: {rows[-1]} instead of {expected}") from None
    return rows[-1]


def test_a_file_of_runs_is_served_by_simulated_workers(up: Shell, tenant: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    lines = [f'{tenant},summarise,"{{""tokens"": {number}}}"' for number in range(1, 101)]
    path.write_text("\n".join(["tenant,workflow,payload", *lines, f"{tenant},,", "b,w,{x"]) + "\n", encoding="utf-8")
    done = up.run("submit", "--file", str(path), "--json")
    assert done.status == 1
    assert done.json["submitted"] == 100
    assert [bad["line"] for bad in done.json["bad"]] == [102, 103]
    assert f"{path}:102: workflow: missing" in done.err
    with worker(up, "--simulate", "--tokens-per-second", "10000"):
        row = wait_for_row(up, tenant, ended=100)
    assert row["spent"] == sum(range(1, 101))
    assert (row["queued_runs"], row["flight_runs"], row["state"]) == (0, 0, "idle")


def test_the_same_file_again_changes_nothing(up: Shell, tenant: str, tmp_path: Path) -> None:
    path = tmp_path / f"{tenant}.jsonl"
    path.write_text(f'{{"tenant": "{tenant}", "workflow": "w", "payload": {{"tokens": 7}}}}\n' * 3, encoding="utf-8")
    with worker(up, "--simulate"):
        for _ in range(2):
            assert up.run("submit", "--file", str(path)).status == 0
        up.run("submit", "--tenant", tenant, "--workflow", "w", "--run-id", "last", "--payload", '{"tokens": 1}')
        row = wait_for_row(up, tenant, ended=4)
    assert row["spent"] == 3 * 7 + 1


def test_a_command_does_the_runs(up: Shell, tenant: str, tmp_path: Path) -> None:
    script = tmp_path / "do.sh"
    script.write_text(
        f"""#!/bin/sh
cat > "{tmp_path}/$FAIRSTREAM_RUN_ID.$FAIRSTREAM_ATTEMPT"
echo 42 > "$FAIRSTREAM_USAGE_FILE"
case $FAIRSTREAM_RUN_ID in
  bad) echo no such document >&2; exit 65 ;;
esac
""",
        encoding="utf-8",
    )
    script.chmod(0o755)
    for run_id, payload in (("good", '{"doc": 1.50}'), ("bad", "[]")):
        done = up.run("submit", "--tenant", tenant, "--workflow", "w", "--run-id", run_id, "--payload", payload)
        assert (done.status, done.out) == (0, f"submitted {run_id}\n")
    with worker(up, "--exec", str(script)):
        row = wait_for_row(up, tenant, ended=2)
    assert row["spent"] == 84
    assert {path.name: path.read_text() for path in tmp_path.glob("*.1")} == {"good.1": '{"doc": 1.50}', "bad.1": "[]"}


def test_a_run_in_progress_is_cancelled_and_its_command_ended(up: Shell, tenant: str, tmp_path: Path) -> None:
    script = tmp_path / "do.sh"
    script.write_text(
        f"""#!/bin/sh
trap 'touch "{tmp_path}/ended"; exit 1' TERM
echo 5 > "$FAIRSTREAM_USAGE_FILE"
touch "{tmp_path}/begun"
while :; do sleep 0.05; done
""",
        encoding="utf-8",
    )
    script.chmod(0o755)
    with worker(up, "--exec", str(script)):
        up.run("submit", "--tenant", tenant, "--workflow", "w", "--run-id", "long")
        clock.wait_until((tmp_path / "begun").exists, WAIT_S, what="the start of the command")
        assert up.run("cancel", tenant, "long").status == 0
        clock.wait_until((tmp_path / "ended").exists, WAIT_S, what="the end of the command")
        row = wait_for_row(up, tenant, ended=1, flight_runs=0)
    assert row["spent"] == 5


def test_a_queued_run_is_cancelled(up: Shell, tenant: str) -> None:
    up.run("submit", "--tenant", tenant, "--workflow", "w", "--run-id", "later", "--not-before", "+1h")
    assert up.run("cancel", tenant, "later", "--json").json[0]["run_id"] == "later"
    wait_for_row(up, tenant, ended=1, queued_runs=0)


def test_a_policy_is_applied_and_shown(up: Shell, tmp_path: Path) -> None:
    before = up.run("policy", "show", "--json").json
    path = tmp_path / "policy.toml"
    path.write_text("[tenants.acme]\nweight = 3\n", encoding="utf-8")
    applied = up.run("policy", "apply", str(path), "--author", "test", "--json")
    assert applied.status == 0, applied.err
    assert applied.json["version"] > before["version"]
    shown = up.run("policy", "show", "--json").json
    assert (shown["version"], shown["author"]) == (applied.json["version"], "test")
    assert shown["policy"]["tenants"]["acme"]["weight"] == 3
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("quantum = -1\n", encoding="utf-8")
    assert up.run("policy", "apply", str(wrong)).status == 2
    assert up.run("policy", "show", "--json").json["version"] == applied.json["version"]


def test_classes_and_groups_are_stated_and_seen(up: Shell, tenant: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        f"""
        between_classes = "shares"
        classes = [{{ name = "default", weight = 3 }}, {{ name = "batch" }}]
        groups.ours.weight = 2
        tenants.{tenant} = {{ group = "ours", max_runs_in_flight = 1 }}
        """,
        encoding="utf-8",
    )
    applied = up.run("policy", "apply", str(path))
    assert "2 classes by weight, 1 group, 1 tenant named" in applied.out
    for number in range(2):
        up.run("submit", "--tenant", tenant, "--workflow", "w", "--class", "batch", "--run-id", str(number))
    row = wait_for_row(up, tenant, **{"class": "batch", "group": "ours", "skip": "cap_runs", "flight_runs": 1})
    classes = [each for each in up.run("status", "--json").json["classes"] if each["shard"] == row["shard"]]
    assert [(each["class"], each["blocked_flows"]) for each in classes] == [("default", 0), ("batch", 1)]
    for number in range(2):
        up.run("cancel", tenant, str(number))


def test_topics_are_checked(up: Shell) -> None:
    assert "all topics are as they should be" in up.run("topics", "--shards", "2").out
    dry = up.run("topics", "--shards", "3", "--dry-run", "--json")
    assert dry.status == 2
    assert len(dry.json["problems"]) == 7
    assert "6 partitions" not in up.run("topics", "--shards", "3").err
    done = up.run("topics", "--prefix", "other.", "--shards", "3", "--dry-run")
    assert (done.status, done.out.count("would create other.")) == (0, 10)
    assert "no such topic" in up.run("worker", "--prefix", "other.", "--simulate").err


def test_status_is_a_table_for_people(up: Shell, tenant: str) -> None:
    up.run("submit", "--tenant", tenant, "--workflow", "w", "--not-before", "+1h")
    wait_for_row(up, tenant, queued_runs=0)
    out = up.run("status").out
    assert "stated  observed" in out
    assert "waits for" in out
    assert "gap" in out
    assert tenant in out
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["0", "1"]


def test_status_can_be_watched(up: Shell) -> None:
    with up.start("status", "--watch", "--json") as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            process.send_signal(signal.SIGINT)
            assert process.wait(STOP_S) == 130
        finally:
            process.kill()
    assert all('"shards"' in line for line in lines)


def test_a_wrong_topic_count_is_told_by_a_scheduler_that_does_not_start(up: Shell) -> None:
    done = up.run("scheduler", "--shards", "5")
    assert done.status == 2
    assert "5 wanted" in done.err
