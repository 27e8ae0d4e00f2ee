import multiprocessing
import signal
import threading
from pathlib import Path

import psutil
import pytest

from streams import clock
from streams.app.faults import POINTS, FaultPoints, NoFaults, parse_faults
from streams.errors import ConfigError


def test_without_a_setting_there_are_no_faults() -> None:
    for text in (None, ""):
        faults = parse_faults(text)
        assert isinstance(faults, NoFaults)
        for point in POINTS:
            faults.at(point, lambda: pytest.fail("nothing is flushed"))


@pytest.mark.parametrize(
    "text",
    [
        "after_rows",
        "after_rows=0.1",
        "after_rows=2;trace=x",
        "after_rows=often;trace=x",
        "after_rows@0;trace=x",
        "after_rows@third;trace=x",
        "elsewhere=1;trace=x",
        "elsewhere@1;trace=x",
        "after_rows@1;signal=HUP;trace=x",
    ],
)
def test_what_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_faults(text)
    assert caught.value.field == "faults"


def _die(point: str, trace: str, flushed: str) -> None:
    faults = parse_faults(f"{point}=1,after_commit=0;seed=3;trace={trace}")
    faults.at("after_commit", lambda: None)
    faults.at(point, Path(flushed).touch)


def _die_when_armed(trace: str, arm: str) -> None:
    faults = parse_faults(f"after_rows=1,before_commit=1;trace={trace};arm={arm}")
    faults.at("after_rows", lambda: None)  # not armed yet
    Path(arm).write_text("before_commit", encoding="ascii")
    faults.at("after_rows", lambda: None)  # armed for another point
    faults.at("before_commit", lambda: None)


@pytest.mark.parametrize("point", ["before_begin", "before_commit"])
def test_a_fault_kills_and_leaves_its_trace(point: str, tmp_path: Path) -> None:
    trace, flushed = tmp_path / "trace", tmp_path / "flushed"
    process = multiprocessing.get_context("spawn").Process(target=_die, args=(point, str(trace), str(flushed)))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert trace.read_text() == f"{process.pid} {point}\n"
    assert flushed.exists() == (point != "before_begin")  # the broker holds half a transaction


def test_an_armed_fault_waits_for_its_file_and_its_point(tmp_path: Path) -> None:
    trace, arm = tmp_path / "trace", tmp_path / "arm"
    process = multiprocessing.get_context("spawn").Process(target=_die_when_armed, args=(str(trace), str(arm)))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert trace.read_text() == f"{process.pid} before_commit\n"


def test_a_chance_is_a_chance(tmp_path: Path) -> None:
    rare = FaultPoints({"after_rows": 1e-9}, seed=1, trace=tmp_path / "trace")
    for _ in range(1_000):
        rare.at("after_rows", lambda: None)
    assert not (tmp_path / "trace").exists()


def _stop(trace: str) -> None:
    faults = parse_faults(f"after_rows@2;signal=STOP;trace={trace}")
    for _ in range(4):
        faults.at("before_commit", lambda: None)
        faults.at("after_rows", lambda: None)


def test_a_fault_can_come_at_a_given_passing_and_stop_instead_of_kill(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    process = multiprocessing.get_context("spawn").Process(target=_stop, args=(str(trace),))
    process.start()
    assert process.pid is not None
    stopped = psutil.Process(process.pid)
    clock.wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, 30, what="the process being stopped")
    stopped.resume()
    process.join(30)
    assert process.exitcode == 0  # it went on, and was not stopped again
    assert trace.read_text() == f"{process.pid} after_rows\n"


_STOPS = 20


def _stop_a_thread(trace: str, beyond: str) -> None:
    """As a scheduler does: a shard's thread comes to the point, and the main thread waits for something else."""
    faults = parse_faults(f"after_rows=1;signal=STOP;trace={trace}")

    def step() -> None:
        with Path(beyond).open("ab", buffering=0) as file:
            for _ in range(_STOPS):
                faults.at("after_rows", lambda: None)
                file.write(b"x")

    thread = threading.Thread(target=step)
    thread.start()
    thread.join()


def test_the_thread_that_is_stopped_gets_no_further(tmp_path: Path) -> None:
    """It did, by as much as a whole commit: the stop was sent to the process, and reached the main thread first."""
    trace, beyond = tmp_path / "trace", tmp_path / "beyond"
    process = multiprocessing.get_context("spawn").Process(target=_stop_a_thread, args=(str(trace), str(beyond)))
    process.start()
    assert process.pid is not None
    stopped = psutil.Process(process.pid)
    try:
        for stop in range(_STOPS):
            clock.wait_until(
                lambda: trace.exists() and len(trace.read_text().splitlines()) == stop + 1,  # noqa: B023 - asked at once
                30,
                what="the fault",
            )
            clock.wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, 30, what="the process being stopped")
            assert beyond.stat().st_size == stop
            stopped.resume()
        process.join(30)
    finally:
        process.kill()  # whether it is stopped or not
        process.join()
    assert process.exitcode == 0
    assert beyond.stat().st_size == _STOPS
