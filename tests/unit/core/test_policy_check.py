"""Policy documents: all that is wrong is found at once, and what is right comes back the same."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core import policy_check, policy_fields
from streams.core.policy import Policy, PriorityClass, TenantRules, Window
from streams.core.policy_check import (
    MAX_CLASSES,
    MAX_TENANTS,
    parse_policy,
    policy_document,
)
from streams.core.policy_fields import MAX_TOKENS, MAX_WEIGHT
from streams.core.policy_problems import PolicyInvalid, Problem
from streams.core.policy_sense import MAX_GROUP
from tests.unit.core.any_policies import policies


def problems(document: Any) -> list[Problem]:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(document)
    return list(refused.value.problems)


def only_problem(document: Any) -> Problem:
    found = problems(document)
    assert len(found) == 1, found
    return found[0]


def test_nothing_stated_is_the_built_in_policy() -> None:
    assert parse_policy({}) == Policy()


@given(policies())
def test_a_policys_document_states_that_policy(policy: Policy) -> None:
    document = policy_document(policy)
    assert parse_policy(document) == policy
    assert parse_policy(json.loads(json.dumps(document))) == policy


@given(policies())
def test_a_document_states_everything(policy: Policy) -> None:
    assert set(policy_document(policy)) == {each.name for each in fields(Policy)} | {"plans"}


# --- who inherits what


def test_rules_come_from_the_tenant_its_plan_and_the_default_in_this_order() -> None:
    policy = parse_policy(
        {
            "default": {"weight": 2, "max_queued_runs": 10, "max_runs_in_flight": 3},
            "plans": {"pro": {"weight": 4, "max_queued_runs": 100}},
            "tenants": {"acme": {"plan": "pro", "weight": 5}, "globex": {"max_queued_runs": "unlimited"}},
        }
    )
    assert policy.rules_for("nobody") == TenantRules(weight=2, max_queued_runs=10, max_runs_in_flight=3)
    assert policy.rules_for("acme") == TenantRules(plan="pro", weight=5, max_queued_runs=100, max_runs_in_flight=3)
    assert policy.rules_for("globex") == TenantRules(weight=2, max_runs_in_flight=3)


def test_the_default_may_have_a_plan_of_its_own() -> None:
    policy = parse_policy(
        {
            "default": {"plan": "free", "max_queued_runs": 7},
            "plans": {"free": {"weight": 2, "max_queued_runs": 5}},
            "tenants": {"acme": {"paused": True}},
        }
    )
    assert policy.default == TenantRules(plan="free", weight=2, max_queued_runs=7)
    assert policy.rules_for("acme") == replace(policy.default, paused=True)


def test_classes_keep_their_order() -> None:
    policy = parse_policy({"classes": [{"name": "urgent", "default_estimate": 50}, {"name": "batch"}]})
    assert policy.classes == (PriorityClass(name="urgent", default_estimate=50), PriorityClass(name="batch"))


def test_tenants_of_a_group_name_it_or_their_plan_does() -> None:
    policy = parse_policy(
        {
            "groups": {"acme": {"weight": 3}, "umbrella": {}},
            "plans": {"of-acme": {"group": "acme", "weight": 2}},
            "tenants": {
                "a": {"group": "acme"},
                "b": {"plan": "of-acme"},
                "c": {"plan": "of-acme", "group": "umbrella"},
            },
        }
    )
    assert policy.groups == {"acme": 3, "umbrella": 1}
    assert [policy.rules_for(tenant).group for tenant in "abcd"] == ["acme", "acme", "umbrella", None]


def test_classes_share_by_weight_or_are_promised_a_part() -> None:
    shares = parse_policy({"between_classes": "shares", "classes": [{"name": "a", "weight": 3}, {"name": "b"}]})
    assert [each.weight for each in shares.classes] == [3, 1]
    strict = parse_policy({"classes": [{"name": "a"}, {"name": "b", "min_share": 10}]})
    assert [each.min_share for each in strict.classes] == [0, 10]


def test_unlimited_and_null_say_the_same() -> None:
    for nothing in ("unlimited", None):
        assert parse_policy({"window": {"runs": nothing, "tokens": 5}}).window == Window(runs=None, tokens=5)


# --- what is refused


@pytest.mark.parametrize("weight", [0, -7, math.nan, math.inf, 1.0, 2.5, True, "3", None, [], MAX_WEIGHT + 1])
def test_13_15_a_weight_that_is_no_weight(weight: Any) -> None:
    problem = only_problem({"tenants": {"a": {"weight": weight}}})
    assert problem.where == "tenants.a.weight"
    assert problem.value is weight or problem.value == weight


@pytest.mark.parametrize("quantum", [0, -1, 1.0, math.nan, MAX_TOKENS + 1, False, "many"])
def test_a_quantum_that_is_none(quantum: Any) -> None:
    assert only_problem({"quantum": quantum}).where == "quantum"


@pytest.mark.parametrize(
    ("document", "where", "said"),
    [
        ({"quantm": 5}, "quantm", 'did you mean "quantum"?'),
        ({"tenant": {}}, "tenant", 'did you mean "tenants"?'),
        ({"tenants": {"a": {"weigth": 2}}}, "tenants.a.weigth", 'did you mean "weight"?'),
        ({"plans": {"p": {"plan": "q"}}}, "plans.p.plan", "no such field"),
        ({"xyzzy": 5}, "xyzzy", "known: name, quantum"),
        ({"plans": {"pro": {}}, "tenants": {"a": {"plan": "por"}}}, "tenants.a.plan", 'did you mean "pro"?'),
        ({"tenants": {"a": {"plan": "pro"}}}, "tenants.a.plan", "no such plan"),
        ({"default": {"plan": "pro"}}, "default.plan", "no such plan"),
        ({"classes": []}, "classes", "1 to 64"),
        ({"classes": [{"name": "a"}] * (MAX_CLASSES + 1)}, "classes", "1 to 64"),
        ({"classes": {"name": "a"}}, "classes", "a list"),
        ({"classes": [{}]}, "classes[0]", "needs a name"),
        ({"classes": [{"name": "a"}, {"name": "a"}]}, "classes[1].name", "twice"),
        ({"classes": [{"name": ""}]}, "classes[0].name", "1 to 255"),
        ({"classes": ["a"]}, "classes[0]", "must be a table"),
        ({"window": {"runs": "unlimited"}}, "window", "limit runs, tokens or both"),
        ({"window": {"runs": 0}}, "window.runs", "at least 1"),
        ({"window": {"runs": "lots"}}, "window.runs", '"unlimited"'),
        ({"window": 5}, "window", "must be a table"),
        ({"tenants": ["a"]}, "tenants", "[tenants.NAME]"),
        ({"tenants": {"": {}}}, 'tenants.""', "1 to 255"),
        ({"tenants": {"a.b": 5}}, 'tenants."a.b"', "must be a table"),
        ({"closed": "yes"}, "closed", "true or false"),
        ({"closed": 1}, "closed", "true or false"),
        ({"limits": {"overload": "panic"}}, "limits.overload", '"refuse", "drop_longest"'),
        ({"estimates": {"source": ["history"]}}, "estimates.source", '"history"'),
        ({"leases": {"lease_ms": 9, "max_lease_ms": 8}}, "leases.lease_ms", "max_lease_ms (8)"),
        ({"leases": {"backoff_ms": 9, "max_backoff_ms": 8}}, "leases.backoff_ms", "max_backoff_ms (8)"),
        ({"memory": {"ended_runs": 10**30}}, "memory.ended_runs", "at most"),
        ({"memory": {"histories": 9, "tenant_histories": 10}}, "memory.tenant_histories", "histories (9)"),
        ({"on_removal": "forget"}, "on_removal", '"serve", "reject"'),
        ({"between_classes": "fair"}, "between_classes", '"strict", "shares"'),
        ({"between_classes": "fair", "classes": [{"name": "a", "weight": 2}]}, "between_classes", "must be one of"),
        ({"classes": [{"name": "a", "weight": 2}]}, "classes[0].weight", '= "shares"'),
        (
            {"between_classes": "shares", "classes": [{"name": "b"}, {"name": "a", "min_share": 5}]},
            "classes[1].min_share",
            '= "strict"',
        ),
        ({"classes": [{"name": "a", "min_share": 100}]}, "classes[0].min_share", "at most 99"),
        ({"classes": [{"name": name, "min_share": 50} for name in "ab"]}, "classes", "at most 99 in sum (got 100)"),
        ({"groups": {"acme": {"weight": 0}}}, "groups.acme.weight", "at least 1"),
        ({"groups": {"acme": {"wait": 3}}}, "groups.acme.wait", 'did you mean "weight"?'),
        ({"groups": {"acme": 3}}, "groups.acme", "must be a table"),
        ({"groups": {"": {}}}, 'groups.""', "1 to 255"),
        ({"groups": ["acme"]}, "groups", "[groups.NAME]"),
        ({"groups": {"acme": {}}, "tenants": {"a": {"group": "amce"}}}, "tenants.a.group", 'did you mean "acme"?'),
        ({"tenants": {"a": {"group": "acme"}}}, "tenants.a.group", "no such group"),
        (
            {"plans": {"p": {"group": "acme"}}, "tenants": {"a": {"plan": "p"}, "b": {"plan": "p"}}},
            "plans.p.group",
            "no such group",
        ),
        ({"groups": {"acme": {}}, "default": {"group": "acme"}}, "default.group", "only tenants that are named"),
        (
            {"quantum": 2, "groups": {"g": {"weight": 2}}, "tenants": {t: {"group": "g", "weight": 3} for t in "ab"}},
            "groups.g.weight",
            "weigh 6 together",
        ),
        ({"name": 5}, "name", "must be text"),
        ({"name": "x" * 256}, "name", "1 to 255"),
    ],
)
def test_a_problem_is_named_with_its_place(document: Any, where: str, said: str) -> None:
    problem = only_problem(document)
    assert problem.where == where
    assert said in str(problem)


def test_too_many_tenants() -> None:
    assert only_problem({"tenants": {str(n): {} for n in range(MAX_TENANTS + 1)}}).where == "tenants"


def test_too_many_tenants_in_a_group() -> None:
    crowd = {str(n): {"group": "acme"} for n in range(MAX_GROUP)}
    full = {"groups": {"acme": {"weight": 2}}, "tenants": crowd}
    assert parse_policy(full).rules_for("0").group == "acme"
    crowd["one more"] = {"group": "acme"}
    problem = only_problem(full)
    assert (problem.where, problem.value) == ("groups.acme", MAX_GROUP + 1)


def test_what_contradicts_is_told_once_each_field_is_right() -> None:
    document = {"classes": [{"name": "a", "weight": 2}], "window": {"runs": None}, "leases": {"backoff_ms": 10**6}}
    assert [problem.where for problem in problems(document)] == ["window", "classes[0].weight", "leases.backoff_ms"]
    assert only_problem({**document, "quantum": 0}).where == "quantum"


def test_all_problems_are_found_at_once() -> None:
    found = problems({"quantum": 0, "window": {"run": 5}, "tenants": {"a": {"weight": 0}, "b": {"weight": -1}}})
    assert {problem.where for problem in found} == {"quantum", "window.run", "tenants.a.weight", "tenants.b.weight"}


def test_the_message_lists_them_by_line() -> None:
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy({"quantum": 0, "closed": 1})
    assert str(refused.value).splitlines() == [
        "quantum: must be at least 1 (got 0)",
        "closed: must be true or false (got 1)",
    ]


def test_a_huge_value_is_not_repeated_in_full() -> None:
    assert len(str(only_problem({"name": "x" * 100_000}))) < 200


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_fields = st.sampled_from(
    [*policy_fields.POLICY, *policy_fields.RULES, "classes", "plans", "groups", "tenants", "default"]
)


@given(st.dictionaries(_fields, _values | st.dictionaries(_fields, _values, max_size=3), max_size=4))
def test_whatever_is_stated_is_a_policy_or_a_list_of_problems(document: dict[str, Any]) -> None:
    try:
        policy = parse_policy(document)
    except PolicyInvalid:
        return
    assert parse_policy(policy_document(policy)) == policy


@pytest.mark.parametrize(
    ("checks", "record"),
    [
        (policy_fields.WINDOW, Policy().window),
        (policy_fields.CLASS, Policy().classes[0]),
        (policy_fields.RULES, Policy().default),
        (policy_fields.LIMITS, Policy().limits),
        (policy_fields.ESTIMATES, Policy().estimates),
        (policy_fields.LEASES, Policy().leases),
        (policy_fields.MEMORY, Policy().memory),
        (policy_fields.POLICY, Policy()),
    ],
)
def test_every_field_of_a_policy_has_a_check(checks: dict[str, Any], record: Any) -> None:
    sections = set(policy_check._SECTIONS)
    assert set(checks) == {each.name for each in fields(record)} - sections
