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

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final, TypeVar

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
from streams.core.policy_problems import Path, PolicyInvalid, Problem, nearest
from streams.core.policy_sense import contradictions

# The policy travels as one Kafka message and is held by every shard: both want a bound.
MAX_TENANTS: Final = 20_000
MAX_CLASSES: Final = 64

_SECTIONS: Final = (
    "window", "classes", "default", "plans", "groups", "tenants", "limits", "estimates", "leases", "memory"
)  # fmt: skip
# From here on the known name that may be meant is not looked for: that takes milliseconds, and nobody reads so many.
_HINTED: Final = 100

T = TypeVar("T")


def parse_policy(document: Mapping[str, object]) -> Policy:
    """Return the policy that a document states.

    Raises `PolicyInvalid` with every problem found, in the order of the document's sections: unknown field (with
    the nearest known one), wrong type, out of range, unknown plan or group, class named twice. If there are none, with
    all that contradicts something else.
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
        classes = self._classes(document)
        groups = {
            group: self._fields(("groups", group), table, fields.GROUP).get("weight", 1)
            for group, table in self._named(document, "groups")
        }
        plans = {
            plan: self._rules_in(("plans", plan), table, fields.PLAN, groups)
            for plan, table in self._named(document, "plans")
        }
        default = self._rules(("default",), document.get("default", {}), TenantRules(), plans, groups)
        tenants = self._tenants(document, default, plans, groups)
        limits = self._section(document, "limits", Limits(), fields.LIMITS)
        estimates = self._section(document, "estimates", Estimates(), fields.ESTIMATES)
        leases = self._section(document, "leases", Leases(), fields.LEASES)
        memory = self._section(document, "memory", Memory(), fields.MEMORY)
        policy = replace(
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
        # Where a field is wrong its default stands, and what contradicts that contradicts nothing that was meant.
        problems = self._problems or list(contradictions(policy))
        if problems:
            raise PolicyInvalid(tuple(problems))
        return policy

    def _classes(self, document: Mapping[str, object]) -> tuple[PriorityClass, ...]:
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
        return tuple(classes.values())

    def _tenants(
        self,
        document: Mapping[str, object],
        default: TenantRules,
        plans: Mapping[str, Mapping[str, Any]],
        groups: Mapping[str, int],
    ) -> dict[str, TenantRules]:
        named = self._named(document, "tenants")
        if len(named) > MAX_TENANTS:
            self._wrong(
                ("tenants",), len(named), f"at most {MAX_TENANTS} tenants can be named; use plans and the default"
            )
            return {}
        return {tenant: self._rules(("tenants", tenant), table, default, plans, groups) for tenant, table in named}

    def _rules(
        self,
        path: Path,
        table: object,
        base: TenantRules,
        plans: Mapping[str, Mapping[str, Any]],
        groups: Mapping[str, int],
    ) -> TenantRules:
        own = self._rules_in(path, table, fields.RULES, groups)
        plan = own.get("plan")
        if plan is None:
            return replace(base, **own)
        if plan not in plans:
            self._unknown((*path, "plan"), plan, "no such plan", plan, plans)
            return base
        return replace(base, **{**plans[plan], **own})

    def _rules_in(
        self, path: Path, table: object, checks: Mapping[str, Check], groups: Mapping[str, int]
    ) -> dict[str, Any]:
        """Return the good rules of a table."""
        rules = self._fields(path, table, checks)
        group = rules.get("group")
        if group is not None and group not in groups:
            del rules["group"]
            self._unknown((*path, "group"), group, "no such group", group, groups)
        return rules

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
                self._unknown((*path, str(name)), value, "no such field", name, [*checks, *also])
                continue
            verdict = check(value)
            if isinstance(verdict, Wrong):
                self._wrong((*path, name), value, verdict.message)
            else:
                good[name] = verdict
        return good

    def _unknown(self, path: Path, value: object, message: str, name: object, known: Iterable[str]) -> None:
        hint = nearest(str(name), known) if len(self._problems) < _HINTED else ""
        self._wrong(path, value, message + hint)

    def _wrong(self, path: Path, value: object, message: str) -> None:
        self._problems.append(Problem(path, value, message))
