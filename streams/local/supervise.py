"""Runs one child process and ends it when its owner ends, in whatever way. Run as a script.

    python supervise.py OWNER_PID GRACE_S REMOVE PROGRAM ARGUMENT...

The owner holds the write end of our standard input. It writes `T` (terminate, then kill after the
grace time) or `K` (kill); the end of the file, or another parent process, means that it is gone:
then the child is terminated too. If REMOVE names a folder, what the child has written dies with the
owner: the child is killed at once and the folder deleted. (Several supervisors may be given the same
folder: each deletes it after its own child's end, so the last leaves nothing.) All signals go
through here, since only a parent can know that a process id is still its child's.

On standard output comes one line with the child's process id; we exit with the child's status.
A file of its own that imports nothing of the package: it starts in 30 ms and has no say in anything
else. Linux's "parent death signal" alone would not do for the owner (it fires when the creating
*thread* ends), but here, in a process of one thread, it covers our own death.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
LOOK_S = 1.0  # how often the parent is looked at: a forked sibling may hold our pipe open


def main(argv: list[str]) -> int:
    owner, grace, remove, *command = argv
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing wakes the select
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
    )
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.close()
    orphaned = False
    while child.poll() is None:
        ready, _, _ = select.select([sys.stdin.fileno(), wake_read], [], [], LOOK_S)
        if wake_read in ready:
            os.read(wake_read, 512)
        order = os.read(sys.stdin.fileno(), 1) if sys.stdin.fileno() in ready else None
        orphaned = order == b"" or os.getppid() != int(owner)
        if order == b"K" or (orphaned and remove):
            child.kill()
            child.wait()
        elif order == b"T" or orphaned:
            _end(child, float(grace))
    if orphaned and remove:
        shutil.rmtree(remove, ignore_errors=True)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _end(child: "subprocess.Popen[bytes]", grace_s: float) -> None:
    child.terminate()
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
