"""`fairstream audit what-if` over an exported directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from streams.audit.export import export
from streams.cli.audit.what_if import parse_weights
from streams.cli.tree import app
from streams.errors import ConfigError
from tests.recorded import record

WhatIf = Callable[..., Result]


@pytest.fixture(scope="module")
def what_if(tmp_path_factory: pytest.TempPathFactory) -> WhatIf:
    directory = tmp_path_factory.mktemp("what-if") / "export"
    export(record(1, ticks=60), directory, now_ms=1)
    return lambda *arguments: CliRunner().invoke(app, ["audit", "what-if", *arguments, "--from", str(directory)])


def test_people_get_tables(what_if: WhatIf) -> None:
    result = what_if("--fifo")
    assert result.exit_code == 0, result.output
    for needed in ("what if: FIFO", "happened", "t0", "The model is off by", "Left out"):
        assert needed in result.stdout


def test_programs_get_everything_with_the_rules(what_if: WhatIf) -> None:
    told = orjson.loads(what_if("--quantum", "50", "--weights", "t0=9,t1=2", "--weights", "t2=3", "--json").stdout)
    assert told["change"] == {
        "title": "quantum 50; weights t0=9, t1=2, t2=3",
        "policy": None,
        "fifo": False,
        "quantum": 50,
        "window": None,
        "weights": {"t0": 9, "t1": 2, "t2": 3},
    }
    assert {"never_began", "retried", "failed", "cost", "duration"} <= told["rules"].keys()
    weights = {each["tenant"]: each["weight"]["what_if"] for each in told["tenants"]}
    assert (weights["t0"], weights["t1"], weights["t2"]) == (9, 2, 3)


def test_a_policy_file_takes_the_place_of_the_recorded_ones(what_if: WhatIf, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('name = "closed"\nclosed = true\n[tenants.t1]\nweight = 2\n', encoding="utf-8")
    told = orjson.loads(what_if("--policy", str(file), "--json").stdout)
    assert told["what_if"]["refused"]["unknown_tenant"] > 0
    served = [each["tenant"] for each in told["tenants"] if each["what_if"]["waits_ms"]]
    assert served == ["t1"]


def test_an_interval_leaves_the_rest_out_and_counts_it(what_if: WhatIf) -> None:
    whole = orjson.loads(what_if("--fifo", "--json").stdout)["record"]
    part = orjson.loads(what_if("--fifo", "--json", "--until", "2025-11-24T16:00:02Z").stdout)["record"]
    assert 0 < part["runs"] < whole["runs"]
    assert part["runs"] + sum(part["left_out"].values()) == whole["runs"] + sum(whole["left_out"].values())


def test_a_picture_is_drawn(what_if: WhatIf, tmp_path: Path) -> None:
    result = what_if("--window", "3", "--picture", str(tmp_path / "p.svg"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "p.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "what is to be changed"),
        (("--fifo", "--quantum", "3"), "FIFO knows neither"),
        (("--weights", "t0"), "TENANT=N"),
        (("--weights", "t0=0"), "weight"),
        (("--weights", "nobody=2"), "nothing is recorded of this tenant"),
        (("--fifo", "--picture", "p.png"), "ends in .svg"),
    ],
)
def test_what_cannot_be_is_refused(what_if: WhatIf, arguments: tuple[str, ...], says: str) -> None:
    error = what_if(*arguments).exception
    assert isinstance(error, ConfigError)
    assert says in str(error)


def test_weights_as_they_are_typed() -> None:
    assert parse_weights(["a=1,b=20", "c=d=3"]) == {"a": 1, "b": 20, "c=d": 3}
    for wrong in ("a=", "=1", "a=-1", "a=1.5", "a=²"):
        with pytest.raises(ConfigError, match="TENANT=N"):
            parse_weights([wrong])
