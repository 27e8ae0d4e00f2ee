"""Producers: they file runs, take some back, and repeat, misplace and mangle what they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from streams.core.policy import Leases, Limits, Policy, PriorityClass, TenantRules, Window
from streams.simulate.faulty.chances import ASKED_LATE, ASKED_TWICE, CANCELLED, UNREADABLE
from streams.simulate.faulty.scene import Scene
from streams.wire import PolicyChange, encode_cancel, encode_policy, encode_request

CLASSES: Final = ("default", "batch")

_RECENT: Final = 10  # runs that may be taken back, or asked for again
_MANGLED: Final = (b"{", b"", None, b'{"run_id":1}', b"\xff")


def policies(tenants: int, shards: int) -> list[Policy]:
    """Return the rules that are stated one after the other: the last ones let everything be served."""
    first = Policy(
        quantum=300,
        window=Window(runs=4 * shards, tokens=4_000 * shards),
        classes=tuple(PriorityClass(name=name, default_estimate=300, weight=2) for name in CLASSES),
        between_classes="shares",
        tenants={f"t{number}": TenantRules(weight=1 + number % 3) for number in range(tenants)},
        limits=Limits(max_queued_runs=40),
        leases=Leases(lease_ms=2_000, min_lease_ms=500, max_lease_ms=6_000, backoff_ms=20, max_backoff_ms=200),
    )
    hard: Mapping[str, TenantRules] = {
        "t0": TenantRules(weight=5, max_runs_in_flight=1),
        "t1": TenantRules(max_queued_runs=2),
        "t2": TenantRules(paused=True),
    }
    grouped = {name: replace(rules, group="g") for name, rules in first.tenants.items() if name in {"t3", "t4"}}
    strict = tuple(PriorityClass(name=each.name, default_estimate=300) for each in first.classes)
    return [
        first,
        replace(first, tenants={**first.tenants, **hard}, quantum=200),
        replace(first, tenants={**first.tenants, **grouped}, groups={"g": 2}, window=Window(runs=2 * shards)),
        replace(
            first,
            between_classes="strict",
            classes=strict,
            limits=Limits(max_queued_runs=40, overload="drop_longest"),
        ),
    ]


class Producers:
    """Everybody who writes requests, and the operator who states policies."""

    def __init__(self, scene: Scene, tenants: int) -> None:
        self._scene: Final = scene
        self._tenants: Final = tenants
        self._filed = 0
        self._recent: list[tuple[str, str, bytes]] = []  # tenant, run_id, request

    def state(self, policy: Policy) -> None:
        """State the rules from here on."""
        log = self._scene.log
        change = PolicyChange(policy, "an operator", log.now_ms)
        log.append(("policy", 0), policy.name.encode(), encode_policy(change))

    def file(self) -> None:
        """Send what comes to their minds at this moment."""
        draw, fires = self._scene.chances.random, self._scene.chances.fires
        for _ in range(draw.randint(0, 4)):
            tenant = f"t{min(draw.randrange(self._tenants), draw.randrange(self._tenants))}"
            if fires(UNREADABLE):
                self._send(tenant, draw.choice(_MANGLED))
            value = self._request(tenant)
            self._send(tenant, value)
            if fires(ASKED_TWICE):
                self._send(tenant, value)
        if self._recent and fires(ASKED_LATE):
            tenant, _, value = draw.choice(self._recent)
            self._send(tenant, value)
        if self._recent and fires(CANCELLED):
            tenant, run_id, _ = draw.choice(self._recent)
            self._send(tenant, encode_cancel(tenant=tenant, run_id=run_id))

    def _request(self, tenant: str) -> bytes:
        draw, now_ms = self._scene.chances.random, self._scene.log.now_ms
        self._filed += 1
        run_id = f"r{self._filed}"
        value = encode_request(
            tenant=tenant,
            run_id=run_id,
            workflow=draw.choice(("chat", "agent")),
            class_=draw.choice((None, None, *CLASSES)),
            estimate=draw.choice((None, draw.randint(20, 1_500))),
            max_tokens=draw.choice((None, None, 2_000)),
            not_before_ms=draw.choice((None, None, None, now_ms + draw.randint(0, 1_500))),
            deadline_ms=draw.choice((None, None, None, None, now_ms + draw.randint(-100, 4_000))),
            max_attempts=draw.choice((None, None, 2)),
            payload={"number": self._filed},
        )
        self._recent = [*self._recent[1 - _RECENT :], (tenant, run_id, value)]
        return value

    def _send(self, tenant: str, value: bytes | None) -> None:
        self._scene.send("requests", tenant, value)
