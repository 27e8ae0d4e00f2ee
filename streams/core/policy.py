"""The stated rules: quantum, window, classes, plans, tenants, limits.

A `Policy` is immutable and whole: it has been checked by `streams.core.policy_check` before it exists.
`rules_for(tenant)` is what the rest of the core asks; it is worked out once per tenant and policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

EstimateSource = Literal["history", "hint", "max"]
Overload = Literal["refuse", "drop_longest"]
BetweenClasses = Literal["strict", "shares"]
Removal = Literal["serve", "reject"]

DEFAULT_CLASS: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How much may be in flight in the whole deployment; shards divide it. None: no limit of that kind."""

    runs: int | None = 64
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """A priority class. Within one, tenants share by weight; `Policy.between_classes` says how classes do."""

    name: str
    default_estimate: int = 1_000  # tokens assumed for a workflow without any history
    weight: int = 1  # between_classes = "shares": its share is weight / sum of the weights of classes with work
    min_share: int = 0  # between_classes = "strict": percent of the tokens it gets even if those above have work


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRules:
    """What holds for one tenant. None: no limit of that kind."""

    plan: str | None = None  # shown to people beside the weight
    group: str | None = None  # tenants of one group share the group's weight; their own divide it among them
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
    max_queued_bytes: int | None = 1 << 30  # payloads of the runs of one shard that have not ended
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
    """What is remembered of what is over, and how much of it: memory stays bounded, whatever is sent."""

    ended_ms: int = 3_600_000  # an ended run, so that a late producer's retry is told from a new run
    ended_runs: int = 200_000  # of one shard; the oldest are forgotten first
    flows: int = 1_000_000  # (class, tenant)s of one shard; who has been idle longest and owes nothing is forgotten
    histories: int = 200_000  # (tenant, workflow)s of one shard; the least recently used are forgotten first
    tenant_histories: int = 256  # of one tenant


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
    on_removal: Removal = "serve"  # the queued runs of a tenant that a closed policy no longer names
    between_classes: BetweenClasses = "strict"  # by order, or by weight
    groups: dict[str, int] = field(default_factory=dict)  # weight of each
    limits: Limits = field(default_factory=Limits)
    estimates: Estimates = field(default_factory=Estimates)
    leases: Leases = field(default_factory=Leases)
    memory: Memory = field(default_factory=Memory)

    def rules_for(self, tenant: str) -> TenantRules:
        """Return what holds for `tenant`: its own rules, else the default's."""
        return self.tenants.get(tenant, self.default)

    def removes(self, tenant: str) -> bool:
        """Tell whether the runs of `tenant` are to be rejected, since it is not named (any more)."""
        return self.closed and self.on_removal == "reject" and tenant not in self.tenants
