"""Topics: what is there, what is wanted, what to do about it.

`plan` and `verify` are pure; `describe`, `apply` and `ensure` talk to Kafka. Applying is idempotent, and two
processes may do it at once. Nothing here deletes a topic or changes a number of partitions: that would move
tenants to other shards while their state stays behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient

from streams.admin.kafka import TIMEOUT_S, create_topics, look, new_topic, set_topic_configs, topic_configs
from streams.clock import wait_until
from streams.errors import ConfigError, Unavailable
from streams.kafka import DEFAULT_PREFIX
from streams.wire.topics import TOPICS, Count

_REPLICATION: Final = 3  # survives one broker's loss while another is down for maintenance
_MIN_INSYNC: Final = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the topics of one deployment are laid out."""

    shards: int = 1  # partitions of requests, completions, rejected, journal, state, board and checkpoints
    dispatch_partitions: int = 8  # how many workers of a classic consumer group can share the work
    prefix: str = DEFAULT_PREFIX
    replication: int | None = None  # None: 3, or as many as there are brokers


class Wanted(NamedTuple):
    """A topic as it should be."""

    name: str
    partitions: int
    replication: int
    configs: dict[str, str]
    spare: bool = False  # see `Topic`


class Existing(NamedTuple):
    """A topic as it is."""

    name: str
    partitions: int
    configs: dict[str, str]


class Plan(NamedTuple):
    """What makes the topics as they should be. `problems` cannot be put right here: each says the way out."""

    create: tuple[Wanted, ...] = ()
    configure: tuple[tuple[str, dict[str, str]], ...] = ()  # (topic, the settings that differ)
    problems: tuple[str, ...] = ()


def wanted(layout: Layout, brokers: int) -> tuple[Wanted, ...]:
    """Return the topics of a layout on a cluster of `brokers` (> 0). Raises `ConfigError` for an impossible layout."""
    for name in ("shards", "dispatch_partitions", "replication"):
        number = getattr(layout, name)
        if number is not None and number < 1:
            raise ConfigError("must be at least 1", field=name, value=number)
    replication, insync = replicas(layout.replication, brokers)
    counts = {Count.SHARDS: layout.shards, Count.DISPATCH: layout.dispatch_partitions, Count.ONE: 1}
    return tuple(
        Wanted(
            layout.prefix + topic.name,
            counts[topic.count],
            replication,
            {"cleanup.policy": "compact" if topic.compacted else "delete", **topic.configs, **insync},
            topic.spare,
        )
        for topic in TOPICS
    )


def replicas(asked: int | None, brokers: int) -> tuple[int, dict[str, str]]:
    """Return how many replicas a topic gets, and the setting that goes with that. Raises `ConfigError` for too many."""
    number = asked or min(_REPLICATION, brokers)
    if number > brokers:
        raise ConfigError(f"the cluster has {brokers} broker(s)", field="replication", value=number)
    # With fewer than three replicas a minimum of two would stop all writes at the first restart of a broker.
    return number, {"min.insync.replicas": _MIN_INSYNC} if number >= _REPLICATION else {}


def plan(existing: Mapping[str, Existing], wanted_topics: Iterable[Wanted]) -> Plan:
    """Return what is missing, what differs, and what is wrong.

    Each wanted topic is in exactly one of: `create`, as wanted, or there with its differing settings in
    `configure` and its wrong number of partitions in `problems`. Settings that are not ours are left alone.
    """
    create, configure, problems = [], [], []
    for topic in wanted_topics:
        found = existing.get(topic.name)
        if found is None:
            create.append(topic)
            continue
        if found.partitions != topic.partitions:
            problems.append(_wrong_count(topic, found.partitions))
        differing = {name: value for name, value in topic.configs.items() if found.configs.get(name) != value}
        if differing:
            configure.append((topic.name, differing))
    return Plan(tuple(create), tuple(configure), tuple(problems))


def verify(existing: Mapping[str, Existing], wanted_topics: Iterable[Wanted]) -> None:
    """Raise `ConfigError` if a topic is missing or has another number of partitions. Settings may differ.

    A spare one may be missing: whoever would use it says so.
    """
    todo = plan(existing, wanted_topics)
    missing = [f"{topic.name}: missing, or not to be seen by this user" for topic in todo.create if not topic.spare]
    if missing or todo.problems:
        way_out = ["create what is missing with `fairstream topics`"] if missing else []
        raise ConfigError("; ".join([*missing, *todo.problems, *way_out]), field="topics")


def describe(admin: AdminClient, names: Iterable[str], *, settings: bool = True) -> dict[str, Existing]:
    """Return those of the named topics that exist. Raises `Unavailable` if Kafka does not answer.

    Without `settings` they seem to have none; then no right to see any is needed.
    """
    partitions = look(admin).partitions
    present = [name for name in names if name in partitions]
    configs = topic_configs(admin, present) if settings else {name: {} for name in present}
    return {name: Existing(name, partitions[name], configs[name]) for name in present}


def apply(admin: AdminClient, todo: Plan) -> None:
    """Create and configure. A topic that another process has created meanwhile must be as wanted, too.

    Raises `ConfigError` if the plan has problems, before anything is changed, or if that other process wanted another
    number of partitions; `Unavailable` if Kafka does not answer. A new `plan` then goes on where this one stopped.
    """
    if todo.problems:
        raise ConfigError("; ".join(todo.problems), field="topics")
    there = create_topics(
        admin, (new_topic(topic.name, topic.partitions, topic.replication, topic.configs) for topic in todo.create)
    )
    theirs = [topic for topic in todo.create if topic.name in there]
    for name, configs in todo.configure:
        set_topic_configs(admin, name, configs)
    _await(admin, {topic.name for topic in todo.create})
    if theirs:
        apply(admin, plan(describe(admin, [topic.name for topic in theirs]), theirs))


def ensure(admin: AdminClient, layout: Layout) -> Plan:
    """Make the topics as the layout wants them, and return what was done. Raises as `wanted` and `apply` do."""
    topics = wanted(layout, look(admin).brokers)
    todo = plan(describe(admin, [topic.name for topic in topics]), topics)
    apply(admin, todo)
    return todo


def _await(admin: AdminClient, names: set[str]) -> None:
    """Wait until created topics are known where they are asked for: brokers learn of them a moment later."""
    try:
        wait_until(lambda: names <= look(admin).partitions.keys(), TIMEOUT_S)
    except TimeoutError as error:
        raise Unavailable("the topics were created, but the brokers do not know them yet; try again") from error


def _wrong_count(topic: Wanted, found: int) -> str:
    return (
        f"{topic.name}: {found} partitions, {topic.partitions} wanted; either set the configured count to {found}, "
        "or move to new topics with `fairstream migrate shards` (another count sends tenants to other shards)"
    )
