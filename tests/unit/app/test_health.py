from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from streams.app.health import add_health_pages


class Stage:
    """Pages over a fleet and a watch that say what they are told to."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.fleet = SimpleNamespace(ready=True, shards=[0, 2], unserved={}, longest_steps={})
        self.watch = SimpleNamespace(away_s=0.0)
        app: Any = SimpleNamespace(page=self._page)
        fleet: Any = self.fleet
        watch: Any = self.watch
        add_health_pages(app, fleet, watch, stuck_s=90)

    def _page(self, path: str) -> Callable[[Any], Any]:
        def keep(view: Any) -> Any:
            self.pages[path] = view
            return view

        return keep

    def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        web = SimpleNamespace(json=lambda value, status: (status, value))
        answer: tuple[int, dict[str, Any]] = asyncio.run(self.pages[path](web, None))
        return answer


def test_all_is_well() -> None:
    stage = Stage()
    assert stage.ask("/healthz") == (200, {"status": "alive", "stuck_s": {}, "kafka": "answers", "unserved": {}})
    assert stage.ask("/readyz") == (200, {"status": "ready", "shards": [0, 2], "kafka": "answers", "unserved": {}})


def test_a_takeover_is_not_ready() -> None:
    stage = Stage()
    stage.fleet.ready = False
    status, body = stage.ask("/readyz")
    assert (status, body["status"]) == (503, "taking over")
    assert stage.ask("/healthz")[0] == 200


def test_a_shard_that_is_not_served_is_named_and_needs_no_restart() -> None:
    stage = Stage()
    stage.fleet.ready = False
    stage.fleet.unserved = {1: "refused: no row"}
    status, body = stage.ask("/readyz")
    assert (status, body["status"], body["unserved"]) == (503, "incomplete", {"1": "refused: no row"})
    status, body = stage.ask("/healthz")
    assert (status, body["status"], body["unserved"]) == (200, "alive", {"1": "refused: no row"})


def test_a_kafka_that_is_away_is_said_and_needs_no_restart() -> None:
    stage = Stage()
    stage.watch.away_s = 41.4
    status, body = stage.ask("/healthz")
    assert (status, body["kafka"]) == (200, "has not answered for 41 s")


def test_a_step_that_does_not_end_asks_for_a_restart() -> None:
    stage = Stage()
    stage.fleet.longest_steps = {0: 89.0, 2: 90.6}
    status, body = stage.ask("/healthz")
    assert (status, body["status"], body["stuck_s"]) == (503, "stuck", {"2": 91})
