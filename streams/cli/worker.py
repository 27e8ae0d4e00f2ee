"""`fairstream worker`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from streams.cli import options
from streams.cli.logs import configure_logging

EXEC_CONTRACT: Final = """\b
With --exec the command gets, for each run:
  standard input   the payload, as JSON; empty if there is none
  environment      FAIRSTREAM_TENANT, _RUN_ID, _WORKFLOW, _CLASS, _ATTEMPT, _ESTIMATE, _MAX_TOKENS,
                   _DEADLINE_MS, _HEADERS (JSON), and
                   FAIRSTREAM_USAGE_FILE: write the tokens spent so far into it, as one whole number
and ends with:
  exit status 0    succeeded
  exit status 65   failed, and no attempt will help
  anything else    failed, another attempt may help; the last line on standard error is the reason
A run that is not wanted any more gets SIGTERM, all its process group, and SIGKILL two seconds later.
"""


class Intake(StrEnum):
    """How dispatches are taken."""

    SHARE = "share"
    CLASSIC = "classic"


def worker(
    *,
    simulate: Annotated[
        bool, typer.Option("--simulate", help='Spend the tokens that payloads say: {"tokens": 500}.')
    ] = False,
    tokens_per_second: Annotated[
        float | None, typer.Option(help="With --simulate: the speed of each run. Without it: no time at all.")
    ] = None,
    command: Annotated[
        str | None, typer.Option("--exec", metavar="COMMAND", help="Run a command for each run (see below).")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Runs in progress at most.")] = 64,
    intake: Annotated[
        Intake, typer.Option(help="A share group (a preview; Kafka 4.2), or a classic consumer group.")
    ] = Intake.SHARE,
    group: Annotated[
        str | None, typer.Option(help="Workers of a group share the runs; without it <prefix>workers.")
    ] = None,
    drain: Annotated[float, typer.Option(min=0, help="Seconds to wait for runs when told to stop.")] = 30.0,
    name: Annotated[str, typer.Option(help="Who reports; without it host and process.")] = "",
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    verbose: options.Verbose = False,
) -> None:
    """Take dispatches and do them, until SIGTERM; a second one does not wait for the runs in progress."""
    if simulate == (command is not None):
        raise typer.BadParameter("say what to do with a run: --simulate, or --exec COMMAND")
    configure_logging(verbose=verbose)
    from streams.client.commands import command as run_command
    from streams.client.simulated import simulated
    from streams.client.worker import Worker, WorkerSettings

    settings = WorkerSettings(concurrency=concurrency, intake=intake.value, group=group, drain_s=drain, name=name)
    serving = Worker(options.kafka_settings(kafka, prefix, kafka_config), settings)
    serving.run()(run_command(command) if command is not None else simulated(tokens_per_second))
    serving.serve()
