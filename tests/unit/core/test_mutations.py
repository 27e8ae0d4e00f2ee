"""The tests are tested: each rule of the core is broken in a copy, and the tests named for it must fail there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.unit.core.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[3]
PASSED, FAILED = 0, 1  # exit codes of pytest
SKIP = shutil.ignore_patterns("__pycache__", "integration", "acceptance")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the core's tests need, to be broken at will."""
    root = tmp_path_factory.mktemp("mutants")
    for folder in ("streams", "tests", "schemas"):
        shutil.copytree(ROOT / folder, root / folder, ignore=SKIP)
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def run(root: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run tests in the copy, and nothing else: no plug-ins, no bytecode that could outlive a mutant."""
    environment = os.environ | {
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "FAIRSTREAM_TEST_PROFILE": "dev",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", *tests]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False)


def module(root: Path, mutant: Mutant) -> Path:
    return root / "streams" / "core" / f"{mutant.module}.py"


def broken(text: str, mutant: Mutant) -> str:
    """Return the module's text with the rule broken."""
    for old, new in mutant.replace:
        assert old in text, f"{mutant.module}.py has changed: find the rule's new place"
        text = text.replace(old, new)
    return text


def _named() -> list[str]:
    return sorted({test for mutant in MUTANTS.values() for test in mutant.tests})


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_can_be_made(name: str) -> None:
    """In a moment: whoever moves a rule need not wait for the tests below to hear of it."""
    path = module(ROOT, MUTANTS[name])
    compile(broken(path.read_text(), MUTANTS[name]), path, "exec")


def test_the_tests_that_mutants_name_are_there() -> None:
    """In seconds: a test that has another name now would be missed by the slow tests alone."""
    done = run(ROOT, ["--collect-only", *_named()])
    assert done.returncode == PASSED, done.stdout


@pytest.mark.slow
def test_the_copy_is_sound(copy: Path) -> None:
    done = run(copy, _named())
    assert done.returncode == PASSED, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(copy: Path, name: str) -> None:
    mutant = MUTANTS[name]
    path = module(copy, mutant)
    sound = path.read_text()
    path.write_text(broken(sound, mutant))
    try:
        done = run(copy, mutant.tests)
    finally:
        path.write_text(sound)
    assert done.returncode == FAILED, done.stdout
    assert not re.search(r"\d passed", done.stdout), done.stdout  # each test that is named for it notices
