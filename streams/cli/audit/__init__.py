"""`fairstream audit ...`: one module for each command. All of them read a `Recording`, see `source`."""

from __future__ import annotations

import typer

from streams.cli.audit import checkpoint, explain, export, replay, verify, what_if

app = typer.Typer(
    help="Prove, explain and try again what was decided, from the topics alone or from an exported directory.",
    no_args_is_help=True,
)
app.command("replay")(replay.replay)
app.command("verify")(verify.verify)
app.command("explain")(explain.explain)
app.command("what-if")(what_if.what_if)
app.command("export")(export.export)
app.command("checkpoint")(checkpoint.checkpoint)
