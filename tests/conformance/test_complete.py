"""No case is left out: each is a test with its name."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.conformance.cases import all_cases

MODULES = ("test_shares", "test_scripts", "test_traces", "test_closed_loops")
# Kinds whose cases are parameters of one test.
BY_KIND = {"order", "closed_loop"}


@pytest.mark.parametrize("name", all_cases())
def test_case_has_a_test(name: str) -> None:
    modules = [import_module(f"tests.conformance.{module}") for module in MODULES]
    assert all_cases()[name].kind in BY_KIND or any(hasattr(module, f"test_{name}") for module in modules)
