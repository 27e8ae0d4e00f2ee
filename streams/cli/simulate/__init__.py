"""`fairstream simulate ...`: one module for each command."""

from __future__ import annotations

import typer

from streams.cli.simulate import faults, published

app = typer.Typer(help="What would happen, on a virtual clock and without Kafka.", no_args_is_help=True)
app.command("faults")(faults.faults)
app.command("published")(published.published)
