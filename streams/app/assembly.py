"""Puts a scheduler together: the parts of a shard, the fleet, and the Faust app that feeds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import faust
from mode import CrashingSupervisor

from streams.admin.kafka import admin_client, topic_configs, topic_ids
from streams.app import collector
from streams.app.checkpointer import Checkpointer
from streams.app.door import CoreType
from streams.app.faults import parse_faults
from streams.app.faust_overrides import SchedulerApp
from streams.app.health import add_health_pages
from streams.app.limits import TopicLimits, written
from streams.app.loading import StateTopic
from streams.app.policy_reader import PolicyReader
from streams.app.security import credentials
from streams.app.settings import Settings
from streams.app.shard_task import Listener, ShardParts, ShardTask
from streams.app.status import StatusPublisher
from streams.app.step import Stepper
from streams.app.takeover import Fleet
from streams.app.transaction import KafkaWriter, longest_write_s
from streams.app.unserved import Unserved
from streams.app.watch import KafkaWatch
from streams.intake import Reader

_REQUEST_S: Final = 90.0
_REQUEST_MARGIN_S: Final = 10.0
_HEARTBEATS: Final = 5  # in a session timeout: four may be lost
_HEARTBEAT_S: Final = 1.0  # at most: it is by the answer to one that a member hears of a rebalance
_ANSWER_S: Final = 5.0  # a Kafka that takes longer does not answer
_STUCK_MARGIN_S: Final = 30.0  # beyond the time after which a writer gives up by itself
# aiokafka lets a member that fetches nothing for so long leave its group, and join no more; but there may be more
# processes than shards, and all shards of a process may wait for a repair. Who is gone is missed by its session.
_FETCHLESS_S: Final = 10 * 365 * 86_400.0
_STREAM_BUFFER: Final = 16  # events; each is a whole batch, and the inbox behind it is the real buffer


class Scheduler:
    """All parts of a scheduler process, made and wired, not started."""

    def __init__(
        self, settings: Settings, data_dir: Path, core: CoreType, on_failure: Callable[[BaseException], None]
    ) -> None:
        """`on_failure` may be called from any thread, and more than once: the process must end."""
        self._settings: Final = settings
        self._core: Final = core
        self._kafka: Final = settings.kafka_settings
        self._names: Final = self._kafka.topics
        self._counts: Final = {"requests": settings.shards, "completions": settings.shards}
        self._faults: Final = parse_faults(settings.faults)
        self._known_states: Final[dict[int, str]] = {}  # for `StateTopic`; each shard is one thread's at a time
        self.status: Final = StatusPublisher(self._kafka, self._names.status)
        self.fleet: Final = Fleet(
            self._names,
            self._make_task,
            self._check,
            pause_s=settings.step_pause_ms / 1000,
            unserved=Unserved(lost_grace_s=settings.lost_shard_grace_s, refused_retry_s=settings.refused_retry_s),
            on_failure=on_failure,
        )
        self.policies: Final = PolicyReader(
            self._kafka, self._names.policy, on_change=self.fleet.wake, on_failure=on_failure
        )
        admin = self._admin = admin_client(self._kafka)
        of_shards = {name: getattr(self._names, name) for name in ("requests", "completions", "state")}
        watched = {**of_shards, "policy": self._names.policy}  # made anew it brings no rules that a shard takes for new
        self._topic_ids: Final = lambda: topic_ids(admin, of_shards, _ANSWER_S)
        self.watch: Final = KafkaWatch(
            settings.kafka,
            lambda: topic_ids(admin, watched, _ANSWER_S),
            on_change=self.fleet.topics_changed,
            on_failure=on_failure,
        )
        self.checkpointer: Final = Checkpointer(
            self._kafka, lambda: self.fleet.shards, interval_s=settings.checkpoint_interval_s
        )
        self.app: Final = make_app(settings, data_dir, self.fleet)
        self.fleet.attach(self.app)
        if settings.web_port is not None:
            stuck_s = longest_write_s(settings.transaction_timeout_s) + _STUCK_MARGIN_S
            add_health_pages(self.app, self.fleet, self.watch, stuck_s=stuck_s)

    def _check(self, shard: int) -> None:
        """Raise what keeps a shard from being loaded."""
        self._state(shard, lambda: self.fleet.closing).load()
        collector.drop()

    def _make_task(self, shard: int, takeover: int, listener: Listener) -> ShardTask:
        task = ShardTask(
            shard,
            takeover,
            lambda: self._make_parts(shard, lambda: task.closing),
            settings=self._settings,
            policies=self.policies.feed,
            status=self.status,
            listener=listener,
        )
        return task

    def _make_parts(self, shard: int, should_stop: Callable[[], bool]) -> ShardParts:
        settings = self._settings
        limits = TopicLimits(self._names, self._largest_records)
        writer = KafkaWriter(
            self._kafka,
            self._names,
            shard=shard,
            transactional_id=settings.transactional_id(shard),
            timeout_ms=int(settings.transaction_timeout_s * 1000),
            faults=self._faults,
            limits=limits,
        )
        state = self._state(shard, should_stop)
        reader = Reader(self._names, shard, settings.shards, limits)

        def load() -> Stepper:
            self.policies.wait_until_read(should_stop)
            limits.refresh()
            core, positions, rows = state.load()
            return Stepper(core, positions, writer, reader, shard=shard, state=rows, undeliverable=limits.settle())

        return ShardParts(writer, load)

    def _largest_records(self) -> dict[str, int]:
        """Return how many bytes each of our topics takes in a record."""
        configs = topic_configs(self._admin, written(self._names))
        return {topic: int(each["max.message.bytes"]) for topic, each in configs.items()}

    def _state(self, shard: int, should_stop: Callable[[], bool]) -> StateTopic:
        return StateTopic(
            self._kafka,
            self._names,
            shard,
            self._counts,
            self._core,
            topic_ids=self._topic_ids,
            known=self._known_states,
            should_stop=should_stop,
        )


class _AsTheyAre(faust.Schema):  # type: ignore[type-arg]
    """Events carry batches of raw records: they are read in the shard's thread."""

    def loads_key(self, app: Any, message: Any, **_: Any) -> Any:  # noqa: ARG002 - Faust's signature
        return message.key

    def loads_value(self, app: Any, message: Any, **_: Any) -> Any:  # noqa: ARG002 - Faust's signature
        return message.value


