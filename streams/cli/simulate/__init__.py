"""`fairstream simulate ...`: one module for each command. What names no command is `compare`'s."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from streams.cli.simulate import compare, faults, published

_DEFAULT = "compare"


class _OrCompare(TyperGroup):
    """`simulate meridian` is `simulate compare meridian`."""

    # Which Context that is depends on the release of typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_OrCompare,
    help="What would happen, on a virtual clock and without Kafka: `simulate SCENARIO`, or a command.",
)
app.command(_DEFAULT, epilog=compare.EPILOG)(compare.compare)
app.command("faults")(faults.faults)
app.command("published")(published.published)
