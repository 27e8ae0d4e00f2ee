"""Policy documents: checked as a whole, then made into a `Policy`; and back.

A document is what a TOML or JSON parser returns for:

    name, quantum, closed, on_removal, between_classes
    [window]  [limits]  [estimates]  [leases]  [memory]      one table each, all fields optional
    [[classes]]                                              highest first
    [default]                                                rules for tenants that are not named
    [plans.NAME]                                             rules that tenants take by `plan = "NAME"`
    [groups.NAME]                                            a weight that tenants share by `group = "NAME"`
    [tenants.NAME]                                           rules of one tenant

Rules are looked up from the particular to the general: the tenant's own, its plan's, the default's, the built-in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

from streams.core import policy_fields as fields
from streams.core.policy import (
    Estimates,
    Leases,
    Limits,
    Memory,
    Policy,
    PriorityClass,
    TenantRules,
    Window,
)
from streams.core.policy_fields import Check, Wrong

Path = tuple[str | int, ...]

# The policy travels as one Kafka message and is held by every shard: both want a bound.
MAX_TENANTS: Final = 20_000
MAX_CLASSES: Final = 64
# When a tenant gets or loses work, the weights of all in its group that have work are worked out anew.
MAX_GROUP: Final = 1_000
MAX_MIN_SHARES: Final = 99  # percent, of all classes: something is left to be given by order

_SECTIONS: Final = (
    "window", "classes", "default", "plans", "groups", "tenants", "limits", "estimates", "leases", "memory"
)  # fmt: skip
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN: Final = 60  # characters of a wrong value in a message
_LISTED: Final = 20  # known names in a message

T = TypeVar("T")


class Problem(NamedTuple):
    """One thing that is wrong with a document. `path` leads to it: ("tenants", "acme", "weight")."""

    path: Path
    value: object
    message: str

    @property
    def where(self) -> str:
        """The path as TOML would write it."""
        text = ""
        for part in self.path:
            if isinstance(part, int):
                text += f"[{part}]"
            else:
                text += "." * bool(text) + (part if _BARE.fullmatch(part) else f'"{part}"')
        return text

    def __str__(self) -> str:
        got = repr(self.value)
        return f"{self.where}: {self.message} (got {got if len(got) <= _SHOWN else got[:_SHOWN] + '…'})"


class PolicyInvalid(ValueError):
    """The policy document has problems, all of which are listed; nothing was changed."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def parse_policy(document: Mapping[str, object]) -> Policy:
    """Return the policy that a document states.

    Raises `PolicyInvalid` with every problem found, in the order of the document's sections: unknown field (with
    the nearest known one), wrong type, out of range, unknown plan or group, class named twice, limits that
    contradict, numbers that would count for nothing.
    """
    return _Check().policy(document)


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return a document of plain values, complete, for which `parse_policy(policy_document(p)) == p`.

    Plans are resolved in a policy: each tenant states all its rules here, and a plan only its name.
    """
    document = asdict(policy)
    document["classes"] = list(document["classes"])
    document["groups"] = {group: {"weight": weight} for group, weight in policy.groups.items()}
    rules = [policy.default, *policy.tenants.values()]
    document["plans"] = {plan: {} for plan in sorted({rule.plan for rule in rules if rule.plan is not None})}
    return document


class _Check:
    """One pass over one document, collecting problems."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def policy(self, document: Mapping[str, object]) -> Policy:
        top = self._fields((), document, fields.POLICY, also=_SECTIONS)
        window = self._section(document, "window", Window(), fields.WINDOW)
        if window.runs is None and window.tokens is None:
            self._wrong(
                ("window",), "unlimited", "limit runs, tokens or both: else all is dispatched at once, unfairly"
            )
        classes = self._classes(document, top.get("between_classes", document.get("between_classes", "strict")))
        plans = {
            plan: self._fields(("plans", plan), table, fields.PLAN) for plan, table in self._named(document, "plans")
        }
        groups = self._groups(document)
        default = self._rules(("default",), document.get("default", {}), TenantRules(), plans)
        tenants = self._tenants(document, default, plans)
        self._members(groups, default, tenants)
        limits = self._section(document, "limits", Limits(), fields.LIMITS)
        estimates = self._section(document, "estimates", Estimates(), fields.ESTIMATES)
        leases = self._section(document, "leases", Leases(), fields.LEASES)
        self._ordered("leases", leases, "lease_ms", "max_lease_ms")
        self._ordered("leases", leases, "backoff_ms", "max_backoff_ms")
        memory = self._section(document, "memory", Memory(), fields.MEMORY)
        self._ordered("memory", memory, "tenant_histories", "histories")
        if self._problems:
            raise PolicyInvalid(tuple(self._problems))
        return replace(
            Policy(),
            window=window,
            classes=classes,
            default=default,
            groups=groups,
            tenants=tenants,
            limits=limits,
            estimates=estimates,
            leases=leases,
            memory=memory,
            **top,
        )

    def _classes(self, document: Mapping[str, object], between: object) -> tuple[PriorityClass, ...]:
        if "classes" not in document:
            return Policy().classes
        listed = document["classes"]
        if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MAX_CLASSES:
            self._wrong(("classes",), listed, f"must be a list of 1 to {MAX_CLASSES} classes")
            return ()
        classes: dict[str, PriorityClass] = {}
        for index, table in enumerate(listed):
            given = self._fields(("classes", index), table, fields.CLASS)
            name = given.get("name")
            if name is None:
                if isinstance(table, Mapping) and "name" not in table:
                    self._wrong(("classes", index), dict(table), "a class needs a name")
            elif name in classes:
                self._wrong(("classes", index, "name"), name, "this class stands here twice")
            else:
                classes[name] = PriorityClass(**given)
                self._heeded(index, classes[name], between)
        least = sum(each.min_share for each in classes.values())
        if least > MAX_MIN_SHARES:
            self._wrong(("classes",), least, f"the min_share of all classes must be at most {MAX_MIN_SHARES} in sum")
        return tuple(classes.values())

    def _heeded(self, index: int, stated: PriorityClass, between: object) -> None:
        """A number that the other way of sharing between classes asks for would be passed over without a word."""
        if between == "strict" and stated.weight != 1:
            self._wrong(("classes", index, "weight"), stated.weight, 'counts only with between_classes = "shares"')
        if between == "shares" and stated.min_share:
            self._wrong(
                ("classes", index, "min_share"), stated.min_share, 'counts only with between_classes = "strict"'
            )

    def _groups(self, document: Mapping[str, object]) -> dict[str, int]:
        stated = {
            group: self._fields(("groups", group), table, fields.GROUP)
            for group, table in self._named(document, "groups")
        }
        return {group: given.get("weight", 1) for group, given in stated.items()}

    def _members(self, groups: Mapping[str, int], default: TenantRules, tenants: Mapping[str, TenantRules]) -> None:
        """Check who says to be of which group."""
        if default.group is not None:
            self._wrong(("default", "group"), default.group, "only tenants that are named can be in a group")
            return
        for tenant, rules in tenants.items():
            if rules.group is not None and rules.group not in groups:
                self._wrong(("tenants", tenant, "group"), rules.group, "no such group" + _nearest(rules.group, groups))
        for group, members in Counter(rules.group for rules in tenants.values()).items():
            if group in groups and members > MAX_GROUP:
                self._wrong(("groups", str(group)), members, f"at most {MAX_GROUP} tenants can be in a group")

    def _tenants(
        self, document: Mapping[str, object], default: TenantRules, plans: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, TenantRules]:
        named = self._named(document, "tenants")
        if len(named) > MAX_TENANTS:
            self._wrong(
                ("tenants",), len(named), f"at most {MAX_TENANTS} tenants can be named; use plans and the default"
            )
            return {}
        return {tenant: self._rules(("tenants", tenant), table, default, plans) for tenant, table in named}

    def _rules(
        self, path: Path, table: object, base: TenantRules, plans: Mapping[str, Mapping[str, Any]]
    ) -> TenantRules:
        own = self._fields(path, table, fields.RULES)
        plan = own.get("plan")
        if plan is None:
            return replace(base, **own)
        if plan not in plans:
            self._wrong((*path, "plan"), plan, "no such plan" + _nearest(plan, plans))
            return base
        return replace(base, **{**plans[plan], **own})

    def _section(self, document: Mapping[str, object], name: str, base: T, checks: Mapping[str, Check]) -> T:
        given = self._fields((name,), document.get(name, {}), checks)
        changed: T = replace(base, **given)  # type: ignore[type-var]
        return changed

    def _named(self, document: Mapping[str, object], section: str) -> list[tuple[str, object]]:
        """Return the named tables of `plans`, `groups` or `tenants`, without those whose name cannot be."""
        tables = document.get(section, {})
        if not isinstance(tables, Mapping):
            self._wrong((section,), tables, f"must be tables, as in [{section}.NAME]")
            return []
        usable = []
        for name, table in tables.items():
            verdict = fields.name(name)
            if isinstance(verdict, Wrong):
                self._wrong((section, str(name)), name, f"the name {verdict.message}")
            else:
                usable.append((name, table))
        return usable

    def _fields(
        self, path: Path, table: object, checks: Mapping[str, Check], also: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the good fields of a table and note the others; `also` are fields that are looked at elsewhere."""
        if not isinstance(table, Mapping):
            self._wrong(path, table, "must be a table")
            return {}
        good: dict[str, Any] = {}
        for name, value in table.items():
            if name in also:
                continue
            check = checks.get(name)
            if check is None:
                self._wrong((*path, name), value, "no such field" + _nearest(name, [*checks, *also]))
                continue
            verdict = check(value)
            if isinstance(verdict, Wrong):
                self._wrong((*path, name), value, verdict.message)
            else:
                good[name] = verdict
        return good

    def _ordered(self, section: str, record: object, smaller: str, larger: str) -> None:
        low, high = getattr(record, smaller), getattr(record, larger)
        if low > high:
            self._wrong((section, smaller), low, f"must not be above {larger} ({high})")

    def _wrong(self, path: Path, value: object, message: str) -> None:
        self._problems.append(Problem(path, value, message))


def _nearest(name: object, known: Iterable[str]) -> str:
    names = list(known)
    close = get_close_matches(str(name), names, n=1)
    if close:
        return f'; did you mean "{close[0]}"?'
    more = ", …" * (len(names) > _LISTED)
    return f"; known: {', '.join(names[:_LISTED])}{more}" if names else ""