def make_app(settings: Settings, data_dir: Path, fleet: Fleet) -> SchedulerApp:
    """Return the Faust app: one agent per input topic, and the table whose changelog the shards write themselves."""
    kafka, shards = settings.kafka_settings, settings.shards
    names = kafka.topics
    web = {"web_port": settings.web_port, "web_bind": settings.web_host} if settings.web_port else {}
    app = SchedulerApp(
        settings.group_id,
        handover=fleet,
        broker=[f"kafka://{server.strip()}" for server in settings.kafka.split(",")],
        broker_credentials=credentials(kafka.options),
        broker_session_timeout=settings.session_timeout_s,
        broker_max_poll_interval=_FETCHLESS_S,
        broker_heartbeat_interval=min(settings.session_timeout_s / _HEARTBEATS, _HEARTBEAT_S),
        # Faust refuses a session that is longer than a request may take.
        broker_request_timeout=max(settings.session_timeout_s + _REQUEST_MARGIN_S, _REQUEST_S),
        broker_rebalance_timeout=max(settings.session_timeout_s, 10.0),
        broker_commit_interval=1.0,
        consumer_auto_offset_reset="earliest",
        datadir=str(data_dir),
        store="memory://",
        stream_buffer_maxsize=_STREAM_BUFFER,
        stream_wait_empty=False,  # it waits without a limit, and our events are acked by nobody once a shard is closed
        table_standby_replicas=0,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=shards,
        web_enabled=settings.web_port is not None,
        worker_redirect_stdouts=False,
        **web,
    )
    inputs = [app.topic(name, partitions=shards, schema=_AsTheyAre()) for name in (names.requests, names.completions)]
    app.Table("shards", partitions=shards, changelog_topic=app.topic(names.state, partitions=shards, compacting=True))
    for topic in inputs:
        app.agent(topic, supervisor_strategy=CrashingSupervisor, isolated_partitions=True, name=topic.get_topic_name())(
            _agent(fleet)
        )
    return app


def _agent(fleet: Fleet) -> Any:
    async def serve(stream: Any) -> None:
        # Events are acknowledged by their shard after its commit; awaiting the step here would leave no group commit.
        async for event in stream.noack().events():
            try:
                await fleet.deliver(event)
            except asyncio.CancelledError:
                # The partition is revoked, or all stops, while a full inbox holds us up. Faust would take the error for
                # a crash and end the process; what the batch holds is read again by whoever has the partition next.
                return

    return serve
