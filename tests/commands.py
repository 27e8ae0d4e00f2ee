"""What the real command line makes of arguments, without running anything."""

from __future__ import annotations

from typing import Any

import typer.main

from streams.cli.tree import app


def parse(arguments: list[str]) -> dict[str, Any]:
    """Return the parameters that these arguments set; raise if the command line does not know them."""
    command: Any = typer.main.get_command(app)
    name, context = "fairstream", None
    while True:
        context = command.make_context(name, arguments, parent=context)
        if not hasattr(command, "resolve_command"):
            return dict(context.params)
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return dict(context.params)
        name, command, arguments = command.resolve_command(context, rest)
