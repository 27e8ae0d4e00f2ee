"""`fairstream submit`."""

from __future__ import annotations

import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.cli import options
from streams.cli.moments import parse_duration, parse_moment
from streams.cli.output import counted, remark, say, say_json
from streams.errors import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streams.errors import BadRecord
    from streams.kafka import KafkaSettings


def submit(
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            exists=True,
            dir_okay=False,
            readable=True,
            help="Many: a .csv with a header, or JSON objects line by line.",
        ),
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="With --file: runs a second at most.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose run it is.")] = None,
    workflow: Annotated[str | None, typer.Option(help="The kind of run; its cost is learned by this name.")] = None,
    run_id: Annotated[str | None, typer.Option(help="Its identity; without it a random one, which is printed.")] = None,
    payload: Annotated[
        str | None, typer.Option(help="JSON for the worker; @FILE reads it, - takes standard input.")
    ] = None,
    class_: Annotated[str | None, typer.Option("--class", help="Priority class.")] = None,
    estimate: Annotated[int | None, typer.Option(help="Tokens it may cost, as you guess.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens it may cost at most.")] = None,
    not_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it may start: 2026-07-01T12:00Z, or +5m.")
    ] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help="When it is no longer of use.")] = None,
    max_attempts: Annotated[int | None, typer.Option(help="Dispatches at most.")] = None,
    lease: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long a worker may stay silent: 90s, 5m.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=TEXT", help="For the worker; may be repeated.")
    ] = None,
    own_topic_of: options.OwnTopicOf = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Ask for a run, or for every run of a file.

    A file's columns (or its objects' fields) are those of schemas/run_request.avsc: tenant, run_id, workflow, class,
    estimate, max_tokens, not_before_ms, deadline_ms, max_attempts, lease_ms, payload, headers. A line without run_id
    gets one from the file's name and its number, so the same file may be submitted again.
    """
    settings = options.kafka_settings(kafka, prefix, kafka_config)
    if file is not None:
        if any(value is not None for value in (tenant, workflow, run_id, payload)):
            raise typer.BadParameter("--file brings its own runs: leave out --tenant, --workflow, --run-id, --payload")
        _submit_file(settings, own_topic_of, file, rate, json=json)
        return
    if tenant is None or workflow is None:
        raise typer.BadParameter("say --tenant and --workflow, or --file")
    from streams import clock
    from streams.client.publisher import Publisher

    now_ms = clock.now_ms()
    identity = run_id or str(uuid.uuid4())
    # All of the command line is read before Kafka is asked for anything.
    body = _read_payload(payload)
    headers = _read_headers(header or [])
    may_start = parse_moment(not_before, now_ms) if not_before else None
    ends = parse_moment(deadline, now_ms) if deadline else None
    silence = parse_duration(lease) if lease else None
    with Publisher(settings, own_topic_of=own_topic_of) as publisher:
        publisher.check()
        place = publisher.submit(
            tenant,
            identity,
            workflow,
            body,
            class_=class_,
            estimate=estimate,
            max_tokens=max_tokens,
            not_before=may_start,
            deadline=ends,
            max_attempts=max_attempts,
            lease=silence,
            headers=headers,
        ).result()
    if json:
        say_json({"tenant": tenant, "run_id": identity, **place._asdict()})
    else:
        say(f"submitted {visible(identity)}")


def _submit_file(
    settings: KafkaSettings, own_topic_of: str | None, file: Path, rate: float | None, *, json: bool
) -> None:
    from streams.client.publisher import Publisher
    from streams.client.run_files import read_runs
    from streams.client.submitting import submit_lines

    problems: list[dict[str, Any]] = []

    def bad_line(number: int, problem: BadRecord) -> None:
        problems.append({"line": number, "field": problem.field, "problem": str(problem)})
        remark(f"{file}:{number}: {problem}")

    with Publisher(settings, own_topic_of=own_topic_of) as publisher, _progress(file) as advance:
        publisher.check()
        done = submit_lines(publisher, read_runs(file), bad_line=bad_line, progress=advance, rate=rate)
    if json:
        say_json({"submitted": done.filed, "bad": problems})
    else:
        bad = f"; {counted(done.bad, 'bad line')}, see above" if done.bad else ""
        say(f"submitted {counted(done.filed, 'run')}{bad}")
    if done.bad:
        raise typer.Exit(1)


@contextmanager
def _progress(file: Path) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty() or not file.is_file():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with file.open("rb") as lines:
        total = sum(1 for _ in lines)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"submitting {file.name}", total=total)
        yield lambda: bar.advance(task)


def _read_payload(text: str | None) -> Any:
    """The payload as JSON text, to be sent byte for byte: numbers keep all their digits."""
    import orjson

    if text is None:
        return None
    if text == "-":
        data = sys.stdin.buffer.read()
    elif text.startswith("@"):
        try:
            data = Path(text[1:]).read_bytes()
        except OSError as error:
            raise typer.BadParameter(f"--payload {text}: {error.strerror}") from error
    else:
        data = text.encode()
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"--payload is not JSON: {error}") from error
    return orjson.Fragment(data)


def _read_headers(pairs: list[str]) -> dict[str, str]:
    headers = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"--header {pair!r}: write NAME=TEXT")
        headers[name] = value
    return headers
