from __future__ import annotations

import io

import pytest
import rich.console

from streams.cli.audit.bars import showing


def test_where_nobody_watches_no_bar_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, int, int]] = []
    with showing(lambda *what: told.append(what)) as tell:
        tell("journal", 1, 2)
    assert told == [("journal", 1, 2)]
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_for_each_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = rich.console.Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(rich.console, "Console", lambda **_: screen)
    told: list[str] = []
    with showing(lambda what, _done, _of: told.append(what)) as tell:
        tell("requests", 1, 2)
        tell("requests", 2, 2)
        tell("journal", 5, 9)
    assert isinstance(screen.file, io.StringIO)
    for text in ("requests", "2/2", "journal", "5/9"):
        assert text in screen.file.getvalue()
    assert told == []
