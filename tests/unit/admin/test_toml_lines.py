"""Lines: where a person finds what is meant."""

from __future__ import annotations

import tomllib

import pytest

from streams.admin.toml_lines import Path, TomlLines

TEXT = """\
# quantum = 3
quantum = 5
limits.overload = 6
tenants."x = y".weight = 2

[window]  # a comment
tokens = 7

[tenants.acme]
plan = "pro"
[tenants."a.b"]
weight = 3
limits = { runs = 4 }

[[classes]]
name = "a"

[[classes]]
name = "a"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("quantum",), 2),
        (("limits", "overload"), 3),
        (("tenants", "x = y", "weight"), 4),
        (("window",), 6),
        (("window", "tokens"), 7),
        (("tenants", "acme", "plan"), 10),
        (("tenants", "a.b", "weight"), 12),
        (("tenants", "a.b", "limits", "runs"), 13),
        (("tenants", "acme", "weight"), 9),
        (("classes", 0, "name"), 16),
        (("classes", 1, "name"), 19),
        (("classes", 1, "default_estimate"), 18),
        (("leases", "lease_ms"), None),
    ],
)
def test_the_line_of_a_path(path: Path, line: int | None) -> None:
    assert tomllib.loads(TEXT)
    assert TomlLines(TEXT).of(path) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("classes", 0, "name"), 2),
        (("classes", 1), 2),
        (("tenants", "acme", "weight"), 7),
        (("tenants", "globex"), 8),
        (("tenants", "quantum"), 9),
        (("tenants", "quantum", "no", "such"), 9),
        (("name",), 1),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_value_that_spans_lines_stands_where_it_begins(path: Path, line: int, end: str) -> None:
    text = """\
name = "\x85 \u2028 are no line ends"
classes = [
  { name = "a" },  # ]
  { name = "a" },
]
[tenants]
acme = { weight = 0 }
globex.weight = 0
quantum = 0
"""
    assert TomlLines(text.replace("\n", end)).of(path) == line


def test_what_only_looks_like_a_key_is_passed_over() -> None:
    text = 'text = """\n= 5\n[tenants.acme]\nquantum = 1\n"""\nquantum = 0\n'
    assert TomlLines(text).of(("quantum",)) == 6
    assert TomlLines(text).of(("tenants", "acme")) is None


def test_a_text_of_any_length_is_read_in_a_moment() -> None:
    # Each would be parsed a thousand times over if every line were tried as the end of a value, or as a place.
    assert TomlLines("x = [\n" + "[1],\n" * 20_000 + "]\n").of(("x",)) is None
    tenants = TomlLines("".join(f"[tenants.t{number}]\nweight = 0\n" for number in range(5_000)))
    assert [tenants.of(("tenants", f"t{number}", "weight")) for number in range(5_000)] == list(range(2, 10_001, 2))
