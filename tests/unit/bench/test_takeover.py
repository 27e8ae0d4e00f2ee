"""What `fairstream bench takeover` makes of what it has measured, and how it looks at a process."""

from __future__ import annotations

import os

import pytest

from streams.bench import progress, takeover
from streams.bench.processes import Start
from streams.bench.resident import resident
from streams.bench.takeover import TakeoverOptions, TakeoverReport

REPORT = TakeoverReport(
    options=TakeoverOptions(runs=1_000, shards=2, tenants=3),
    records=1_500,
    payload_bytes=200_000,
    start=Start(assigned_s=1.0, served_s=4.0, silence_s=0.25),
    stepped_s=4.5,
    bare_s=0.6,
    empty_rss=50_000_000,
    peak_rss=51_200_000,
    settled_rss=50_900_000,
)


def test_the_figures_are_without_what_a_start_and_the_payloads_cost() -> None:
    assert REPORT.takeover_s == 3.0
    assert REPORT.records_per_s == 500
    assert REPORT.ratio == pytest.approx(0.2)
    assert REPORT.bytes_a_run(REPORT.settled_rss) == 700
    assert REPORT.bytes_a_run(REPORT.peak_rss) == 1_000


def test_they_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(takeover, "measure_takeover", lambda _options, _servers: REPORT)
    assert takeover.run_takeover(TakeoverOptions(kafka="here:1")) == 0
    shown = capsys.readouterr().out
    for figure in ("1,000 queued runs of 3 tenants, 2 shards", "3.0 s, 500 records/s", "0.6 s, ratio 0.20", "0.25 s"):
        assert figure in shown
    assert "51 MB, 700 bytes a queued run" in shown
    assert takeover.run_takeover(TakeoverOptions(kafka="here:1", json=True)) == 0
    assert '"settled_bytes_a_run":700,"peak_bytes_a_run":1000' in capsys.readouterr().out


def test_the_memory_of_a_process_is_what_the_kernel_counts() -> None:
    before = resident(os.getpid())
    ballast = b"x" * 50_000_000
    after = resident(os.getpid())
    assert after.peak >= after.now > before.now + len(ballast) // 2


def test_where_nobody_watches_a_line_comes_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PLAIN_EVERY_S", 0.0)
    with progress.counting_to(2_000, "runs queued") as show:
        show(1_500)
    assert "runs queued: 1,500 of 2,000" in capsys.readouterr().err
