"""Competition of every kind in one small pool: who files what, and what that shows.

The pool has 8 slots of 1,000 tokens/s: one token per ms each. Runs cost about 6,000 tokens. A scenario lasts twenty
minutes, which is 9.6 million tokens in all, and asks for more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from streams.core.policy import Estimates, EstimateSource, TenantRules
from streams.simulate.costs import Always, Around, Costs, Guess, HeavyTail, InTurns, PowerTail
from streams.simulate.pool import Outage
from streams.simulate.scenarios.rules import plain_policy
from streams.simulate.story import Story
from streams.simulate.workload import Load, make_workload

SLOTS: Final = 8
TOKENS_PER_S: Final = 1_000
LASTS_MS: Final = 20 * 60_000
QUANTUM: Final = 12_000

_SOON_MS: Final = 30_000  # what is filed "at once" comes within this time
_MINUTE_MS: Final = 60_000
_RUN: Final = 6_000  # tokens
_EXACT: Final = Guess((1,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Competition:
    """One scenario: everything in it that is not as above."""

    shows: str  # one sentence
    loads: tuple[Load, ...]
    weights: Mapping[str, int] = field(default_factory=dict)  # 1 for who is not named
    source: EstimateSource = "history"
    min_charge: int = 1
    silent: frozenset[str] = frozenset()
    outages: tuple[Outage, ...] = ()
    slots: int = SLOTS
    shards: int = 1

    def story(self, name: str, seed: int) -> Story:
        """Return it as it is drawn from a seed."""
        tenants = {load.tenant: TenantRules(weight=self.weights.get(load.tenant, 1)) for load in self.loads}
        return Story(
            name=name,
            title=self.shows,
            arrivals=make_workload(self.loads, seed=seed, tokens_per_s=TOKENS_PER_S),
            policy=plain_policy(
                name,
                self.slots,
                quantum=QUANTUM,
                estimate=_RUN,
                tenants=tenants,
                estimates=Estimates(source=self.source, min_charge=self.min_charge),
            ),
            slots=self.slots,
            tokens_per_s=TOKENS_PER_S,
            compression=1,
            shards=self.shards,
            outages=self.outages,
            lasts_ms=LASTS_MS,
            silent=self.silent,
        )


def _at_once(
    tenant: str,
    runs: int,
    costs: Costs | None = None,
    *,
    guess: Guess | None = None,
    workflows: int = 1,
    from_ms: int = 0,
) -> Load:
    """Return a queue that is filled at the beginning."""
    return Load(
        tenant=tenant,
        runs=runs,
        costs=costs or Around(_RUN),
        guess=guess,
        workflows=workflows,
        from_ms=from_ms,
        until_ms=from_ms + _SOON_MS,
    )


def _all_along(
    tenant: str,
    runs: int,
    costs: Costs | None = None,
    *,
    guess: Guess | None = None,
    workflows: int | None = 1,
) -> Load:
    """Return traffic that is spread over the whole time: what is filed later is guessed by what has ended."""
    costs = costs or Around(_RUN)
    return Load(tenant=tenant, runs=runs, costs=costs, guess=guess, workflows=workflows, from_ms=0, until_ms=LASTS_MS)


def _again(
    tenant: str, runs: int, costs: Costs | None = None, *, lasting_ms: int, every_ms: int, guess: Guess | None = None
) -> Load:
    """Return bursts of `runs` each."""
    times = -(-LASTS_MS // every_ms)
    costs = costs or Around(_RUN)
    return Load(
        tenant=tenant,
        runs=runs,
        costs=costs,
        guess=guess,
        from_ms=0,
        until_ms=lasting_ms,
        times=times,
        every_ms=every_ms,
    )


def _plenty(names: Iterable[str], *, guess: Guess | None = None) -> tuple[Load, ...]:
    """Return enough for one of four to be backlogged from the first half minute to the end."""
    return tuple(_at_once(name, 500, guess=guess) for name in names)


def _steady(names: Iterable[str]) -> tuple[Load, ...]:
    """Return the same, spread over the whole time."""
    return tuple(_all_along(name, 700) for name in names)


_FEW: Final = ("b", "c", "d")
_MANY: Final = tuple("bcdefghij")
_HEAVY: Final = PowerTail(least=2_400, most=120_000)
_LARGE: Final = tuple(f"large-{number:02}" for number in range(1, 13))
_SMALL: Final = tuple(f"small-{number:02}" for number in range(1, 29))

COMPETITIONS: Final[Mapping[str, Competition]] = {
    "equal": Competition(
        shows="Who floods the queue gets no more than the others of its weight.",
        loads=(_at_once("a", 1_200), *_plenty(_FEW)),
    ),
    "weights": Competition(
        shows="Tenants that always have work share the tokens by their weights, 1 to 2 to 5.",
        loads=tuple(_at_once(name, 1_100) for name in "abc"),
        weights={"a": 1, "b": 2, "c": 5},
    ),
    "always-large": Competition(
        shows="One tenant always wants more than everything; nine that want little get it at once.",
        loads=(_at_once("whale", 1_700), *(_all_along(name, 60) for name in _MANY)),
    ),
    "dear-and-cheap": Competition(
        shows="Runs a hundred times as dear bring no larger share: tokens are shared, not turns.",
        loads=(_at_once("dear", 250, Around(60_000)), _at_once("cheap", 9_000, Around(600))),
    ),
    "bursty": Competition(
        shows="Bursts pass ahead of standing queues as long as they ask for less than their share.",
        loads=(
            _again("bursty", 60, lasting_ms=18_000, every_ms=4 * _MINUTE_MS),
            *(_at_once(name, 700) for name in _FEW),
        ),
    ),
    "on-off": Competition(
        shows="Who is silent every other two minutes saves nothing up for when it is not.",
        loads=(
            _again("on-off", 130, lasting_ms=2 * _MINUTE_MS, every_ms=4 * _MINUTE_MS),
            *(_at_once(name, 900) for name in ("b", "c")),
        ),
    ),
    "heavy-tails": Competition(
        shows="Most runs are small and one in a hundred costs fifty times as much; shares hold all the same.",
        loads=(_at_once("a", 1_500, _HEAVY), *(_at_once(name, 500, _HEAVY) for name in _FEW)),
    ),
    "liar-quarter": Competition(
        shows="Who says a quarter of the truth gains nothing: it pays the rest when its runs end.",
        loads=(_at_once("liar", 1_200, guess=Guess((0.25,))), *_plenty(_FEW, guess=_EXACT)),
        source="hint",
    ),
    "liar-fourfold": Competition(
        shows="Who says four times the truth loses nothing: it is given back what it paid too much.",
        loads=(_at_once("liar", 1_200, guess=Guess((4,))), *_plenty(_FEW, guess=_EXACT)),
        source="hint",
    ),
    "liar-swings": Competition(
        shows="Who says a tenth and ten times the truth by turns gains nothing either.",
        loads=(_at_once("liar", 1_200, guess=Guess((10, 0.1))), *_plenty(_FEW, guess=_EXACT)),
        source="hint",
    ),
    "liar-quarter-max": Competition(
        shows="Where the larger of guess and history counts, a guess that is too low changes nothing.",
        loads=(_at_once("liar", 1_200, guess=Guess((0.25,))), *_plenty(_FEW)),
        source="max",
    ),
    "liar-fourfold-max": Competition(
        shows="Where the larger of guess and history counts, a guess that is too high is paid back.",
        loads=(_at_once("liar", 1_200, guess=Guess((4,))), *_plenty(_FEW)),
        source="max",
    ),
    "new-workflows": Competition(
        shows="A new name for every run, so that none has a history, brings nothing, though runs are dear.",
        loads=(_all_along("liar", 600, Around(4 * _RUN), workflows=None), *_steady(_FEW)),
    ),
    "borrowed-names": Competition(
        shows="Dear runs under the names of cheap ones bring nothing: histories are each tenant's own.",
        loads=(
            _all_along("liar", 600, Around(4 * _RUN), workflows=20),
            *(_all_along(name, 1_400, Around(_RUN // 2), workflows=20) for name in _FEW),
        ),
    ),
    "trained": Competition(
        shows="A history trained on forty cheap runs brings nothing to the twenty dear ones that follow.",
        loads=(_all_along("liar", 1_200, InTurns(((40, 1_200), (20, 24_000)))), *_steady(_FEW)),
    ),
    "unsteady": Competition(
        shows="Costs that swing by a hundred from run to run, always guessed wrong, neither gain nor lose.",
        loads=(_all_along("liar", 400, InTurns(((1, 600), (1, 60_000)))), *_steady(_FEW)),
    ),
    "cheap-looking-bursts": Competition(
        shows="Bursts that look cheap, and go quiet until the bills are in, gain nothing: debt stays.",
        loads=(
            _again("cheat", 10, Around(4 * _RUN), lasting_ms=600, every_ms=_MINUTE_MS, guess=Guess((0.05,))),
            *(_at_once(name, 190, guess=_EXACT) for name in _MANY),
        ),
        source="hint",
    ),
    "newcomers": Competition(
        shows="Who comes later has its share from when it comes, and no more to make up for what it missed.",
        loads=tuple(_at_once(f"t{number}", 800, from_ms=number * 3 * _MINUTE_MS) for number in range(5)),
    ),
    "returning": Competition(
        shows="Who returns after a long silence has its share, without credit for the silence.",
        loads=(
            Load(
                tenant="returning",
                runs=150,
                costs=Around(_RUN),
                from_ms=0,
                until_ms=18_000,
                times=2,
                every_ms=13 * _MINUTE_MS,
            ),
            *(_at_once(name, 600) for name in _FEW),
        ),
    ),
    "no-usage": Competition(
        # What such a run holds its slot for is what it is charged.
        shows="Runs that report no cost are charged the policy's least charge: a flood of them is no way in.",
        loads=(_at_once("nothing", 8_000, Always(1_200), guess=Guess((0.0,))), *_plenty(_FEW, guess=_EXACT)),
        source="hint",
        min_charge=1_200,
        silent=frozenset({"nothing"}),
    ),
    "many-workflows": Competition(
        shows="One tenant under twenty workflows is one tenant.",
        loads=(_at_once("many", 1_200, workflows=20), *_plenty(_FEW)),
    ),
    "worker-loss": Competition(
        shows="Half of the workers die twice; their runs are tried again when their leases run out, and shares hold.",
        loads=(_at_once("a", 1_200), *_plenty(_FEW)),
        outages=(Outage(4 * _MINUTE_MS, 6 * _MINUTE_MS, 4), Outage(12 * _MINUTE_MS, 15 * _MINUTE_MS, 4)),
    ),
    "many-shards": Competition(
        shows="Forty tenants over four shards, a quarter of the window each: fair inside a shard, not between.",
        loads=(
            *(_at_once(name, 700) for name in _LARGE),
            *(_all_along(name, 40, HeavyTail(_RUN, reach=3.0, sigma=0.5)) for name in _SMALL),
        ),
        slots=4 * SLOTS,
        shards=4,
    ),
}
