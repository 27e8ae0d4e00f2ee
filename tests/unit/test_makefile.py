"""The Makefile on odd machines: which Python it takes, and what it says when there is none. Nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import streams

MAKEFILE = Path(streams.__file__).parent.parent / "Makefile"

# A Python that does nothing but answer the questions that the Makefile asks: is it new enough, has it venv and pip?
# As `-m venv .venv` it copies itself there.
PYTHON = """\
#!/bin/sh
case "$1 $2" in
    "-c import ensurepip"*) exit {lacks_venv} ;;
    "-c import"*) exit {too_old} ;;
    "-m venv") rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip") echo "$0 installs" ;;
    "--version ") echo "Python {name}" ;;
    *) exit 99 ;;
esac
"""
# What pyenv and asdf put on PATH for a version that is installed but not chosen.
STUB = "#!/bin/sh\necho 'command not found' >&2\nexit 127\n"


class Machine:
    """A folder with the Makefile in it, and a PATH on which there is nothing but what is put there."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "a check out"
        self.folder.mkdir()
        (self.folder / "Makefile").symlink_to(MAKEFILE)
        (self.folder / "pyproject.toml").touch()
        self.path = root / "bin"
        self.path.mkdir()
        for tool in ("sh", "mkdir", "cp", "rm", "touch"):
            (self.path / tool).symlink_to(str(shutil.which(tool)))

    def has(self, name: str | Path, text: str) -> Path:
        """Put a program on PATH, or anywhere."""
        program = self.path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
        return program

    def has_python(self, name: str | Path, *, too_old: bool = False, lacks_venv: bool = False) -> Path:
        return self.has(name, PYTHON.format(name=name, too_old=int(too_old), lacks_venv=int(lacks_venv)))

    def sets_up(self, *arguments: str, works: bool = True) -> str:
        """Make the virtual environment; return what was said."""
        done = subprocess.run(
            [str(shutil.which("make")), ".venv/.run", *arguments],
            cwd=self.folder,
            env={"PATH": str(self.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) is works, done
        assert (self.folder / ".venv" / ".run").exists() is works
        return done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_first_python_that_will_do_is_taken(machine: Machine) -> None:
    machine.has("python3.13", STUB)
    machine.has_python("python3.12", too_old=True)
    machine.has_python("python3.11", lacks_venv=True)
    machine.has_python("python3")
    said = machine.sets_up()
    assert "setting up .venv with Python python3\n" in said
    assert ".venv/bin/python installs" in said


def test_a_python_can_be_chosen_wherever_it_is(machine: Machine) -> None:
    machine.has_python("python3.13")
    chosen = machine.has_python(Path("my own pythons") / "python 3")
    assert "with Python my own pythons/python 3" in machine.sets_up(f"PYTHON={chosen}")


def test_without_any_the_way_out_is_told(machine: Machine) -> None:
    machine.has("python3.13", STUB)
    machine.has_python("python3", too_old=True)
    said = machine.sets_up(works=False)
    assert "no Python 3.11 or later among: python3.13 python3.12" in said
    assert "make PYTHON=/path/to/python3" in said


def test_a_python_without_venv_is_named(machine: Machine) -> None:
    machine.has_python("python3", lacks_venv=True)
    assert "python3 lacks the venv or ensurepip module" in machine.sets_up(works=False)


@pytest.mark.parametrize("state", ["too old", "broken", "without pip", "a file"])
def test_an_environment_that_will_not_do_is_made_anew(machine: Machine, state: str) -> None:
    machine.has_python("python3")
    inside = machine.folder / ".venv" / "bin" / "python"
    if state == "too old":
        machine.has_python(inside, too_old=True)
    elif state == "broken":
        inside.parent.mkdir(parents=True)
        inside.symlink_to("/no/such/python")
    elif state == "without pip":
        machine.has(inside, STUB)
    else:
        inside.parent.mkdir(parents=True)
        inside.touch()
    assert "setting up .venv" in machine.sets_up()
    assert os.access(inside, os.X_OK)


def test_what_is_set_up_stays(machine: Machine) -> None:
    machine.has_python("python3")
    machine.sets_up()
    assert "up to date" in machine.sets_up()
    later = (machine.folder / ".venv" / ".run").stat().st_mtime + 1  # the kernel's clock for files is a coarse one
    os.utime(machine.folder / "pyproject.toml", (later, later))
    said = machine.sets_up()
    assert "setting up" not in said
    assert "installs" in said


def test_an_installation_that_fails_is_done_again(machine: Machine) -> None:
    broken = machine.has_python("python3")
    good = broken.read_text()
    broken.write_text(good.replace('echo "$0 installs"', "exit 1"))
    assert "the installation failed" in machine.sets_up(works=False)
    (machine.folder / ".venv" / "bin" / "python").write_text(good)
    machine.sets_up()
