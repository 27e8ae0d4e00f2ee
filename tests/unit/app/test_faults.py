import multiprocessing
import signal
from pathlib import Path

import pytest

from streams.app.faults import POINTS, KillPoints, NoFaults, parse_faults
from streams.errors import ConfigError


def test_without_a_setting_there_are_no_faults() -> None:
    for text in (None, ""):
        faults = parse_faults(text)
        assert isinstance(faults, NoFaults)
        for point in POINTS:
            faults.at(point, lambda: pytest.fail("nothing is flushed"))


@pytest.mark.parametrize(
    "text", ["after_rows", "elsewhere=1;trace=x", "after_rows=2;trace=x", "after_rows=often;trace=x", "after_rows=0.1"]
)
def test_what_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_faults(text)
    assert caught.value.field == "faults"


def _die(point: str, trace: str, flushed: str) -> None:
    faults = parse_faults(f"{point}=1,after_commit=0;seed=3;trace={trace}")
    faults.at("after_commit", lambda: None)
    faults.at(point, Path(flushed).touch)


@pytest.mark.parametrize("point", ["before_begin", "before_commit"])
def test_a_fault_kills_and_leaves_its_trace(point: str, tmp_path: Path) -> None:
    trace, flushed = tmp_path / "trace", tmp_path / "flushed"
    process = multiprocessing.get_context("spawn").Process(target=_die, args=(point, str(trace), str(flushed)))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert trace.read_text() == f"{process.pid} {point}\n"
    assert flushed.exists() == (point != "before_begin")  # the broker holds half a transaction


def test_a_chance_is_a_chance(tmp_path: Path) -> None:
    rare = KillPoints({"after_rows": 1e-9}, seed=1, trace=tmp_path / "trace")
    for _ in range(1_000):
        rare.at("after_rows", lambda: None)
    assert not (tmp_path / "trace").exists()
