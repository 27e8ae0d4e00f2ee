"""`fairstream simulate published`."""

from __future__ import annotations

from streams.cli import options


def published(*, json: options.Json = False) -> None:
    """The published figures of 27 tenants at one engine (OSDI 2024): as they are, as they come out here, and ours.

    A real trace of ten minutes, played at a model of the engine it was measured on: FIFO, the virtual token counter,
    and this scheduler before that engine. Takes about half a minute.
    """
    from streams.bench.progress import counting_to
    from streams.cli.output import say_json
    from streams.simulate.published.figures import RUNS, SCHEDULERS, reproduce

    with counting_to(RUNS * len(SCHEDULERS), "plays") as tell:
        played = iter(range(1, RUNS * len(SCHEDULERS) + 1))
        rows = reproduce(done=lambda: tell(next(played)))
    if json:
        say_json([each._asdict() for each in rows])
    else:
        from rich.console import Console

        from streams.simulate.published.show import show

        show(rows, Console(width=100))
