"""Whether this process lives, and whether it serves what it was assigned: for supervisors and load balancers.

`/healthz` asks for a restart (503) only where a restart helps: a shard's thread hangs. A Kafka that is away or a state
that cannot be read is said, and waited for. `/readyz` is 200 only if everything assigned is served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streams.app.faust_overrides import SchedulerApp
    from streams.app.takeover import Fleet
    from streams.app.watch import KafkaWatch

_UNAVAILABLE = 503


def add_health_pages(app: SchedulerApp, fleet: Fleet, watch: KafkaWatch, *, stuck_s: float) -> None:
    """Add `/healthz` and `/readyz` to Faust's web server, which is up before the first takeover is done.

    A shard that has been in one step for longer than `stuck_s` seconds will not come out of it.
    """

    def trouble() -> dict[str, Any]:
        return {
            "kafka": f"has not answered for {watch.away_s:.0f} s" if watch.away_s else "answers",
            "unserved": {str(shard): why for shard, why in fleet.unserved.items()},
        }

    @app.page("/healthz")
    async def healthz(web: Any, _request: Any) -> Any:
        """The event loop answers. What ends a shard for good ends the process, so that is not asked here."""
        stuck = {str(shard): round(busy_s) for shard, busy_s in fleet.longest_steps.items() if busy_s > stuck_s}
        return web.json(
            {"status": "stuck" if stuck else "alive", "stuck_s": stuck, **trouble()},
            status=_UNAVAILABLE if stuck else 200,
        )

    @app.page("/readyz")
    async def readyz(web: Any, _request: Any) -> Any:
        """All of the last assignment is served; it may be empty, when there are more processes than shards."""
        ready = fleet.ready
        status = "ready" if ready else "incomplete" if fleet.unserved else "taking over"
        return web.json({"status": status, "shards": fleet.shards, **trouble()}, status=200 if ready else _UNAVAILABLE)
