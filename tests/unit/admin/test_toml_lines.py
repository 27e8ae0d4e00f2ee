"""Lines: where a person finds what is meant."""

from __future__ import annotations

import pytest

from streams.admin.toml_lines import Path, line_of

TEXT = """\
# quantum = 3
quantum = 5
window.runs = 6
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
        (("window", "runs"), 3),
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
    assert line_of(TEXT, path) == line


def test_an_inline_array_is_found_as_a_whole() -> None:
    assert line_of('quantum = 1\nclasses = [{name = "a"}, {name = "a"}]\n', ("classes", 1, "name")) == 2


def test_what_only_looks_like_a_key_is_passed_over() -> None:
    assert line_of('text = """\n= 5\n"""\nquantum = 0\n', ("quantum",)) == 4
