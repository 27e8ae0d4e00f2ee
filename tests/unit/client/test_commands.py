"""Commands are real processes here: there is nothing to gain from pretending."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams import clock
from streams.client.commands import command
from streams.client.run import Run
from streams.client.verdicts import GiveUp, TryAgain
from streams.errors import ConfigError
from tests.unit.client.fakes import make_assignment


def python(code: str) -> str:
    """A command line that runs a Python program."""
    return shlex.join([sys.executable, "-c", code])


def shell(script: str) -> str:
    return shlex.join(["sh", "-c", script])


def do(line: str, run: Run | None = None) -> Run:
    run = run or Run(make_assignment())
    asyncio.run(asyncio.wait_for(command(line)(run), 30))
    return run


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_it_gets_the_payload_byte_for_byte_and_the_run_in_its_environment(tmp_path: Path) -> None:
    body = b'{"max_tokens":9,"payload":{"n": 1.50, "big": 123456789012345678901},"headers":{"h":"v"}}'
    run = Run(make_assignment("r7", attempt=2, estimate=5, deadline_ms=99, body=body))
    do(shell(f"cat > {tmp_path}/payload; env > {tmp_path}/env"), run)
    assert (tmp_path / "payload").read_bytes() == b'{"n": 1.50, "big": 123456789012345678901}'
    lines = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    expected = {
        "TENANT": "acme",
        "RUN_ID": "r7",
        "WORKFLOW": "summarise",
        "CLASS": "default",
        "ATTEMPT": "2",
        "ESTIMATE": "5",
        "MAX_TOKENS": "9",
        "DEADLINE_MS": "99",
    }
    assert {name: lines[f"FAIRSTREAM_{name}"] for name in expected} == expected
    assert orjson.loads(lines["FAIRSTREAM_HEADERS"]) == {"h": "v"}


HOSTILE = "$(touch {here}/owned)`touch {here}/owned`;touch {here}/owned|../../x\n--flag '\" \x1b[2J\u202e\0"


def test_what_a_tenant_wrote_is_data_and_nothing_else(tmp_path: Path) -> None:
    """No shell reads it, no word of the command and no path is made of it."""
    nasty = HOSTILE.format(here=tmp_path)
    body = orjson.dumps({"payload": nasty, "headers": {nasty: nasty}})
    run = Run(make_assignment(nasty, tenant=nasty, workflow=nasty, class_=nasty, body=body))
    report = (
        "import json, os, sys; json.dump([sys.argv[1:], dict(os.environ), sys.stdin.read()], open(sys.argv[1], 'w'))"
    )
    do(shlex.join([sys.executable, "-c", report, str(tmp_path / "report")]), run)
    arguments, environment, payload = orjson.loads((tmp_path / "report").read_bytes())
    assert arguments == [str(tmp_path / "report")]
    seen = {environment[f"FAIRSTREAM_{name}"] for name in ("TENANT", "RUN_ID", "WORKFLOW", "CLASS")}
    assert seen == {nasty.replace("\0", "?")}
    assert orjson.loads(environment["FAIRSTREAM_HEADERS"]) == {nasty: nasty}
    assert orjson.loads(payload) == nasty
    assert Path(environment["FAIRSTREAM_USAGE_FILE"]).name == "tokens"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_what_a_command_prints_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    do(python("import sys; sys.stderr.write('one\\n\\ttwo \\x1b[2J\\u202e\\n')"))
    assert capsys.readouterr().err == "one\n        two \\x1b[2J\\u202e\n"


def test_headers_that_no_environment_can_hold_are_given_up() -> None:
    """Another attempt would find it no smaller."""
    body = orjson.dumps({"headers": {str(number): "x" * 8_192 for number in range(64)}})
    with pytest.raises(GiveUp, match="environment"):
        do(shell("true"), Run(make_assignment(body=body)))


def test_what_it_writes_into_the_usage_file_is_what_it_spent() -> None:
    assert do(shell("echo 1234 > $FAIRSTREAM_USAGE_FILE")).tokens == 1_234


@pytest.mark.parametrize("written", ["", "many", "-5"])
def test_a_usage_file_without_a_number_of_tokens_says_nothing(written: str) -> None:
    assert do(shell(f"printf '%s' '{written}' > $FAIRSTREAM_USAGE_FILE")).tokens is None


def test_usage_is_seen_while_the_command_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("streams.client.commands._USAGE_EVERY_S", 0.01)
    run = Run(make_assignment())

    async def watch() -> None:
        work = asyncio.ensure_future(
            command(shell(f"echo 5 > $FAIRSTREAM_USAGE_FILE; until [ -e {tmp_path}/go ]; do :; done"))(run)
        )
        await asyncio.to_thread(clock.wait_until, lambda: run.tokens == 5, 20)
        (tmp_path / "go").touch()
        await work

    asyncio.run(asyncio.wait_for(watch(), 30))


def test_a_command_need_not_read_its_payload() -> None:
    do("true", Run(make_assignment(body=b'{"payload":"%s"}' % (b"x" * 900_000))))


def test_status_65_is_for_good() -> None:
    with pytest.raises(GiveUp, match="no such document"):
        do(shell("echo first >&2; echo no such document >&2; exit 65"))


def test_any_other_status_may_be_tried_again() -> None:
    with pytest.raises(TryAgain, match="exit status 3: busy"):
        do(shell("echo busy >&2; exit 3"))


def test_a_command_that_is_killed_may_be_tried_again() -> None:
    with pytest.raises(TryAgain, match="ended by SIGKILL"):
        do(shell("kill -9 $$"))


def test_tokens_of_a_failed_command_count() -> None:
    run = Run(make_assignment())
    with pytest.raises(TryAgain):
        do(shell("echo 9 > $FAIRSTREAM_USAGE_FILE; exit 1"), run)
    assert run.tokens == 9


def test_something_left_behind_does_not_hold_up_the_end() -> None:
    begin = clock.monotonic()
    do(shell("sleep 20 & echo done"))
    assert clock.monotonic() - begin < 10


@pytest.mark.parametrize("line", ["", "no-such-program-anywhere x", "'unclosed"])
def test_a_line_that_cannot_be_run_is_told_at_once(line: str) -> None:
    with pytest.raises(ConfigError, match="exec"):
        command(line)


def cancel_when_begun(line: str, tmp_path: Path) -> list[int]:
    """Run a command until it has written process ids, cancel the run; return those still alive when that has ended."""
    pids = tmp_path / "pids"

    async def cancel() -> None:
        work = asyncio.ensure_future(command(line)(Run(make_assignment())))
        await asyncio.to_thread(clock.wait_until, lambda: pids.exists() and pids.read_text().endswith("\n"), 20)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(asyncio.wait_for(cancel(), 30))
    return [int(pid) for pid in pids.read_text().split() if alive(int(pid))]


HEEDLESS = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("{pids}", "a") as pids:
    pids.write(f"{{os.getpid()}}\\n")
while True:
    signal.pause()
"""


