import builtins
import re
import warnings
from collections.abc import Mapping, Sequence
from html import unescape
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest

from streams.errors import ConfigError, NotInstalled
from streams.pictures import check, label, look, new_figure, save, style


def draw(path: Path) -> bytes:
    with style():
        figure = new_figure(4, 2)
        axes = figure.subplots()
        for number in range(3):
            axes.plot([0, 1], [number, 1], color=look(number).colour, linestyle=look(number).dash, label=str(number))
        axes.set_title("three lines")
        axes.legend()
    save(figure, path)
    return path.read_bytes()


def test_the_same_figure_is_the_same_bytes(tmp_path: Path) -> None:
    assert draw(tmp_path / "a.svg") == draw(tmp_path / "b.svg")


def test_text_stays_text_and_nothing_says_when(tmp_path: Path) -> None:
    picture = draw(tmp_path / "a.svg").decode()
    assert ">three lines<" in picture
    assert "<dc:date>" not in picture


@pytest.mark.parametrize("name", [r"$\frac$", "$a^{b$", "_under", "\x1b[2J", "x" * 500, "100 %", "<b>&amp;"])
def test_whatever_a_name_is_it_can_be_drawn_and_is_in_the_legend(tmp_path: Path, name: str) -> None:
    with style():
        figure = new_figure(4, 2)
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label=label(name))
        axes.legend()
        figure.suptitle(label(name))
    with warnings.catch_warnings(action="error"):
        save(figure, tmp_path / "a.svg")
    picture = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert [unescape(text) for text in re.findall("<text[^>]*>([^<]*)<", picture)].count(label(name)) == 2
    assert len(label(name)) <= 25


def test_looks_differ_in_more_than_the_colour() -> None:
    looks = [look(number) for number in range(28)]
    assert len({(each.colour, each.dash) for each in looks}) == 28
    assert all(first.dash != second.dash for first, second in pairwise(looks))


def test_the_style_ends_with_its_context() -> None:
    before = mpl.rcParams["svg.hashsalt"]
    with style():
        assert mpl.rcParams["svg.hashsalt"] == "fairstream"
    assert mpl.rcParams["svg.hashsalt"] == before


@pytest.mark.parametrize("name", ["picture.png", "picture", "absent/picture.svg"])
def test_what_cannot_become_a_picture_is_refused_at_once(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="picture"):
        check(tmp_path / name)


def test_a_picture_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    check(tmp_path / "folder.svg")
    with pytest.raises(ConfigError, match="cannot be written"):
        draw(tmp_path / "folder.svg")


def test_without_matplotlib_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name=name)
        return real(name, globals_, locals_, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(NotInstalled, match=r"fairstream\[pictures\]"):
        check(tmp_path / "a.svg")
