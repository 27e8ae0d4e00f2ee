"""`fairstream simulate [SCENARIO | --trace FILE]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli import options
from streams.cli.output import counted, remark, say, say_json
from streams.errors import ConfigError

if TYPE_CHECKING:
    from streams.simulate.story import Story

ALL = "ours,fifo,round-robin,no-restraint"

EPILOG = (
    "A trace is a CSV file with the columns at_s, tenant, id, input_tokens, output_tokens, and maybe workflow; it may "
    "be packed (.gz). Those that come along are found by name. Exit status 1 if a gap between two tenants exceeds the "
    "bound under ours."
)


def compare(
    scenario: Annotated[str | None, typer.Argument(help="One of those that --list shows; without it meridian.")] = None,
    *,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Recorded traffic instead of a scenario.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show the scenarios, and end.")] = False,
    schedulers: Annotated[str, typer.Option(metavar="NAMES", help="Which ones to compare.")] = ALL,
    seed: Annotated[int | None, typer.Option(help="Of a scenario's arrivals and costs.")] = None,
    slots: Annotated[int | None, typer.Option(min=1, help="Of the pool, and the window in runs.")] = None,
    hours: Annotated[
        float | None, typer.Option(help="Cut the traffic off, or repeat it, to last so long in its own time.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The rules for ours, and the weights of the ideal.")
    ] = None,
    slot_speed: Annotated[
        int | None, typer.Option(min=1, help="With --trace: tokens/s of a slot; else a pool for nine tenths of it.")
    ] = None,
    compression: Annotated[int, typer.Option(min=1, help="With --trace: times as fast as it was recorded.")] = 1,
    input_price: Annotated[int, typer.Option(min=1, help="With --trace: what an input token counts.")] = 1,
    output_price: Annotated[int, typer.Option(min=1, help="With --trace: what an output token counts.")] = 1,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw who was served when, and the waits.")
    ] = None,
    json: options.Json = False,
) -> None:
    """The scheduler on a virtual clock beside FIFO, turns by count and no restraint; all against the ideal.

    Hours of traffic in seconds, without Kafka: the decisions are those of the real core.
    """
    from streams import pictures
    from streams.simulate import comparison
    from streams.simulate.contestants import choose
    from streams.simulate.scenarios.recorded import trace_story
    from streams.simulate.traces import Prices, find_trace

    if list_:
        _list(json=json)
        return
    chosen = choose(name.strip() for name in schedulers.split(","))
    if picture is not None:
        pictures.check(picture)
    if trace is None:
        _refuse_without_trace(slot_speed, compression, input_price, output_price)
        story = _scenario(scenario, seed)
    elif scenario is not None:
        raise ConfigError("give a scenario or --trace, not both", field="scenario", value=scenario)
    else:
        prices = Prices(input_price, output_price)
        story = trace_story(
            find_trace(trace), slots=slots, tokens_per_s=slot_speed, compression=compression, prices=prices
        )
    story = _changed(story, slots, hours, policy)
    runs = counted(len(story.arrivals), "run")
    figures = comparison.compare(story, chosen, watch=lambda name: remark(f"playing {runs} under {name}"))
    if picture is not None:
        from streams.simulate.picture import draw

        draw(figures, picture)
    if json:
        from streams.simulate.document import document

        say_json(document(figures))
    else:
        from streams.simulate.show import console_of, show

        show(figures, console_of())
    raise typer.Exit(0 if figures.holds else 1)


def _list(*, json: bool) -> None:
    from streams.simulate.scenarios.catalogue import SCENARIOS

    if json:
        say_json([{"name": scenario.name, "shows": scenario.shows} for scenario in SCENARIOS.values()])
        return
    width = max(map(len, SCENARIOS))
    for scenario in SCENARIOS.values():
        say(f"{scenario.name:{width}}  {scenario.shows}")


def _scenario(name: str | None, seed: int | None) -> Story:
    from streams.simulate.scenarios.catalogue import SEED, find_scenario

    return find_scenario(name or "meridian").story(SEED if seed is None else seed)


def _changed(story: Story, slots: int | None, hours: float | None, policy: Path | None) -> Story:
    if slots is not None:
        story = story.on(slots)
    if hours is not None:
        story = story.lasting(hours)
    if policy is not None:
        from streams.admin.policy import load_policy

        story = story.under(load_policy(policy))
    return story


def _refuse_without_trace(slot_speed: int | None, compression: int, input_price: int, output_price: int) -> None:
    for name, given in (
        ("--slot-speed", slot_speed or 1),
        ("--compression", compression),
        ("--input-price", input_price),
        ("--output-price", output_price),
    ):
        if given != 1:
            raise ConfigError("needs --trace: a scenario has its own", field=name, value=given)
