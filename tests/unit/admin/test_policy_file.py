"""Policy files: read as a whole, and wrong ones told by their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streams.admin.policy import load_policy, parse_policy_text
from streams.core.policy import Policy, TenantRules
from streams.errors import ConfigError
from streams.resources import config_path

SHIPPED = config_path("policy.toml")


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        parse_policy_text(text, "p.toml")
    return refused.value


def test_the_shipped_file_states_the_built_in_policy() -> None:
    # So the comments in it, which say what holds when a field is left out, stay true.
    assert load_policy(SHIPPED) == Policy()


def test_the_examples_in_the_shipped_file_work() -> None:
    text = SHIPPED.read_text(encoding="utf-8")
    live = re.sub(r"^# (\[tenants\.|\w+ = )", r"\1", text, flags=re.MULTILINE)
    policy = parse_policy_text(live, "p.toml")
    assert policy.tenants == {
        "acme": TenantRules(plan="pro", weight=4),
        "globex": TenantRules(plan="enterprise", weight=20, max_runs_in_flight=32),
    }


def test_one_problem_has_its_line_and_value() -> None:
    error = refusal("quantum = 5\n[tenants.acme]\nweight = 0\n")
    assert (error.source, error.field, error.value) == ("p.toml:3", "tenants.acme.weight", 0)
    assert str(error) == "p.toml:3: tenants.acme.weight: must be at least 1 (got 0)"


def test_several_problems_are_listed_by_line() -> None:
    text = '[tenants.acme]\nweigth = 2\n[tenants."b.c"]\nplan = "pro"\n[limits]\nmax_queued_runs = nan\n'
    assert str(refusal(text)).splitlines() == [
        "p.toml: 3 problems; nothing was changed",
        '  p.toml:2: tenants.acme.weigth: no such field; did you mean "weight"? (got 2)',
        "  p.toml:4: tenants.\"b.c\".plan: no such plan (got 'pro')",
        "  p.toml:6: limits.max_queued_runs: must be a whole number (got nan)",
    ]


def test_what_is_not_toml_has_its_line() -> None:
    error = refusal("quantum = 5\nclosed = \n")
    assert error.source == "p.toml:2"
    assert "not TOML" in str(error)


def test_a_key_that_stands_there_twice_is_refused() -> None:
    assert "not TOML" in str(refusal("quantum = 5\nquantum = 6\n"))


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "p.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_policy(path)
