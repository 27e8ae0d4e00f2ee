"""Topics: what a plan does, and what it refuses."""

from __future__ import annotations

import pytest

from streams.admin.topics import Existing, Layout, Plan, Wanted, plan, verify, wanted
from streams.errors import ConfigError
from streams.wire import TOPICS

LAYOUT = Layout(shards=4, dispatch_partitions=16, prefix="eu.")


def as_wanted(topics: tuple[Wanted, ...], **partitions: int) -> dict[str, Existing]:
    """The cluster as it would be: other counts by a topic's short name, and Kafka's own settings beside ours."""
    return {
        topic.name: Existing(
            topic.name,
            partitions.get(topic.name.removeprefix("eu."), topic.partitions),
            {**topic.configs, "flush.ms": "9223372036854775807"},
        )
        for topic in topics
    }


def by_name(topics: tuple[Wanted, ...]) -> dict[str, Wanted]:
    return {topic.name.removeprefix("eu."): topic for topic in topics}


def test_each_topic_gets_the_count_that_is_its_rule() -> None:
    counts = {name: topic.partitions for name, topic in by_name(wanted(LAYOUT, 1)).items()}
    assert counts == {
        "requests": 4,
        "completions": 4,
        "dispatch": 16,
        "rejected": 4,
        "policy": 1,
        "journal": 4,
        "state": 4,
        "board": 4,
        "status": 1,
        "checkpoints": 4,
    }


@pytest.mark.parametrize(("brokers", "replication", "insync"), [(1, 1, None), (2, 2, None), (3, 3, "2"), (5, 3, "2")])
def test_replication_follows_the_number_of_brokers(brokers: int, replication: int, insync: str | None) -> None:
    for topic in wanted(LAYOUT, brokers):
        assert topic.replication == replication
        assert topic.configs.get("min.insync.replicas") == insync


def test_replication_can_be_chosen() -> None:
    topics = wanted(Layout(replication=1), 3)
    assert {topic.replication for topic in topics} == {1}


@pytest.mark.parametrize(
    ("layout", "field"),
    [
        (Layout(shards=0), "shards"),
        (Layout(dispatch_partitions=-1), "dispatch_partitions"),
        (Layout(replication=0), "replication"),
        (Layout(replication=4), "replication"),
    ],
)
def test_an_impossible_layout_is_refused(layout: Layout, field: str) -> None:
    with pytest.raises(ConfigError) as refused:
        wanted(layout, 3)
    assert refused.value.field == field


def test_an_empty_cluster_needs_everything() -> None:
    topics = wanted(LAYOUT, 1)
    assert plan({}, topics) == Plan(create=topics)
    assert len(topics) == len(TOPICS)


def test_a_cluster_that_is_as_wanted_needs_nothing() -> None:
    topics = wanted(LAYOUT, 3)
    assert plan(as_wanted(topics), topics) == Plan()
    verify(as_wanted(topics), topics)


def test_only_settings_that_differ_are_set() -> None:
    topics = wanted(LAYOUT, 1)
    existing = as_wanted(topics)
    state = existing["eu.state"]
    existing["eu.state"] = state._replace(configs={**state.configs, "cleanup.policy": "delete"})
    assert plan(existing, topics) == Plan(configure=(("eu.state", {"cleanup.policy": "compact"}),))
    verify(existing, topics)


def test_a_wrong_count_is_a_problem_with_two_ways_out() -> None:
    topics = wanted(LAYOUT, 1)
    existing = as_wanted(topics, requests=6)
    (problem,) = plan(existing, topics).problems
    assert problem.startswith("eu.requests: 6 partitions, 4 wanted")
    assert "set the configured count to 6" in problem
    assert "fairstream migrate shards" in problem
    with pytest.raises(ConfigError) as refused:
        verify(existing, topics)
    assert problem in str(refused.value)


def test_a_missing_topic_is_told_with_the_command() -> None:
    topics = wanted(LAYOUT, 1)
    existing = as_wanted(topics)
    del existing["eu.journal"]
    with pytest.raises(ConfigError, match=r"eu\.journal: missing, or .*fairstream topics"):
        verify(existing, topics)


def test_a_deployment_of_an_older_version_is_served_without_what_it_lacks() -> None:
    topics = wanted(LAYOUT, 1)
    existing = as_wanted(topics)
    del existing["eu.checkpoints"]
    verify(existing, topics)
    assert [topic.name for topic in plan(existing, topics).create] == ["eu.checkpoints"]
    with pytest.raises(ConfigError, match="4 wanted"):
        verify(as_wanted(topics, checkpoints=2), topics)


def test_topics_of_others_do_not_matter() -> None:
    topics = wanted(LAYOUT, 1)
    existing = {**as_wanted(topics), "theirs": Existing("theirs", 99, {})}
    assert plan(existing, topics) == Plan()
