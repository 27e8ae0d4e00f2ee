"""Progress where nobody watches a bar."""

import pytest

from streams.local import progress


def test_plain_lines_are_few_and_end_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.counting("a thing", 46, unit="jars") as advance:
        for _ in range(46):
            advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fetching a thing: 46 jars, only this once"
    assert lines[-1] == "fetching a thing: 46 of 46 jars"
    assert len(lines) == 5
