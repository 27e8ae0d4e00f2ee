"""Which other rules: a policy instead of the recorded ones, a part of them changed, or FIFO."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streams.core.policy_check import parse_policy, policy_document
from streams.core.policy_problems import PolicyInvalid
from streams.errors import ConfigError

if TYPE_CHECKING:
    from streams.core.policy import Policy, TenantRules
    from streams.simulate.deficit_round_robin import Stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is otherwise. All that is not named stays as it was, with every change that was made to it meanwhile."""

    policy: Policy | None = None  # all the time, instead of the recorded ones
    fifo: bool = False  # one queue for all, in the window that was
    quantum: int | None = None  # tokens
    window: int | None = None  # runs in flight, in the whole deployment
    weights: Mapping[str, int] = field(default_factory=dict)  # by tenant

    def __post_init__(self) -> None:
        """Raise `ConfigError` if nothing is changed, or if FIFO is asked to know what it cannot know."""
        numbers = (self.quantum, self.window)
        if not (self.policy or self.fifo or self.weights) and numbers == (None, None):
            raise ConfigError("say what is to be changed: --policy, --fifo, --quantum, --window or --weights")
        if self.fifo and (self.policy or self.quantum is not None or self.weights):
            raise ConfigError("FIFO knows neither policy, quantum nor weights", field="fifo")

    def apply(self, recorded: Policy) -> Policy:
        """Return what would have been stated. Raises `ConfigError`, naming the field, for what no shard would take."""
        base = self.policy or recorded
        changed = replace(
            base,
            quantum=base.quantum if self.quantum is None else self.quantum,
            window=base.window if self.window is None else replace(base.window, runs=self.window),
            tenants={**base.tenants, **{name: self._weighted(base, name) for name in self.weights}},
        )
        try:
            parse_policy(policy_document(changed))
        except PolicyInvalid as invalid:
            first = invalid.problems[0]
            raise ConfigError(first.message, field=first.where, value=first.value) from invalid
        return changed

    def check_names(self, known: Container[str], recorded: Iterable[Stated]) -> None:
        """Raise `ConfigError` for the weight of a tenant that is neither `known` nor named by any policy."""
        policies = [stated.policy for stated in recorded] + ([self.policy] if self.policy else [])
        for tenant in self.weights:
            if tenant not in known and not any(tenant in policy.tenants for policy in policies):
                raise ConfigError("nothing is recorded of this tenant", field="weights", value=tenant)

    @property
    def title(self) -> str:
        """What is changed, in a line."""
        parts = ["FIFO"] if self.fifo else []
        parts += [f"policy {self.policy.name!r}"] if self.policy else []
        parts += [] if self.quantum is None else [f"quantum {self.quantum:,}"]
        parts += [] if self.window is None else [f"window {self.window:,} runs"]
        if self.weights:
            parts.append("weights " + ", ".join(f"{name}={weight}" for name, weight in self.weights.items()))
        return "; ".join(parts)

    def _weighted(self, base: Policy, tenant: str) -> TenantRules:
        return replace(base.rules_for(tenant), weight=self.weights[tenant])
