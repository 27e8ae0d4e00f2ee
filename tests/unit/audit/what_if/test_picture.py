import re
from html import unescape
from pathlib import Path

from streams.audit.what_if import Change, compare, make_traffic, read_record
from streams.audit.what_if.picture import draw
from tests.recorded import record
from tests.unit.audit.what_if.tape import Tape


def texts(drawn: bytes) -> str:
    return " ".join(map(unescape, re.findall(r"<text[^>]*>([^<]*)</text>", drawn.decode())))


def test_everybody_is_in_it_and_it_is_the_same_each_time(tmp_path: Path) -> None:
    found = compare(make_traffic(read_record(record(2, ticks=30))), Change(fifo=True))
    for name in ("a.svg", "b.svg"):
        draw(found, tmp_path / name)
    drawn = (tmp_path / "a.svg").read_bytes()
    assert drawn == (tmp_path / "b.svg").read_bytes()
    text = texts(drawn)
    for tenant in found.happened.waits:
        assert tenant in text
    assert "what if: FIFO" in text


def test_a_name_is_no_formula_and_a_lonely_tenant_has_no_share(tmp_path: Path) -> None:
    tape = Tape()
    tape.served(0, "r", tenant="$a^{b$\x1b")
    draw(compare(make_traffic(read_record(tape.recording)), Change(window=1)), tmp_path / "p.svg")
    text = texts((tmp_path / "p.svg").read_bytes())
    assert "$a^{b$\\x1b" in text
    assert "no two tenants" in text


def test_the_share_that_is_stated_is_marked(tmp_path: Path) -> None:
    tape = Tape()
    for run in range(3):
        for tenant in ("a", "b"):
            tape.request(0, f"r{run}", tenant=tenant)
    for run in range(3):
        for tenant in ("a", "b"):
            tape.serve_filed(10 + run * 100, f"r{run}", tenant=tenant)
    draw(compare(make_traffic(read_record(tape.recording)), Change(window=1)), tmp_path / "p.svg")
    text = texts((tmp_path / "p.svg").read_bytes())
    assert "stated, what if" in text
    assert "% of the tokens from 0.0 s to 0.2 s" in text


def test_of_many_those_with_most_tokens_are_drawn(tmp_path: Path) -> None:
    tape = Tape()
    for number in range(30):
        tape.served(number * 1_000, "r", tenant=f"tenant-{number:02}", tokens=100 + number)
    draw(compare(make_traffic(read_record(tape.recording)), Change(fifo=True)), tmp_path / "p.svg")
    text = texts((tmp_path / "p.svg").read_bytes())
    assert "28 of 30 tenants" in text
    assert "tenant-02" in text
    assert "tenant-01" not in text
