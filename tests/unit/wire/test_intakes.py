"""Names of intake topics: for every tenant one, for no two the same, and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.errors import BadRecord
from streams.wire import intake_pattern, intake_topic, tenant_of

PREFIX = "eu.runs."
TENANTS = st.text(min_size=1, max_size=19)  # of whatever characters: these fit
ROOM = 249 - len("eu.runs.requests.of.")

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # Kafka's rule


@given(TENANTS)
@example("acme")
@example("ACME-7")
@example("..")
@example("a_b")
@example("_61")
@example("a\x00\n\x1b[2J\u202e")
@example("日本")
def test_a_name_that_kafka_takes_and_that_leads_back(tenant: str) -> None:
    topic = intake_topic(PREFIX, tenant)
    assert _TOPIC.fullmatch(topic)
    assert re.match(intake_pattern(PREFIX), topic)
    assert tenant_of(PREFIX, topic) == tenant


@given(TENANTS, TENANTS)
@example("a.b", "a_b")
def test_two_tenants_have_two_topics_also_where_kafka_takes_a_dot_for_an_underscore(one: str, other: str) -> None:
    same = intake_topic(PREFIX, one).replace(".", "_") == intake_topic(PREFIX, other).replace(".", "_")
    assert same == (one == other)


@given(st.from_regex(r"[a-f0-9_A-Z-]{1,12}", fullmatch=True))
@example("_61")  # an `a` that needed no escape
@example("_C3_A9")  # capitals
@example("_c3")  # half a character
@example("_")
@example("_ed_a0_80")  # half a surrogate pair
def test_a_topic_is_somebodys_only_by_the_name_that_is_made_for_them(name: str) -> None:
    topic = f"{PREFIX}requests.of.{name}"
    tenant = tenant_of(PREFIX, topic)
    assert tenant is None or intake_topic(PREFIX, tenant) == topic


@pytest.mark.parametrize(
    "topic",
    [
        "eu.runs.requests",
        "eu.runs.requests.of.",
        "eu.runs.requests.of._61",
        "eu.runs.requests.of.a.b",
        "eu.runs.requests.of.a\n",
        "runs.requests.of.a",
        "xeu.runs.requests.of.a",
    ],
)
def test_other_topics_are_nobodys(topic: str) -> None:
    assert tenant_of(PREFIX, topic) is None


@pytest.mark.parametrize(
    "topic", ["eu.runs.requests", "eu.runs.requests.of.", "euxruns.requests.of.a", "a.eu.runs.requests.of.a"]
)
def test_the_pattern_takes_no_other_topics(topic: str) -> None:
    assert re.match(intake_pattern(PREFIX), topic) is None


def test_a_name_is_as_long_as_kafka_takes_and_no_longer() -> None:
    assert len(intake_topic(PREFIX, "x" * ROOM)) == 249
    with pytest.raises(BadRecord, match="250 characters") as caught:
        intake_topic(PREFIX, "x" * (ROOM + 1))
    assert caught.value.field == "tenant"


@pytest.mark.parametrize("tenant", ["", "\ud800"])
def test_what_is_no_name_is_refused(tenant: str) -> None:
    with pytest.raises(BadRecord) as caught:
        intake_topic(PREFIX, tenant)
    assert caught.value.field == "tenant"
