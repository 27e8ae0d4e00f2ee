"""Whatever stands in a policy document, what is said of it can be printed: on one line each, and not too much."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.policy_check import parse_policy
from streams.core.policy_problems import PolicyInvalid, Problem, nearest, quoted

LONGEST = 600  # characters of one problem

NAMES = {
    "long": "x" * 100_000,
    "long, of escapes": "\x01" * 100_000,
    "newline": "a\nb",
    "carriage return": "a\r\x1b[2Kb",
    "line separator": "a\u2028b\x85c",
    "other direction": "a\u202eb",
    "quote": 'a"b',
    "backslash": "a\\nb",
    "lone surrogate": "a\ud800b",
    "nothing": "",
    "unprintable beyond 16 bits": "a\U000e0001b",
}
# Every place where a message shows a name that the document chose.
PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "section": lambda name: {name: {}},
    "field of a section": lambda name: {"limits": {name: 1}},
    "field of a class": lambda name: {"classes": [{"name": "a", name: 1}]},
    "name of a class": lambda name: {"classes": [{"name": name}, {"name": name}]},
    "tenant": lambda name: {"tenants": {name: 5}},
    "field of a tenant": lambda name: {"tenants": {name: {name: 1}}},
    "plan": lambda name: {"plans": {name: {name: 1}}},
    "plan of a tenant": lambda name: {"tenants": {"a": {"plan": name}}},
    "plans that are known": lambda name: {
        "plans": {f"{name}{number}": {} for number in range(50)},
        "tenants": {"a": {"plan": "0123456789"}},
    },
    "plan that is meant": lambda name: {"plans": {f"abcdefgh{name}i": {}}, "tenants": {"a": {"plan": "abcdefgh"}}},
    "group": lambda name: {"groups": {name: {name: 1}}},
    "group of a tenant": lambda name: {"tenants": {name: {"group": name}}},
    "policy": lambda name: {"name": name + "x" * 256},
    "value": lambda name: {"closed": name},
    "word": lambda name: {"limits": {"overload": name}},
}


def refusal(document: Any) -> PolicyInvalid:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(document)
    return refused.value


def check_printable(problems: tuple[Problem, ...]) -> None:
    for problem in problems:
        for text in (str(problem), problem.where, problem.message):
            assert text.isprintable()
            assert len(text) <= LONGEST


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_on_one_line_in_printable_characters_and_up_to_a_bound(name: str, place: str) -> None:
    check_printable(refusal(PLACES[place](NAMES[name])).problems)


_anything = st.text(st.characters(), max_size=80)  # lone surrogates among them
_names = _anything | st.sampled_from(["tenants", "plans", "groups", "classes", "limits", "weight", "plan", "name"])
_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_names, _documents, max_size=4))
def test_whatever_the_document_is_its_problems_can_be_printed(document: dict[str, Any]) -> None:
    try:
        parse_policy(document)
    except PolicyInvalid as refused:
        check_printable(refused.problems)


# --- paths


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=4))
def test_a_path_is_one_that_toml_reads(path: list[str]) -> None:
    found: Any = tomllib.loads(f"{Problem(tuple(path), 1, '').where} = 1")
    for name in path:
        [(key, found)] = found.items()
        assert key == name
    assert found == 1


def test_a_path_shows_which_of_a_list_is_meant() -> None:
    assert Problem(("classes", 3, "na me"), 1, "").where == 'classes[3]."na me"'


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("", '""'),
        ("ü b", '"ü b"'),
        ('\b\t\n\f\r"\\', r'"\b\t\n\f\r\"\\"'),
        ("\x00\x7f\x85\u2028", r'"\u0000\u007F\u0085\u2028"'),
        ("\ud800", r'"\uD800"'),
        ("\U000e0001", r'"\U000E0001"'),
        ("x" * 60, '"' + "x" * 60 + '"'),
        ("x" * 61, '"' + "x" * 60 + '…"'),
        ("x" * 57 + "\x00y", '"' + "x" * 57 + '…"'),
    ],
)
def test_a_name_is_written_as_toml_writes_a_basic_string(name: str, written: str) -> None:
    assert quoted(name) == written


def test_a_bare_key_that_is_too_long_is_cut_in_quotes() -> None:
    assert Problem(("x" * 61,), 1, "").where == '"' + "x" * 60 + '…"'


# --- how many


def test_the_first_twenty_problems_are_told_and_the_others_counted() -> None:
    def said(problems: int) -> list[str]:
        return str(refusal({"tenants": {f"t{n}": {"weight": 0} for n in range(problems)}})).split("\n")

    assert len(said(20)) == 20
    assert said(21)[:20] == said(20)
    assert said(21)[20:] == ["and 1 more"]
    assert said(5_000)[20:] == ["and 4980 more"]


def test_all_problems_are_there_however_many_are_told() -> None:
    assert len(refusal({"tenants": {str(n): {"weight": 0} for n in range(500)}}).problems) == 500


def test_the_name_that_is_meant_is_looked_for_in_the_first_problems_only() -> None:
    wrong = {f"t{n}": {"plan": "por"} for n in range(101)}
    problems = refusal({"plans": {"pro": {}}, "tenants": wrong}).problems
    assert [problem.message for problem in problems] == ['no such plan; did you mean "pro"?'] * 100 + ["no such plan"]


# --- what is known


def test_not_all_that_is_known_is_listed() -> None:
    assert nearest("zzz", []) == ""
    assert nearest("zzz", ["a", "b c"]) == '; known: a, "b c"'
    assert nearest("zzz", map(str, range(20))) == "; known: " + ", ".join(map(str, range(20)))
    assert nearest("zzz", map(str, range(21))) == "; known: " + ", ".join(map(str, range(20))) + ", …"
    assert nearest("zzz", ["a" * 60] * 5) == "; known: " + ", ".join(["a" * 60] * 3) + ", …"


@pytest.mark.parametrize("nested", [True, False])
def test_a_value_that_python_cannot_print_has_its_type_shown(nested: bool) -> None:
    value: Any = 10**5_000
    for _ in range(100_000 * nested):
        value = [value]
    assert "too large to show" in str(Problem(("quantum",), value, "no"))
