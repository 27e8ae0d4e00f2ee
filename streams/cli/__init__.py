"""The command `fairstream`: one library function a command, and nothing that a library could not do.

Results go to standard output, everything else to standard error. Exit status: 0 done; 1 failed; 2 something must be
corrected first (arguments, settings, a file, an installation); 75 Kafka does not answer, try again; 130 interrupted.

What may not happen here: logic. A command reads its options, calls its function, and prints. Libraries are imported
inside the commands, so that `fairstream --help` takes a tenth of a second and an installation without Faust has all
the commands that can do without it.
"""

from __future__ import annotations

from streams.cli.entry import main

__all__ = ["main"]
