"""The cases, as data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from math import gcd
from pathlib import Path
from typing import Any

from tests.builders import make_policy, make_submit
from tests.drivers import Driver

FOLDER = Path(__file__).parents[1] / "data" / "cases"


@dataclass(frozen=True)
class Case:
    """One file of `data/cases/scheduling`; see the NOTICE beside them."""

    name: str
    kind: str
    tenants: list[dict[str, Any]]
    arrivals: list[dict[str, Any]]
    expect: dict[str, Any]

    def quanta(self) -> dict[str, int]:
        """Return tokens per round of each tenant."""
        return {tenant["id"]: tenant.get("quantum", tenant.get("weight", 1)) for tenant in self.tenants}

    def items(self) -> list[tuple[str, str, int]]:
        """Return (tenant, run id, cost) of all arrivals, in their order."""
        numbers: dict[str, int] = {}
        items = []
        for arrival in self.arrivals:
            tenant = arrival["tenant"]
            for _ in range(arrival.get("count", 1)):
                number = numbers[tenant] = numbers.get(tenant, 0) + 1
                items.append((tenant, arrival.get("id", f"{tenant}-{number}"), arrival["cost"]))
        return items


@cache
def all_cases() -> dict[str, Case]:
    cases = {}
    for path in sorted((FOLDER / "scheduling").glob("*.json")):
        case = json.loads(path.read_text())
        assert case["name"] == path.stem
        fields = (case[field] for field in ("name", "kind", "tenants", "arrivals", "expect"))
        cases[path.stem] = Case(*fields)
    return cases


def names_of(kind: str) -> list[str]:
    return [name for name, case in all_cases().items() if case.kind == kind]


@cache
def all_faults() -> dict[str, dict[str, str]]:
    return {fault["id"]: fault for fault in json.loads((FOLDER / "faults.json").read_text())}


def serial(quanta: dict[str, int], *, runs: int = 1, doubted: bool = True) -> Driver:
    """Return a shard that serves one run at a time; `quanta` are tokens per round."""
    quantum = gcd(*quanta.values())
    weights = {tenant: tokens // quantum for tenant, tokens in quanta.items()}
    return Driver(make_policy(quantum=quantum, runs=runs, weights=weights), doubted=doubted)


def queue(driver: Driver, items: list[tuple[str, str, int]]) -> None:
    """Submit all in one step, so that all are queued before the first is dispatched."""
    driver.step(*(make_submit(t, run_id, position=driver.position(), cost=cost) for t, run_id, cost in items))
