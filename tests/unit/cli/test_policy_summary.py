from __future__ import annotations

from streams.cli.policy import _summary
from streams.core.policy import Policy, PriorityClass, TenantRules, Window

CLASSES = (PriorityClass(name="a"), PriorityClass(name="b"))


def test_the_built_in_policy() -> None:
    assert _summary(Policy()) == ("quantum 1000 tokens, at most 64 runs in flight, 0 tenants named, others welcome")


def test_what_there_is_more_of_is_told() -> None:
    policy = Policy(
        window=Window(runs=8, tokens=900),
        classes=CLASSES,
        between_classes="shares",
        groups={"g": 2},
        tenants={"t": TenantRules(group="g")},
        closed=True,
    )
    assert _summary(policy) == (
        "quantum 1000 tokens, at most 8 runs and 900 tokens in flight, 2 classes by weight, 1 group, "
        "1 tenant named, others refused"
    )
    assert "2 classes in strict order" in _summary(Policy(classes=CLASSES))
