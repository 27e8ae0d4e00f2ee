"""The living form of tenants and flows: their records plus everything that can be worked out from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core.fifo import Fifo
from streams.core.records import FLOW, FlowRecord, fields_of

if TYPE_CHECKING:
    from streams.core.groups import Group
    from streams.core.policy import Policy, TenantRules
    from streams.core.records import Key
    from streams.core.ring import Ring
    from streams.core.runs import Run

NOT_IN_HEAP = -1
_FIELDS: Final = fields_of(FlowRecord)


class Tenant:
    """What a tenant has queued and in flight, over all its flows."""

    __slots__ = (
        "barred",
        "flight_runs",
        "flight_tokens",
        "flows",
        "held_bytes",
        "holes",
        "name",
        "queued_runs",
        "queued_tokens",
        "rules",
        "runs",
    )

    def __init__(self, name: str, rules: TenantRules) -> None:
        """Begin with nothing."""
        self.name = name
        self.rules = rules
        self.barred = rules.paused  # or its runs are to be rejected: nothing of it may start
        self.runs: dict[str, Run] = {}  # by run_id: every run that has not ended
        self.holes = 0  # entries that have been taken out of `runs` where it is searched from its end
        self.flows: list[Flow] = []  # one per class it has used
        self.queued_runs = 0  # == runs that are QUEUED or DELAYED
        self.queued_tokens = 0  # == sum of their estimates
        self.held_bytes = 0  # == sum of the bodies of its runs
        self.flight_runs = 0  # == attempts that hold a place in the window
        self.flight_tokens = 0  # == sum of their estimates

    def flow(self, class_: str) -> Flow | None:
        """Return its flow in a class, if it has one."""
        for flow in self.flows:
            if flow.class_ == class_:
                return flow
        return None

    def obey(self, policy: Policy) -> None:
        """Take over what a policy says of the tenant. The caller refreshes it."""
        self.rules = policy.rules_for(self.name)
        self.barred = self.rules.paused or policy.removes(self.name)

    def has_room(self, tokens: int) -> bool:
        """Tell whether the tenant's own caps let a run of `tokens` start. A run bigger than the cap goes alone."""
        if self.barred:
            return False
        rules = self.rules
        if rules.max_runs_in_flight is not None and self.flight_runs >= rules.max_runs_in_flight:
            return False
        cap = rules.max_tokens_in_flight
        return cap is None or self.flight_tokens + tokens <= cap or self.flight_runs == 0


class Flow(FlowRecord):
    """A (class, tenant) with its queue. A `FlowRecord` itself, so that it can be written as a row as it is."""

    ring: Ring  # set when the ring takes it in

    __slots__ = ("eligible", "group", "key", "open", "parent", "queue", "rate", "ring")

    def __init__(self, record: FlowRecord, parent: Tenant, quantum: int) -> None:
        """Adopt a record. The flow is not yet in any ring."""
        super().__init__(*_FIELDS(record))
        self.parent = parent
        self.key: Key = (FLOW, record.class_, record.tenant)
        self.queue = Fifo()
        self.open = 0  # == runs that have not ended + revoked attempts + accounts of lost attempts of ended runs
        self.group: Group | None = None  # those it shares a weight with
        # Tokens per round. In a group it earns when it is ACTIVE, by what `Group.share` says then.
        self.rate = quantum * parent.rules.weight if parent.rules.group is None else 0
        self.eligible = NOT_IN_HEAP  # the round in which its visit will be worth while, if it waits for one
