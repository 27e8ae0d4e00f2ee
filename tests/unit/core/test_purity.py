"""The core computes in integers: a float anywhere could make two machines disagree by one token."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import streams.core

SOURCES = sorted(Path(next(iter(streams.core.__path__))).glob("*.py"))
# Documents come in with whatever numbers a person wrote; these two files are where they are refused.
CHECKERS = {"policy_check.py", "policy_fields.py"}


def floats(source: str) -> list[int]:
    """Return the lines that divide with `/`, hold a float literal, or name `float`."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div))
        or (isinstance(node, ast.Constant) and isinstance(node.value, float))
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"float", "round"})
    ]


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name not in CHECKERS], ids=lambda path: path.name)
def test_integers_only(path: Path) -> None:
    assert floats(path.read_text()) == []


@pytest.mark.parametrize("source", ["a = b / c", "a /= 2", "a = 1.5", "a = float(b)", "a = round(b)"])
def test_a_float_would_be_found(source: str) -> None:
    assert floats(source) == [1]
