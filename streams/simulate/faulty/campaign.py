"""Many seeds, one after the other, and what they came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streams.simulate.faulty.chances import INTERRUPTIONS, KINDS, POINTS
from streams.simulate.faulty.shard import Load
from streams.simulate.faulty.world import Outcome, Setting, simulate

_PPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Campaign:
    """The outcomes of all seeds."""

    setting: Setting
    outcomes: Sequence[Outcome]

    @property
    def unsound(self) -> list[Outcome]:
        """Those in which something was found wrong."""
        return [each for each in self.outcomes if each.problem is not None]

    @property
    def fired(self) -> Counter[str]:
        """How often each kind of fault came."""
        return sum((Counter(each.fired) for each in self.outcomes), Counter())


def run(
    seeds: Iterable[int], load: Load, setting: Setting, done: Callable[[int], None] = lambda _number: None
) -> Campaign:
    """Simulate a deployment with each seed. `done` is told how many there have been."""
    outcomes: list[Outcome] = []
    for seed in seeds:
        outcomes.append(simulate(seed, load, setting)[0])
        done(len(outcomes))
    return Campaign(setting, outcomes)


def document(campaign: Campaign) -> dict[str, Any]:
    """Return all of it, for programs."""
    return {
        "sound": not campaign.unsound,
        "shards": campaign.setting.shards,
        "processes": campaign.setting.processes,
        "tenants": campaign.setting.tenants,
        "ticks": campaign.setting.ticks,
        "fired": {kind: campaign.fired[kind] for kind in KINDS},
        "outcomes": [each._asdict() for each in campaign.outcomes],
    }


def show(campaign: Campaign, console: Console) -> None:
    """Print it for people: what was gone through, and what was found."""
    fired, outcomes = campaign.fired, campaign.outcomes
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("between two effects, after", no_wrap=True)
    for point in POINTS:
        table.add_column(point, justify="right", no_wrap=True)
    for kind in INTERRUPTIONS:
        table.add_row(kind, *(f"{fired[f'{kind} after {point}']:,}" for point in POINTS))
    console.print(table)
    others = [kind for kind in KINDS if " after " not in kind]
    console.print()
    console.print(", ".join(f"{kind} {fired[kind]:,}" for kind in others) + "\n", style="dim")
    steps, runs, reigns = (sum(values) for values in zip(*((e.steps, e.runs, e.reigns) for e in outcomes), strict=True))
    gap = max(each.widest_gap_ppm for each in outcomes)
    console.print(
        f"{len(outcomes):,} deployments of {campaign.setting.shards} shards: {steps:,} steps, {runs:,} runs, "
        f"{reigns:,} takeovers; widest gap {gap / _PPM:.0%} of its bound"
    )
    for each in campaign.unsound:
        console.print(Text(f"seed {each.seed}: {each.problem}", style="bold"), soft_wrap=True)
    if not campaign.unsound:
        console.print("Everything held after every step.", style="bold")
