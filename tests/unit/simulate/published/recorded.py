"""The artifact's own recordings: see `tests/data/arena`."""

import csv
from pathlib import Path

from streams.simulate.published.engine import Answer
from streams.simulate.published.figures import requests

RUNS = [("fifo", 0), ("vtc", 1), ("predicted", 2)]  # each with its index among `figures.SCHEDULERS`

_FILE = Path(__file__).parents[3] / "data" / "arena" / "recorded.csv"


def recorded(run: str) -> list[Answer]:
    """Return the requests in the order of the trace, as they were answered on a real engine."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        times = {
            row["id"]: (int(row[f"{run}_first_ms"]) * 1_000, int(row[f"{run}_ended_ms"]) * 1_000)
            for row in csv.DictReader(file)
        }
    return [Answer(each, *times[each.number]) for each in requests()]
