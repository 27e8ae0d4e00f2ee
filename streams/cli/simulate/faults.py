"""`fairstream simulate faults`."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.cli import options


def faults(
    *,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="How many of them, one after the other.")] = 1,
    shards: Annotated[int, typer.Option(min=1, help="Shards of each deployment.")] = 3,
    processes: Annotated[int, typer.Option(min=1, help="Processes that own them.")] = 3,
    tenants: Annotated[int, typer.Option(min=1, help="Tenants that file runs.")] = 6,
    ticks: Annotated[
        int, typer.Option(min=1, help="Moments at which something happens, before it is left to rest.")
    ] = 80,
    json: options.Json = False,
) -> None:
    """A deployment under faults between any two effects of a step, without Kafka, checked after every step.

    Owners die, their transactions fail, they sleep and come back as zombies, before and after each record that a step
    writes; workers are lost, records come twice, late and astray. The steps are those of the real scheduler, the topics
    are simulated. A seed gives the same run every time.

    Exit status 1: something is wrong, and the seed is named.
    """
    from streams.app.in_memory import load
    from streams.bench.progress import counting_to
    from streams.cli.output import say_json
    from streams.simulate.faulty import campaign
    from streams.simulate.faulty.world import Setting

    setting = Setting(shards=shards, processes=processes, tenants=tenants, ticks=ticks)
    with counting_to(seeds, "deployments") as done:
        found = campaign.run(range(seed, seed + seeds), load, setting, done)
    if json:
        say_json(campaign.document(found))
    else:
        from rich.console import Console

        campaign.show(found, Console(width=100))
    if found.unsound:
        raise typer.Exit(1)
