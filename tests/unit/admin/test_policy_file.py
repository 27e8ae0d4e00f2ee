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
    live = re.sub(r"^# (\[(?:tenants|groups)\.|\w+ = )", r"\1", text, flags=re.MULTILINE)
    policy = parse_policy_text(live, "p.toml")
    assert policy.tenants == {
        "acme": TenantRules(plan="pro", weight=4),
        "globex": TenantRules(plan="enterprise", weight=20, max_runs_in_flight=32),
        "umbrella-search": TenantRules(group="umbrella"),
        "umbrella-mail": TenantRules(group="umbrella", weight=2),
    }
    assert policy.groups == {"umbrella": 4}


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


def test_one_that_no_journal_record_has_room_for_is_found_before_it_is_applied() -> None:
    error = refusal("".join(f"[tenants.{'x' * 200}{number}]\nweight = 2\n" for number in range(16_000)))
    assert (error.source, error.field) == ("p.toml", "policy")
    assert "bytes in the journal, 3145728 at most: name fewer tenants" in str(error)


def test_of_very_many_problems_the_first_are_listed() -> None:
    text = "".join(f"[tenants.t{number}]\nweight = 0\n" for number in range(5_000))
    lines = str(refusal(text)).splitlines()
    assert lines[0] == "p.toml: 5000 problems; nothing was changed"
    assert lines[50] == "  p.toml:100: tenants.t49.weight: must be at least 1 (got 0)"
    assert lines[51:] == ["  and 4950 more"]


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-1",
        "nan",
        "inf",
        "1e400",
        "1.0",
        "true",
        '"5"',
        "[1]",
        "{ a = 1 }",
        "2020-01-01",
        "9" * 30,
        pytest.param("9" * 5_000, id="5,000 digits"),
        pytest.param("0x" + "f" * 10_000, id="10,000 hexadecimal digits"),
        pytest.param("[" * 5_000 + "]" * 5_000, id="nested 5,000 deep"),
    ],
)
@pytest.mark.parametrize("field", ["quantum", "default.weight", 'tenants."x.y\\u00e9".weight', "leases.max_attempts"])
def test_whatever_stands_for_a_number_is_refused_with_its_place(field: str, value: str) -> None:
    error = refusal(f"# a policy\n{field} = {value}\n")
    assert str(error.source).startswith("p.toml")
    assert len(str(error)) < 300
    if len(value) < 100:
        assert error.source == "p.toml:2"
        assert error.field == field.replace("\\u00e9", "é")


def test_tables_within_tables_without_end_are_refused() -> None:
    error = refusal(".".join("a" * 5_000) + " = 1\n")
    assert (error.source, error.field) == ("p.toml:1", "a")
    assert len(str(error)) < 300


def test_what_is_not_toml_has_its_line() -> None:
    error = refusal("quantum = 5\nclosed = \n")
    assert error.source == "p.toml:2"
    assert "not TOML" in str(error)


def test_a_key_that_stands_there_twice_is_refused() -> None:
    assert "not TOML" in str(refusal("quantum = 5\nquantum = 6\n"))


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SHIPPED.read_bytes())
    assert load_policy(path) == Policy()


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "p.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_policy(path)
