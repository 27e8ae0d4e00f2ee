"""The stated rules: quantum, window, classes, plans, tenants, limits.

A `Policy` is immutable and whole: it has been checked by `streams.core.policy_check` before it exists.
`rules_for(tenant)` is what the rest of the core asks; it is worked out once per tenant and policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

EstimateSource = Literal["history", "hint", "max"]
Overload = Literal["refuse", "drop_longest"]

DEFAULT_CLASS: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How much may be in flight in the whole deployment; shards divide it. None: no limit of that kind."""

    runs: int | None = 64
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """A priority class. Classes are served in the order they are listed; within one, tenants share by weight."""

    name: str
    default_estimate: int = 1_000  # tokens assumed for a workflow without any history


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRules:
    """What holds for one tenant. None: no limit of that kind."""

    plan: str | None = None  # shown to people beside the weight
    weight: int = 1  # > 0; the stated share is weight / sum of the active tenants' weights
    max_runs_in_flight: int | None = None
    max_tokens_in_flight: int | None = None
    max_queued_runs: int | None = None
    max_queued_tokens: int | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that hold for everybody."""

    max_queued_runs: int | None = 1_000_000  # of one shard
    max_run_tokens: int | None = None  # the largest estimate that is admitted
    overload: Overload = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """How the cost of a run is guessed at admission."""

    source: EstimateSource = "history"
    prior_runs: int = 4  # a prior weighs as much as this many runs
    decay_runs: int = 32  # older runs fade: the mean follows about the last `decay_runs`
    min_charge: int = 1  # tokens; a run that spends less is charged this, so that no run is free


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """How long an attempt may stay silent, and how often it is tried."""

    lease_ms: int = 60_000
    min_lease_ms: int = 5_000  # for a request that asks for less: silence this short is not charged, so it must be rare
    max_lease_ms: int = 3_600_000
    max_attempts: int = 3
    backoff_ms: int = 1_000  # before attempt 2; doubled for each later one
    max_backoff_ms: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How long an ended run is remembered, so that a late producer's retry is told from a new run."""

    ended_ms: int = 3_600_000
    ended_runs: int = 200_000  # of one shard; the oldest are forgotten first


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All the rules. Equal policies are equal values."""

    name: str = "default"
    quantum: int = 1_000  # tokens a flow of weight 1 earns per round; > 0
    window: Window = field(default_factory=Window)
    classes: tuple[PriorityClass, ...] = (PriorityClass(name=DEFAULT_CLASS),)  # highest first, at least one
    default: TenantRules = field(default_factory=TenantRules)  # for tenants not named below
    tenants: dict[str, TenantRules] = field(default_factory=dict)
    closed: bool = False  # True: a tenant not named is refused
    limits: Limits = field(default_factory=Limits)
    estimates: Estimates = field(default_factory=Estimates)
    leases: Leases = field(default_factory=Leases)
    memory: Memory = field(default_factory=Memory)

    def rules_for(self, tenant: str) -> TenantRules:
        """Return what holds for `tenant`: its own rules, else the default's."""
        return self.tenants.get(tenant, self.default)
