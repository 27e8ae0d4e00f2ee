"""docker-compose.yml, as far as it can be checked without an engine."""

import json
import re
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import streams
from streams.client.run_files import read_runs
from tests.commands import parse

ROOT = Path(streams.__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
# A tag that names one version, to the last number: `4.2.0`, `3.13.9-slim-bookworm`.
PINNED = re.compile(r"[\w./-]+:\d+\.\d+\.\d+(-[\w.]+)*")


def long_running() -> list[str]:
    """The services that are restarted; the others run once and end."""
    return [name for name, service in SERVICES.items() if service.get("restart")]


def fairstream_commands() -> list[tuple[str, list[str]]]:
    """Each use of our command line: as a service, and in a health check."""
    found = []
    for name, service in SERVICES.items():
        if "build" in service:
            found.append((name, service["command"]))
        test = service.get("healthcheck", {}).get("test", [])
        words = shlex.split(test[1]) if test[:1] == ["CMD-SHELL"] else test[1:]
        if words[:1] == ["fairstream"]:
            found.append((f"{name}, health check", words[1:]))
    return found


def test_it_follows_the_compose_specification() -> None:
    # Only its data is used; importing it would need a newer click than Faust allows.
    shipped = metadata.distribution("check-jsonschema")
    path = Path(str(shipped.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")))
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(COMPOSE, schema)
    with pytest.raises(jsonschema.ValidationError):  # the schema can say no
        jsonschema.validate(COMPOSE | {"services": {"kafka": {"imagine": "kafka:1"}}}, schema)


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned(name: str) -> None:
    assert PINNED.fullmatch(SERVICES[name]["image"])


def test_the_image_is_of_this_version() -> None:
    images = {service["image"] for service in SERVICES.values() if "build" in service}
    assert images == {f"fairstream:{streams.__version__}"}


def test_the_base_image_is_pinned_and_the_process_is_not_root() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert bases
    assert all(PINNED.fullmatch(base) for base in bases)
    assert re.search(r"^USER [1-9]\d*$", DOCKERFILE, re.MULTILINE)


def test_what_the_image_copies_is_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in kept)


@pytest.mark.parametrize("name", long_running())
def test_every_long_running_service_has_a_health_check(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries", "start_period"} <= check.keys()


def test_services_wait_for_what_they_need() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            runs_on = bool(SERVICES[other].get("restart"))
            wanted = "service_healthy" if runs_on else "service_completed_successfully"
            assert how["condition"] == wanted, f"{name} on {other}"


def test_every_fairstream_service_is_told_where_kafka_is() -> None:
    listeners = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    for service in SERVICES.values():
        if "build" in service:
            assert f"://{service['environment']['FAIRSTREAM_KAFKA']}," in f"{listeners},"


def test_nothing_is_published_beyond_this_machine() -> None:
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_mounted_files_exist() -> None:
    mounts = [
        volume for service in SERVICES.values() for volume in service.get("volumes", []) if volume.startswith(".")
    ]
    for mount in mounts:
        assert (ROOT / mount.partition(":")[0]).exists()


def on_this_machine(service: dict[str, Any], path: str, folder: Path) -> str:
    """Where the file is that this service finds at `path`; what is no path of a mounted file is returned as it is."""
    for config in service.get("configs", []):
        if config["target"] == path:
            file = folder / Path(path).name
            file.write_text(COMPOSE["configs"][config["source"]]["content"])
            return str(file)
    for volume in service.get("volumes", []):
        ours, theirs, *_ = volume.split(":")
        if path.startswith(f"{theirs}/"):
            return str(ROOT / ours / path.removeprefix(f"{theirs}/"))
    return path


@pytest.mark.parametrize(("where", "arguments"), fairstream_commands())
def test_every_command_in_it_exists(
    where: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = SERVICES[where.partition(",")[0]]
    environment: dict[str, str] = service["environment"]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    parameters = parse([on_this_machine(service, each, tmp_path) for each in arguments])
    file = parameters.get("file")
    assert file is None or Path(file).is_file()
    assert parameters["kafka"] == environment["FAIRSTREAM_KAFKA"], "the command does not read FAIRSTREAM_KAFKA"


def test_a_command_that_does_not_exist_is_noticed() -> None:
    for wrong in (["schedule"], ["scheduler", "--no-such-option"]):
        with pytest.raises(Exception, match="No such"):
            parse(wrong)


def test_topics_and_scheduler_agree_on_the_layout() -> None:
    layouts = {
        tuple(service["environment"][name] for name in ("FAIRSTREAM_SHARDS", "FAIRSTREAM_DISPATCH_PARTITIONS"))
        for service in SERVICES.values()
        if "build" in service
    }
    assert len(layouts) == 1


def test_the_demo_runs_are_runs(tmp_path: Path) -> None:
    file = tmp_path / "demo-runs.jsonl"
    file.write_text(COMPOSE["configs"]["demo-runs"]["content"])
    lines = list(read_runs(file))
    assert len(lines) == 12
    assert [line.problem for line in lines if line.problem] == []
