from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from streams.cli import output


class Place(NamedTuple):
    topic: str
    offset: int


@dataclass(frozen=True)
class Row:
    name: str
    place: Place


def test_results_go_to_standard_output_and_remarks_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("result")
    output.remark("remark")
    assert capsys.readouterr() == ("result\n", "remark\n")


def test_json_has_the_names_of_dataclasses_and_tuples(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_json([Row("a", Place("t", 3)), Path("x")])
    assert json.loads(capsys.readouterr().out) == [{"name": "a", "place": {"topic": "t", "offset": 3}}, "x"]


def test_json_can_be_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_json({"a": [1, 2]}, indent=False)
    assert capsys.readouterr().out == '{"a":[1,2]}\n'


@pytest.mark.parametrize(("number", "text"), [(0, "0 runs"), (1, "1 run"), (1_234, "1,234 runs")])
def test_a_number_of_things(number: int, text: str) -> None:
    assert output.counted(number, "run") == text
