"""Runs a command of the operating system for each run: any program in any language is a worker.

The contract, also printed by `fairstream worker --help`:

    standard input       the payload, as JSON, byte for byte as it was submitted; empty if there is none
    FAIRSTREAM_TENANT, FAIRSTREAM_RUN_ID, FAIRSTREAM_WORKFLOW, FAIRSTREAM_CLASS, FAIRSTREAM_ATTEMPT,
    FAIRSTREAM_ESTIMATE, FAIRSTREAM_MAX_TOKENS, FAIRSTREAM_DEADLINE_MS, FAIRSTREAM_HEADERS (JSON)
    FAIRSTREAM_USAGE_FILE  write the tokens spent so far into this file, as one whole number; write it again
                         when it has grown. Without it the estimate is what the run is charged.
    exit status 0        succeeded
    exit status 65       failed, and no attempt will help (EX_DATAERR)
    anything else        failed, another attempt may help; the last line on standard error is the reason

A run that is not wanted any more (deadline, cancelled, worker stops) gets SIGTERM, to its whole process group, and
SIGKILL if it is still there after two seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from streams.client.verdicts import GiveUp, TryAgain
from streams.errors import ConfigError

if TYPE_CHECKING:
    from streams.client.functions import Async
    from streams.client.run import Run

FAILED_FOR_GOOD: Final = 65

_GRACE_S: Final = 2.0  # from SIGTERM to SIGKILL
_USAGE_EVERY_S: Final = 1.0  # how often the usage file is looked at while the command runs
_LAST_WORDS_S: Final = 0.5  # for what is still in the pipe when the command has ended
_MAX_REASON: Final = 300  # characters of the last line on standard error


def command(line: str) -> Async:
    """Return a function for `Worker.run` that runs `line`, split as a shell would but without a shell.

    Raises `ConfigError` if there is no such program.
    """
    try:
        arguments = shlex.split(line)
    except ValueError as error:
        raise ConfigError(f"cannot be split into words: {error}", field="exec", value=line) from error
    if not arguments or shutil.which(arguments[0]) is None:
        raise ConfigError("no such program; give its path, or a name on PATH", field="exec", value=line)

    async def run_command(run: Run) -> None:
        with tempfile.TemporaryDirectory(prefix="fairstream-run-") as folder:
            await _run(arguments, run, Path(folder) / "tokens")

    return run_command


async def _run(arguments: list[str], run: Run, usage: Path) -> None:
    async with _errors_of_a_command() as (errors, stderr):
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **_environment(run, usage)},
                start_new_session=True,  # a process group of its own, so that all of it can be ended
            )
        finally:
            os.close(stderr)  # the command has its own; when the last of those is closed, all has been said
        assert process.stdin is not None
        feeding = asyncio.create_task(_feed(process.stdin, run.assignment.payload_json))
        try:
            while (status := await _wait(process, _USAGE_EVERY_S)) is None:
                _count(run, usage)
            await errors.wait_for_end(_LAST_WORDS_S)
        finally:
            if process.returncode is None:
                await _end_group(process)
            feeding.cancel()
            process.stdin.close()
            _count(run, usage)
    if status == FAILED_FOR_GOOD:
        raise GiveUp(errors.last_line or f"exit status {status}")
    if status != 0:
        ended = f"exit status {status}" if status > 0 else f"ended by {signal.Signals(-status).name}"
        raise TryAgain(f"{ended}: {errors.last_line}" if errors.last_line else ended)


def _environment(run: Run, usage: Path) -> dict[str, str]:
    about = run.assignment
    values = {
        "TENANT": about.tenant,
        "RUN_ID": about.run_id,
        "WORKFLOW": about.workflow,
        "CLASS": about.class_,
        "ATTEMPT": about.attempt,
        "ESTIMATE": about.estimate,
        "MAX_TOKENS": about.max_tokens,
        "DEADLINE_MS": about.deadline_ms,
        "HEADERS": orjson.dumps(about.headers).decode(),
        "USAGE_FILE": usage,
    }
    # No environment can hold a NUL; tenants and run ids may.
    texts = {name: "" if value is None else str(value).replace("\0", "?") for name, value in values.items()}
    return {f"FAIRSTREAM_{name}": text for name, text in texts.items()}


async def _feed(stdin: asyncio.StreamWriter, payload: bytes) -> None:
    try:
        stdin.write(payload)
        await stdin.drain()
        stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # a command need not read its payload


async def _wait(process: asyncio.subprocess.Process, timeout_s: float) -> int | None:
    try:
        return await asyncio.wait_for(process.wait(), timeout_s)
    except TimeoutError:
        return None


class _Errors(asyncio.Protocol):
    """Copies a command's standard error to ours, and keeps its last line that says something."""

    def __init__(self) -> None:
        self.last_line = ""
        self._ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        text = data.decode(errors="replace")
        sys.stderr.write(text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        self.last_line = lines[-1][:_MAX_REASON] if lines else self.last_line

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's
        self._ended.set()

    async def wait_for_end(self, timeout_s: float) -> None:
        """Wait until all of it was read. Not for ever: something that was left behind may hold the pipe open."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), timeout_s)


@contextlib.asynccontextmanager
async def _errors_of_a_command() -> AsyncIterator[tuple[_Errors, int]]:
    """A pipe of our own, since asyncio's cannot be closed while somebody else holds its other end."""
    reading, writing = os.pipe()
    transport, errors = await asyncio.get_running_loop().connect_read_pipe(_Errors, os.fdopen(reading, "rb", 0))
    try:
        yield errors, writing
    finally:
        transport.close()


def _count(run: Run, usage: Path) -> None:
    """Take over what the usage file says, if it says more than before; a half-written number is seen next time."""
    try:
        tokens = int(usage.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if tokens >= (run.tokens or 0):
        run.spent(tokens - (run.tokens or 0))


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End a command that runs, and all that it has started."""
    with contextlib.suppress(ProcessLookupError):  # it may end by itself at any time
        os.killpg(process.pid, signal.SIGTERM)
        if await _wait(process, _GRACE_S) is None:
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
