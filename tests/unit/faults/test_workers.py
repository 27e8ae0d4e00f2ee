from pathlib import Path

from tests.integration.faults.workers import WorkerProcess


def test_what_a_worker_is_in_the_middle_of_is_what_it_began_and_did_not_end(tmp_path: Path) -> None:
    worker = WorkerProcess(tmp_path, "worker-1", kafka="nowhere:1", prefix="p.", intake="share")
    assert worker.in_progress() == []
    worker.trace.write_text("begun a/1/1\nbegun b/1/1\nended a/1/1\nbegun a/2/1\nbegun a/1/1\nended a/1/1\n")
    assert worker.in_progress() == ["a/2/1", "b/1/1"]
