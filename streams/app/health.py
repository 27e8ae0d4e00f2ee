"""Whether this process lives, and whether it serves what it was assigned: for supervisors and load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streams.app.faust_overrides import SchedulerApp
    from streams.app.takeover import Fleet

_UNAVAILABLE = 503


def add_health_pages(app: SchedulerApp, fleet: Fleet) -> None:
    """Add `/healthz` and `/readyz` to Faust's web server, which is up before the first takeover is done."""

    @app.page("/healthz")
    async def healthz(web: Any, _request: Any) -> Any:
        """The event loop answers. Failures of a shard end the process, so there is nothing else to say."""
        return web.json({"status": "alive"})

    @app.page("/readyz")
    async def readyz(web: Any, _request: Any) -> Any:
        """The last assignment is taken over; it may be empty, when there are more processes than shards."""
        return web.json(
            {"status": "ready" if fleet.ready else "taking over", "shards": fleet.shards},
            status=200 if fleet.ready else _UNAVAILABLE,
        )
