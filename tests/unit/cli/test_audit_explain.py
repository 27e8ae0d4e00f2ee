"""`fairstream audit explain` over an exported directory: what is shown, and what the exit status says."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from streams.audit.export import export
from streams.audit.recording import MemoryRecording
from streams.cli.audit.explain_tables import tables
from streams.cli.tree import app
from streams.core.inputs import SUCCEEDED
from streams.errors import ConfigError
from streams.wire import decode_journal
from tests.builders import make_policy
from tests.recorded import record
from tests.unit.audit.explain.watched import Watched

Explain = Callable[..., Result]


@pytest.fixture(scope="module")
def recorded() -> MemoryRecording:
    return record(1, ticks=50)


@pytest.fixture(scope="module")
def explain(recorded: MemoryRecording, tmp_path_factory: pytest.TempPathFactory) -> Explain:
    directory = tmp_path_factory.mktemp("explain") / "export"
    export(recorded, directory, now_ms=1)
    return lambda *arguments: run(directory, *arguments)


def run(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", "explain", *arguments, "--from", str(directory)])


def dispatched(recorded: MemoryRecording) -> tuple[str, str]:
    """A run that waited for some time: its name and its tenant."""
    entries = [decode_journal(each.value) for each in recorded.read("journal", 0)]
    (first, *_) = [each for entry in entries[len(entries) // 2 :] for each in entry.decisions]
    return first.run_id, first.tenant


def test_the_story_comes_first_and_then_what_it_rests_on(recorded: MemoryRecording, explain: Explain) -> None:
    run_id, tenant = dispatched(recorded)
    result = explain(run_id)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"Run {run_id} of tenant {tenant} ")
    titles = ["where the time went", "attempts (tokens)", "served while it waited", "how its tenant stood"]
    places = [result.stdout.index(title) for title in titles]
    assert places == sorted(places)
    (total,) = [line for line in result.stdout.splitlines() if line.startswith("sum ")]
    told = orjson.loads(explain(run_id, "--json").stdout)["run"]
    assert int(total.split()[1].replace(",", "")) == sum(told["time_ms"].values())


def test_a_tenant_that_has_no_such_run(recorded: MemoryRecording, explain: Explain) -> None:
    run_id, _ = dispatched(recorded)
    result = explain(run_id, "--tenant", "nobody")
    assert isinstance(result.exception, ConfigError)
    assert result.exception.field == "RUN_ID"


def test_a_record_that_diverges_is_told_and_is_no_success(recorded: MemoryRecording, tmp_path: Path) -> None:
    run_id, _ = dispatched(recorded)
    journal = list(recorded.topics["journal", 0])
    message = orjson.loads(journal[1].value or b"")
    journal[1] = journal[1]._replace(value=orjson.dumps(message | {"now_ms": message["now_ms"] + 1}))
    export(recorded.replaced({("journal", 0): journal}), tmp_path / "export", now_ms=1)
    result = run(tmp_path / "export", run_id)
    assert result.exit_code == 1
    assert "the record cannot be followed any further: shard 0, step " in result.stderr


def test_a_refused_run_has_no_tables(recorded: MemoryRecording, explain: Explain) -> None:
    refused = next(
        each
        for entry in map(decode_journal, (each.value for each in recorded.read("journal", 0)))
        for each in entry.rejections
        if each.reason == "duplicate"
    )
    result = explain(refused.run_id, "--offset", str(refused.position))
    assert result.exit_code == 0, result.output
    assert "The reason is duplicate; another try would not have helped." in result.stdout
    assert "where the time went" not in result.stdout


def shown(shard: Watched) -> list[str]:
    out = io.StringIO()
    Console(width=300, file=out).print(tables(shard.life()))
    assert all(line.isprintable() for line in out.getvalue().splitlines())
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_names_that_others_chose_are_only_names() -> None:
    tenant = "[red]a[/red]\x1b[2J"
    shard = Watched(make_policy(runs=1), tenant=tenant)
    shard.submit("z", "z1")
    shard.submit(tenant, "r")
    shard.finish(shard.dispatches[0], after_ms=10)
    shard.report(SUCCEEDED, after_ms=5, tokens=120)
    lines = shown(shard)
    assert r"[red]a[/red]\x1b[2J default 1 100.0 % 0.0 % 0 0 - 0 1 / 100 0 to 0" in lines
    assert "1 1970-01-01 00:16:40.010Z 5 2 10 ms 100 100 120 5 ms w1 succeeded" in lines
    assert "window_runs 10 66.7% waited for a place in the window, being next" in lines
    assert "sum 15 of which it waited 10 ms" in lines


def test_many_tenants_are_cut_and_counted() -> None:
    shard = Watched(make_policy(runs=1))
    for number in range(20):
        shard.submit(f"o{number:02}", "o")
    shard.submit("a", "r")
    assert "and 5 more; --json tells all" in shown(shard)


def test_a_run_that_waits_has_no_attempts_to_show() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    for _ in range(40):
        shard.step(after_ms=10)
    lines = shown(shard)
    assert not any(line.startswith("attempts") for line in lines)
    assert "400 ms 44 window runs 0 0 1 0 1 / 1" in lines


def test_the_picture_is_drawn_and_a_wrong_name_is_refused_before_the_work(
    recorded: MemoryRecording, explain: Explain, tmp_path: Path
) -> None:
    run_id, _ = dispatched(recorded)
    path = tmp_path / "run.svg"
    assert explain(run_id, "--picture", str(path)).stderr.endswith(f"drawn: {path}\n")
    assert path.read_text(encoding="utf-8").startswith("<?xml")
    refused = explain("no such run", "--picture", str(tmp_path / "run.png"))
    assert isinstance(refused.exception, ConfigError)
    assert refused.exception.field == "picture"
