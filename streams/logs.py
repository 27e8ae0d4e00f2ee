"""How a process of ours logs: to standard error, one line an event.

Names and reasons that others chose stand in the lines, those of libraries included. Nothing in them can end a line,
begin one that looks like another event, or command the terminal in which somebody reads it.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from streams.errors import visible

_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
_INDENT: Final = "    "


class OneLine(logging.Formatter):
    """Shows all of a message on its line; a traceback follows on lines of its own, each of them indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """Return the line."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        """Return the lines of a traceback."""
        return "\n".join(_INDENT + visible(line) for line in super().formatException(ei).splitlines())


def log_to_stderr() -> None:
    """Log all events from INFO on, of all loggers: who says too much has to be quietened."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine(_FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
