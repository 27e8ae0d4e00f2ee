"""The README, SECURITY.md and AUDIT.md, as far as they can be checked without running them: what they name is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import streams
from streams.kafka import KafkaSettings
from streams.wire import TOPICS
from tests.commands import parse

ROOT = Path(streams.__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = README + "".join((ROOT / name).read_text(encoding="utf-8") for name in ("SECURITY.md", "AUDIT.md"))
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
SHELL = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
INLINE = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", DOCS, flags=re.MULTILINE | re.DOTALL))


def commands(program: str) -> list[str]:
    """Each use of a program, in blocks and in the text."""
    found = [text.removeprefix(".venv/bin/") for text in [*SHELL, *INLINE]]
    return [text for text in found if text.startswith(f"{program} ")]


@pytest.mark.parametrize("command", commands("fairstream"))
def test_each_command_exists(command: str) -> None:
    arguments = shlex.split(command, comments=True)[1:]
    parse(arguments)


@pytest.mark.parametrize("command", commands("make"))
def test_each_target_exists(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{shlex.split(command)[1]}:.*## ", makefile, re.MULTILINE)


def test_the_example_in_python_uses_what_is_there() -> None:
    (example,) = [block for kind, block in BLOCKS if kind == "python"]
    head = example.partition("with Publisher")[0]
    names: dict[str, object] = {}
    exec(compile(head, "README.md", "exec"), names)  # noqa: S102 - our own text
    assert isinstance(names["kafka"], KafkaSettings)
    compile(example, "README.md", "exec")
    for attribute in re.findall(r"\b(?:worker|publisher)\.(\w+)", example):
        assert any(hasattr(names[kind], attribute) for kind in ("Worker", "Publisher"))


def test_each_topic_exists_and_has_that_key() -> None:
    rows = re.findall(r"^\| `runs\.(\w+)` \| (\w+) \|", README, re.MULTILINE)
    assert len(rows) == 4
    assert set(rows) <= {(topic.name, topic.key) for topic in TOPICS}


def test_each_file_and_folder_exists() -> None:
    named = [text for text in INLINE if "/" in text and not text.startswith((".venv", "/", "'"))]
    linked = re.findall(r"\]\(([^):]+)\)", DOCS)
    laid_out = re.findall(r"(?:^ {4}| {2,}|; )((?:streams|schemas|config|tests)/\w*)", README, re.MULTILINE)
    assert len(laid_out) >= 12
    for path in [*named, *linked, *laid_out]:
        assert (ROOT / path).exists(), path


def test_each_extra_exists() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.findall(r"\.\[(\w+)\]", README)
    assert {"all", "scheduler", "client", "local"} <= set(extras)
    for extra in extras:
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)
