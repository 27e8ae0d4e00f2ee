"""A gate that kills or freezes itself at a point of a turn, as `streams.app.faults` has it.

python -m tests.integration.faulty_gate KAFKA PREFIX NAME [FAULTS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streams.app.faults import Faults, parse_faults
from streams.cli.logs import configure_logging
from streams.gate import GateSettings, run_gate
from streams.gate.checking import Verdict
from streams.gate.writing import TurnWriter
from streams.kafka import KafkaSettings
from streams.transactions import Transactions
from tests.integration.processes import SESSION_S

_LOOK_S: Final = 1.0
_FLUSH_S: Final = 10.0


def _with_faults(faults: Faults) -> None:
    write, until_done = TurnWriter.write, Transactions._until_done

    def faulty_write(
        self: TurnWriter,
        verdicts: Sequence[Verdict],
        offsets: Mapping[tuple[str, int], int],
        membership: bytes,
    ) -> None:
        faults.at("before_begin", lambda: None)
        write(self, verdicts, offsets, membership)
        faults.at("after_commit", lambda: None)

    def faulty_until_done(self: Transactions, call: Callable[[float], object], doing: str) -> None:
        if doing == "committing a turn":
            faults.at("before_commit", lambda: self._producer.flush(_FLUSH_S))
        until_done(self, call, doing)

    TurnWriter.write = faulty_write  # type: ignore[method-assign]
    Transactions._until_done = faulty_until_done  # type: ignore[method-assign]


def main(servers: str, prefix: str, name: str, faults: str = "") -> None:
    """Serve until SIGTERM, or until the fault."""
    configure_logging(verbose=False)
    _with_faults(parse_faults(faults))
    settings = GateSettings(name=name, session_timeout_s=SESSION_S, look_every_s=_LOOK_S)
    run_gate(KafkaSettings(servers=servers, prefix=prefix), settings)


if __name__ == "__main__":
    main(*sys.argv[1:])
