"""TLS and a password to the broker: who is not let in is told so in one line, and no secret is ever shown."""

from __future__ import annotations

import http.client
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

import psutil
import pytest
import trustme

from streams import clock
from streams.admin.kafka import admin_client, look
from streams.admin.topics import Layout, ensure
from streams.kafka import KafkaSettings
from streams.local.ports import LOOPBACK
from tests.integration.processes import ChildProcess, SchedulerProcess
from tests.integration.secured import ADMIN, SecuredKafka
from tests.integration.topics import read_topic

SERVED: Final = "served."
WAIT_S: Final = 60.0
CONFIG_ERROR: Final = 2
TRY_LATER: Final = 75

# Each that reaches Kafka by a client of its own kind: admin client, worker's, producer, consumer.
COMMANDS: Final = {
    "scheduler": ["scheduler"],
    "worker": ["worker", "--simulate"],
    "submit": ["submit", "--tenant", "a", "--workflow", "w"],
    "status": ["status"],
    "topics": ["topics"],
    "policy": ["policy", "show"],
    "apply": ["policy", "apply"],
}


class Ended(NamedTuple):
    """How a command ended, and what it said: on both streams."""

    name: str
    status: int
    said: str


def run_all(kafka: SecuredKafka, prefix: str, config: Path, names: list[str]) -> list[Ended]:
    """Run these commands, all at once, to their ends."""
    where = ["--kafka", kafka.servers, "--prefix", prefix, "--kafka-config", str(config)]
    started = {
        name: subprocess.Popen(
            [sys.executable, "-m", "streams.cli", *COMMANDS[name], *where],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in names
    }
    try:
        said = {name: process.communicate(timeout=WAIT_S)[0] for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
    return [Ended(name, process.wait(), said[name]) for name, process in started.items()]


def check_one_line(ended: list[Ended], word: str) -> None:
    """Each of them was refused: exit status 2, and one line that says why."""
    for name, status, said in ended:
        assert status == CONFIG_ERROR, (name, status, said)
        assert len(said.splitlines()) == 1, (name, said)
        assert word in said, (name, said)


def test_a_wrong_password_ends_every_command_with_one_line(secured: SecuredKafka, prefix: str) -> None:
    secret = "hush-wrong-password"  # noqa: S105 - of nobody
    config = secured.config_file(ADMIN, sasl_password=secret)
    ended = run_all(secured, prefix, config, list(COMMANDS))
    check_one_line(ended, "check the credentials in the Kafka options")
    assert not any(secret in said for _, _, said in ended)


def test_an_unknown_authority_ends_a_command_with_one_line(secured: SecuredKafka, prefix: str, tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    config = secured.config_file(ADMIN, ssl_ca_location=str(tmp_path / "other.pem"))
    check_one_line(run_all(secured, prefix, config, ["scheduler", "submit"]), "check the certificates")


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("sasl_pasword", "hush-misspelt", 'No such configuration property: "sasl.pasword"'),
        ("enable_idempotence", "hush-misplaced", "enable.idempotence: fairstream sets this itself"),
        ("ssl_key_password", "hush-unneeded", ""),
    ],
)
def test_a_wrong_file_is_named_without_its_secrets(
    secured: SecuredKafka, prefix: str, name: str, value: str, word: str
) -> None:
    """In a file that is wrong a secret may stand anywhere."""
    extra = {"ssl_key_location": str(secured.authority)} if name == "ssl_key_password" else {}
    config = secured.config_file(ADMIN, **{name: value}, **extra)
    ended = run_all(secured, prefix, config, ["submit"])
    check_one_line(ended, word)
    assert value not in ended[0].said
    assert secured.password(ADMIN) not in ended[0].said


def test_a_client_without_tls_waits_as_for_an_absent_kafka(secured: SecuredKafka, prefix: str, tmp_path: Path) -> None:
    """It is just cut off, so nobody can tell: what serves waits, and says so; a command says what to look at."""
    plain = tmp_path / "plain.properties"
    plain.write_text("security.protocol = plaintext\n")
    place = ["--kafka", secured.servers, "--prefix", prefix, "--kafka-config", str(plain)]
    waiting = [
        ChildProcess(tmp_path, "scheduler", "streams.cli", "scheduler", *place),
        ChildProcess(tmp_path, "worker", "streams.cli", "worker", "--simulate", *place),
    ]
    with waiting[0] as scheduler, waiting[1] as worker:
        (asked,) = run_all(secured, prefix, plain, ["submit"])
        assert (asked.status, "security.protocol" in asked.said) == (TRY_LATER, True)
        for each in (scheduler, worker):
            clock.wait_until(partial(says, each, "no answer yet"), WAIT_S, what=f"the {each.name}'s remark")
            assert each.log.read_text().count("no answer yet") == 1
            assert each.stop() == 0


def says(process: ChildProcess, text: str) -> bool:
    return text in process.log.read_text()


@pytest.fixture(scope="module")
def scheduler(secured: SecuredKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    """One whose librdkafka tells all that it does, and whose settings are else the defaults."""
    settings = KafkaSettings(servers=secured.servers, prefix=SERVED, options=secured.options(ADMIN))
    ensure(admin_client(settings), Layout(dispatch_partitions=1, prefix=SERVED))
    config = secured.config_file(ADMIN, debug="all")
    folder = tmp_path_factory.mktemp("served")
    process = SchedulerProcess(folder, "scheduler", kafka=secured.servers, prefix=SERVED, shards=1, kafka_config=config)
    with process:
        process.wait_until_ready({0})
        yield process


def ask(scheduler: SchedulerProcess, method: str, path: str) -> int:
    with closing(http.client.HTTPConnection(LOOPBACK, scheduler.port, timeout=WAIT_S)) as connection:
        connection.request(method, path)
        return connection.getresponse().status


def test_the_pages_are_ours_alone_and_for_reading(scheduler: SchedulerProcess) -> None:
    for path in ("/healthz", "/readyz"):
        assert {ask(scheduler, method, path) for method in ("GET", "HEAD")} == {HTTPStatus.OK}
        writing = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
        assert {ask(scheduler, method, path) for method in writing} == {HTTPStatus.METHOD_NOT_ALLOWED}
    faust = ("/", "/router/", "/table/", "/graph/", "/stats/", "/performance/")
    others = ("/healthz/", "/readyz/0", "//healthz", "/%2e%2e/%2e%2e/etc/passwd", "/static/")
    assert {ask(scheduler, "GET", path) for path in (*faust, *others)} == {HTTPStatus.NOT_FOUND}


def test_it_listens_on_this_machine_only_unless_told_otherwise(scheduler: SchedulerProcess) -> None:
    connections = psutil.Process(scheduler.pid).net_connections("inet")
    assert {place.laddr for place in connections if place.status == psutil.CONN_LISTEN} == {(LOOPBACK, scheduler.port)}


def test_no_secret_is_shown_by_anybody_at_any_level(
    secured: SecuredKafka, scheduler: SchedulerProcess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Logs, pages, arguments, topics: with librdkafka telling all that it does, and a run through all of it."""
    settings = KafkaSettings(servers=secured.servers, prefix=SERVED, options=secured.options(ADMIN, debug="all"))
    config = secured.config_file(ADMIN, debug="all")
    place = ["--kafka", secured.servers, "--prefix", SERVED, "--kafka-config", str(config)]
    worker = ChildProcess(tmp_path, "worker", "streams.cli", "worker", "--simulate", "--verbose", *place)
    shown: list[str] = [repr(settings), str(settings)]
    with worker:
        (submitted,) = run_all(secured, SERVED, config, ["submit"])
        assert submitted.status == 0, submitted.said
        names = settings.topics
        clock.wait_until(
            lambda: (
                b"succeeded" in b"".join(record.value or b"" for record in read_topic(secured.plain, names.completions))
            ),
            WAIT_S,
            what="the run's end",
        )
        shown += [submitted.said, scheduler.ask("/healthz")[1], scheduler.ask("/readyz")[1]]
        for process in (scheduler, worker):
            proc = Path("/proc") / str(process.pid)
            shown += [(proc / "cmdline").read_bytes().decode(), (proc / "environ").read_bytes().decode()]
        assert worker.stop() == 0
        shown += [process.log.read_text() for process in (scheduler, worker)]
    for topic in names:
        shown += [repr(record) for record in read_topic(secured.plain, topic)]
    # What librdkafka tells goes to a logger, which the processes above keep short: here it says all.
    with caplog.at_level(logging.DEBUG, logger="streams.kafka"):
        admin = admin_client(settings)
        look(admin)
        admin.poll(1)
    assert any("SASL" in record.getMessage() for record in caplog.records), "it tells how it logs in"
    shown.append(caplog.text)
    secret = secured.password(ADMIN)
    assert not [text[:200] for text in shown if secret in text]
