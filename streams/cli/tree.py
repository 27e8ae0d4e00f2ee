"""All commands."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from streams import __version__
from streams.cli import (
    acls,
    audit,
    bench,
    cancel,
    demo,
    gate,
    migrate,
    policy,
    scheduler,
    simulate,
    status,
    submit,
    topics,
    up,
    worker,
)

EPILOG = (
    "Exit status: 0 done; 1 failed; 2 something must be corrected first; 75 Kafka does not answer, try again; "
    "130 interrupted."
)

# As they are met: first all of it, then its parts, then what is asked of them.
_ORDER: Final = (
    *("demo", "up", "topics", "policy", "scheduler", "submit", "cancel", "worker", "status"),
    *("audit", "simulate", "acls", "gate", "migrate", "bench"),
)


class _InOrder(TyperGroup):
    """Lists commands and groups of commands in one order: typer puts all groups last."""

    def list_commands(self, ctx: Any) -> list[str]:  # which Context that is depends on the release of typer
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    cls=_InOrder,
    name="fairstream",
    help="Tenant-fair run scheduling on Kafka: deficit round robin, metered in tokens.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # errors are ours to show, see `streams.cli.entry`
    rich_markup_mode=None,  # plain help: it is also read in logs, and shows in a tenth of a second
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairstream {__version__}")
        raise typer.Exit


@app.callback()
def fairstream(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tenant-fair run scheduling on Kafka: deficit round robin, metered in tokens."""


app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("topics")(topics.topics)
app.add_typer(policy.app, name="policy")
app.add_typer(migrate.app, name="migrate")
app.command("scheduler")(scheduler.scheduler)
app.add_typer(gate.app, name="gate")
app.command("acls")(acls.acls)
app.command("submit")(submit.submit)
app.command("cancel")(cancel.cancel)
app.command("worker", epilog=worker.EXEC_CONTRACT)(worker.worker)
app.command("status")(status.status)
app.add_typer(audit.app, name="audit")
app.add_typer(simulate.app, name="simulate")
app.add_typer(bench.app, name="bench")
