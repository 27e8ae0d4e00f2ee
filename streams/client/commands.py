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

What tenants wrote is data: it stands in the environment and in standard input, never in the command's words or in a
path, and no shell reads it (unless the command is one, and does). A NUL, which an environment cannot hold, is a `?`.

A run that is not wanted any more (deadline, cancelled, worker stops) gets SIGTERM, to its whole process group, and
SIGKILL if any of it is still there after two seconds. Until then its standard error is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from streams import clock
from streams.client.verdicts import GiveUp, TryAgain
from streams.errors import ConfigError, visible

if TYPE_CHECKING:
    from streams.client.functions import Async
    from streams.client.run import Run

FAILED_FOR_GOOD: Final = 65

_GRACE_S: Final = 2.0  # from SIGTERM to SIGKILL
_LOOK_S: Final = 0.02  # how often a process group is looked at meanwhile; only its first member is our child
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
            unwanted = asyncio.get_running_loop().create_future()
            life = asyncio.create_task(_live(arguments, run, Path(folder) / "tokens", unwanted))
            await _until_ended(life, unwanted)

    return run_command


async def _until_ended(life: asyncio.Task[None], unwanted: asyncio.Future[None]) -> None:
    """Await a command's life. A cancellation does not break it off, it is passed on: the command has yet to be ended.

    Whatever came in between, be it a second cancellation, would leave it running, with nobody at its standard error.
    """
    while not life.done():
        try:
            await asyncio.wait([life])
        except asyncio.CancelledError:
            if not unwanted.done():
                unwanted.set_result(None)
    life.result()


async def _live(arguments: list[str], run: Run, usage: Path, unwanted: asyncio.Future[None]) -> None:
    """Start a command and wait for its end, which is brought about when `unwanted` is done. Never cancelled itself.

    Raises `CancelledError` if the command was ended because of `unwanted`, or what its exit status says.
    """
    async with _errors_of_a_command() as (errors, stderr):
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **_environment(run, usage)},
                start_new_session=True,  # a process group of its own, so that all of it can be ended
            )
        except OSError as error:
            if error.errno == errno.E2BIG:  # on Linux: 128 KiB of one text, which headers may exceed
                raise GiveUp("the run's headers are larger than a command's environment may be") from error
            raise
        finally:
            os.close(stderr)  # the command has its own; when the last of those is closed, all has been said
        assert process.stdin is not None
        feeding = asyncio.create_task(_feed(process.stdin, run.assignment.payload_json))
        ended = asyncio.create_task(process.wait())
        either: list[asyncio.Future[Any]] = [ended, unwanted]
        try:
            while not (ended.done() or unwanted.done()):
                await asyncio.wait(either, timeout=_USAGE_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
                _count(run, usage)
        finally:
            by_itself = ended.done()
            if not by_itself:
                await _end_group(process.pid)
            status = await ended
            feeding.cancel()
            process.stdin.close()
        if by_itself:
            await errors.wait_for_end(_LAST_WORDS_S)
        _count(run, usage)
    if not by_itself:
        raise asyncio.CancelledError
    _judge(status, errors.last_line)


def _judge(status: int, last_line: str) -> None:
    """Raise what an exit status says; negative: minus the signal that ended the command."""
    if status == FAILED_FOR_GOOD:
        raise GiveUp(last_line or f"exit status {status}")
    if status != 0:
        ended = f"exit status {status}" if status > 0 else f"ended by {signal.Signals(-status).name}"
        raise TryAgain(f"{ended}: {last_line}" if last_line else ended)


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


class _Errors(asyncio.Protocol):
    """Copies a command's standard error to ours, and keeps its last line that says something."""

    def __init__(self) -> None:
        self.last_line = ""
        self._ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        text = data.decode(errors="replace")
        # A command may well print what a tenant wrote: our terminal must not obey it.
        sys.stderr.write("\n".join(visible(line.expandtabs()) for line in text.split("\n")))
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


async def _end_group(group: int) -> None:
    """End a command, and all that it has started: what has not gone when the time is up is killed.

    A dead process that nobody collects (a container without an init) counts as one that is still there; that costs
    the time.
    """
    end = clock.monotonic() + _GRACE_S
    with contextlib.suppress(ProcessLookupError):  # nobody is left, and that can be at any time
        os.killpg(group, signal.SIGTERM)
        while clock.monotonic() < end:
            await asyncio.sleep(_LOOK_S)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)
