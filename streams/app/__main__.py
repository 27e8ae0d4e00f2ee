"""`python -m streams.app`: a scheduler process with its settings from the environment."""

from __future__ import annotations

import logging
import sys
from typing import Final

from streams.app.main import run_scheduler
from streams.app.settings import Settings
from streams.errors import FairstreamError, in_lines
from streams.logs import log_to_stderr

# Faust and what it stands on tell what they do in every detail; their warnings are worth reading.
_CHATTY: Final = ("faust", "mode", "aiokafka", "aiohttp")


def configure_logging() -> None:
    """Log to standard error, one line an event."""
    log_to_stderr()
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    # librdkafka tells each retry of each connection; our own messages say once what is waited for.
    logging.getLogger("streams.kafka").setLevel(logging.CRITICAL)


def main() -> int:
    """Return the exit code."""
    configure_logging()
    try:
        return run_scheduler(Settings.load())
    except FairstreamError as error:
        sys.stderr.write(f"fairstream: {in_lines(str(error))}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
