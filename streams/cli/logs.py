"""What a command lets its libraries say on standard error."""

from __future__ import annotations

import logging
from typing import Final

from streams.logs import log_to_stderr

# They tell each retry of each connection; our own messages say once what is waited for.
_CHATTY: Final = ("aiohttp", "aiokafka", "faust", "mode", "streams.kafka")


def quiet_libraries(level: int = logging.CRITICAL) -> None:
    """Let the libraries say nothing below `level`."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(level)


def configure_logging(*, verbose: bool) -> None:
    """Log one line an event: ours from INFO on, the libraries' only if asked for."""
    log_to_stderr()
    quiet_libraries(logging.INFO if verbose else logging.CRITICAL)