def test_a_cancelled_command_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    assert not cancel_when_begun(shell(f"sleep 60 & echo $$ $! > {tmp_path}/pids; wait"), tmp_path)
    assert len((tmp_path / "pids").read_text().split()) == 2


def test_a_command_that_heeds_no_signal_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.client.commands._GRACE_S", 0.1)
    assert not cancel_when_begun(python(HEEDLESS.format(pids=tmp_path / "pids")), tmp_path)


def test_what_a_command_started_is_killed_though_the_command_itself_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.client.commands._GRACE_S", 0.1)
    heedless = python(HEEDLESS.format(pids=tmp_path / "pids"))
    left = cancel_when_begun(shell(f"{heedless} & wait"), tmp_path)
    clock.wait_until(lambda: not any(alive(pid) for pid in left), 10, what="the effect of SIGKILL")


def test_a_command_has_its_time_to_clean_up_however_often_it_is_cancelled(tmp_path: Path) -> None:
    """And somebody hears what it says meanwhile: else it would be ended by SIGPIPE."""
    line = shell(
        f"""
        trap 'echo ending >&2; touch {tmp_path}/ending
              until [ -e {tmp_path}/go ]; do sleep 0.01; done
              echo ended >&2; touch {tmp_path}/ended; exit 1' TERM
        touch {tmp_path}/begun
        while :; do sleep 0.01; done
        """
    )

    async def cancel() -> None:
        work = asyncio.ensure_future(command(line)(Run(make_assignment())))
        await asyncio.to_thread(clock.wait_until, (tmp_path / "begun").exists, 20)
        work.cancel()
        await asyncio.to_thread(clock.wait_until, (tmp_path / "ending").exists, 20)
        for _ in range(5):
            work.cancel()
            await asyncio.sleep(0)
        assert not work.done()
        (tmp_path / "go").touch()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert (tmp_path / "ended").exists()

    asyncio.run(asyncio.wait_for(cancel(), 30))


def test_a_command_that_is_cancelled_while_it_starts_is_ended_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = asyncio.create_subprocess_exec
    began, may_go_on = asyncio.Event(), asyncio.Event()
    file = tmp_path / "pids"

    async def start_slowly(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*arguments, **options)
        await asyncio.to_thread(clock.wait_until, lambda: file.exists() and file.read_text().endswith("\n"), 20)
        began.set()
        await may_go_on.wait()
        return process

    async def cancel() -> None:
        line = shell(f"sleep 60 & echo $$ $! > {file}; wait")
        work = asyncio.ensure_future(command(line)(Run(make_assignment())))
        await began.wait()
        work.cancel()
        await asyncio.sleep(0)
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await work

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    asyncio.run(asyncio.wait_for(cancel(), 30))
    assert not any(alive(int(pid)) for pid in file.read_text().split())


def test_nothing_stays_open_whenever_a_command_is_cancelled() -> None:
    do = command(shell("exec sleep 60"))

    def open_files() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    async def cancel_after(steps: int) -> None:
        work = asyncio.ensure_future(do(Run(make_assignment())))
        for _ in range(steps):
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    async def cancel() -> None:
        await cancel_after(20)
        await asyncio.sleep(0)  # transports close in the loop's next round
        before = open_files()
        for steps in range(20):
            await cancel_after(steps)
        await asyncio.to_thread(clock.wait_until, lambda: open_files() <= before, 20)

    asyncio.run(asyncio.wait_for(cancel(), 30))
