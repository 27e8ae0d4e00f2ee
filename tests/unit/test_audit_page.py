"""AUDIT.md says what is true: its example is run, and what it says of topics and fields is held against the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from streams.audit.export import ExportedRecording, export
from streams.audit.recording import MemoryRecording
from streams.cli.tree import app
from streams.wire import TOPICS
from tests.audit_example import EXAMPLE
from tests.audit_page import PAGE, printed, shown

TEXT = PAGE.read_text(encoding="utf-8")
DAY_MS = 86_400_000


@pytest.mark.parametrize(("command", "lines"), [*shown(TEXT)])
def test_the_example_prints_what_the_page_shows(
    command: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where this fails after a wanted change: `python -m tests.audit_page` writes the page anew.

    After a change of the core's version `python -m tests.audit_example` makes the record anew, on a real Kafka.
    """
    monkeypatch.chdir(PAGE.parent)
    assert printed(command) == lines


def test_the_alteration_that_the_page_tells_of_is_found_as_it_says(tmp_path: Path) -> None:
    exported = ExportedRecording(EXAMPLE)
    recording = MemoryRecording(prefix=exported.prefix, shards=exported.shards)
    for topic in (each.name for each in TOPICS):
        for partition in range(exported.partitions(topic)):
            recording.topics[topic, partition] = list(exported.read(topic, partition))
    journal = recording.topics["journal", 0]
    entry = orjson.loads(journal[32].value or b"")
    assert entry["step"] == 33
    entry["decisions"]["estimate"][0] -= 100
    journal[32] = journal[32]._replace(value=orjson.dumps(entry))
    export(recording, tmp_path / "altered", now_ms=0)

    def run(command: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["audit", command, "--from", str(tmp_path / "altered")])
        return result.exit_code, result.stdout

    status, said = run("replay")
    assert status == 1
    (told,) = re.findall(r"^```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert said.startswith(told)
    status, said = run("verify")
    assert status == 1
    for check in ("dispatches ", "chain ", "settlements "):
        assert f"\n{check}" in said


def test_each_topic_is_kept_for_as_long_as_the_page_says() -> None:
    kept = {
        name: days
        for names, days in re.findall(r"^\| ((?:`runs\.\w+`(?:, )?)+) \|.*\| (.*) \|$", TEXT, re.MULTILINE)
        for name in re.findall(r"`runs\.(\w+)`", names)
    }
    said = {topic.name: topic.configs.get("retention.ms") for topic in TOPICS if topic.name in kept}
    assert {name for name, days in kept.items() if days.endswith("days")} == {
        name for name, ms in said.items() if ms is not None
    }
    for name, ms in said.items():
        assert ms is None or kept[name] == f"{int(ms) // DAY_MS} days"
    assert {topic.name for topic in TOPICS} - set(kept) == {"board", "status"}, "these are for schedulers and people"


def test_each_field_of_the_journal_is_explained() -> None:
    schema = json.loads((PAGE.parent / "schemas" / "journal.avsc").read_text(encoding="utf-8"))
    table = TEXT.partition("| field | what it says |")[2].partition("\n\n")[0]
    explained = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.partition(" | ")[0])]
    assert sorted(explained) == sorted(field["name"] for field in schema["fields"])
