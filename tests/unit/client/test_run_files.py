from __future__ import annotations

from pathlib import Path

import pytest

from streams.client.run_files import FIELDS, Line, read_runs
from streams.errors import ConfigError
from streams.wire.schema import load_schema


def read(folder: Path, name: str, text: str) -> list[Line]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return list(read_runs(path))


def problems(lines: list[Line]) -> dict[int, str]:
    return {line.number: str(line.problem) for line in lines if line.problem is not None}


def test_the_fields_are_those_of_the_schema() -> None:
    schema = {field["name"] for field in load_schema("run_request")["fields"]}
    assert set(FIELDS) == schema - {"action"}


def test_json_lines(tmp_path: Path) -> None:
    lines = read(
        tmp_path,
        "runs.jsonl",
        '{"tenant": "a", "run_id": "x", "payload": {"n": 1}}\n\n  \n{"tenant": "b", "class": "c"}\n',
    )
    assert lines == [
        Line(1, {"tenant": "a", "run_id": "x", "payload": {"n": 1}}),
        Line(4, {"tenant": "b", "class": "c", "run_id": "runs-4"}),
    ]


def test_csv_cells_become_what_their_fields_are(tmp_path: Path) -> None:
    header = "tenant,run_id,workflow,class,estimate,deadline_ms,payload,headers\n"
    row = 'a,x,w,,10,99,"{""n"": [1, 2]}","{""h"": ""v""}"\n'
    assert read(tmp_path, "runs.csv", header + row) == [
        Line(
            2,
            {
                "tenant": "a",
                "run_id": "x",
                "workflow": "w",
                "estimate": 10,
                "deadline_ms": 99,
                "payload": {"n": [1, 2]},
                "headers": {"h": "v"},
            },
        )
    ]


def test_csv_numbers_lines_as_editors_do(tmp_path: Path) -> None:
    lines = read(tmp_path, "runs.csv", 'tenant,payload\na,"{\n}"\nb,\n')
    assert [(line.number, line.fields["run_id"]) for line in lines] == [(3, "runs-3"), (4, "runs-4")]


def test_the_same_file_gives_the_same_ids(tmp_path: Path) -> None:
    text = "tenant,workflow\na,w\nb,w\n"
    assert read(tmp_path, "runs.csv", text) == read(tmp_path, "runs.csv", text)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert read(tmp_path, "runs.csv", "﻿tenant\na\n")[0].fields["tenant"] == "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{\n", {1: "not JSON"}),
        ('["a"]\n', {1: "not a JSON object"}),
        ('{"tenant": "a"}\n{"tenent": "a"}\n', {2: "tenent: a run has no such field"}),
    ],
)
def test_bad_json_lines_are_told_with_their_numbers(tmp_path: Path, text: str, expected: dict[int, str]) -> None:
    found = problems(read(tmp_path, "runs.jsonl", text))
    assert found.keys() == expected.keys()
    assert all(found[number].startswith(text) for number, text in expected.items())


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("a,1,\nb,x,\nc,3,\n", {3: "estimate: not a whole number (got 'x')"}),
        ("a,1.5,\n", {2: "estimate: not a whole number (got '1.5')"}),
        ("a,1,{x\n", {2: "payload: not JSON (got '{x')"}),
        ("a,1,,surplus\n", {2: "more cells than the header has (got ['surplus'])"}),
        ('a,1,"x"y\nb,2,\n', {2: "not CSV: ',' expected after '\"'"}),
    ],
)
def test_bad_csv_rows_are_told_with_their_numbers(tmp_path: Path, rows: str, expected: dict[int, str]) -> None:
    assert problems(read(tmp_path, "runs.csv", f"tenant,estimate,payload\n{rows}")) == expected


def test_a_row_may_be_short(tmp_path: Path) -> None:
    assert read(tmp_path, "runs.csv", "tenant,estimate\na\n") == [Line(2, {"tenant": "a", "run_id": "runs-2"})]


def test_an_unknown_column_is_told_before_any_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"runs\.csv:1: tenent: a run has no such field"):
        read(tmp_path, "runs.csv", "tenent\na\n")


def test_an_absent_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.csv: cannot be read"):
        list(read_runs(tmp_path / "none.csv"))


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        list(read_runs(tmp_path / "runs.jsonl"))


def test_an_empty_file_has_no_runs(tmp_path: Path) -> None:
    assert read(tmp_path, "runs.csv", "") == []
    assert read(tmp_path, "runs.jsonl", "") == []
