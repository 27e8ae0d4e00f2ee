"""The Kafka settings, and what becomes of Kafka's errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.errors import BadRecord, ConfigError, FairstreamError, NotAuthorized, OwnershipLost, Unavailable
from streams.kafka import KafkaSettings, first_answer, from_kafka, mapped_errors, read_options


def test_topics_have_the_prefix() -> None:
    assert KafkaSettings(servers="a:1").topics.dispatch == "runs.dispatch"
    assert KafkaSettings(servers="a:1", prefix="x-").topics.requests == "x-requests"


def test_own_settings_win_over_the_file() -> None:
    settings = KafkaSettings(servers="a:1,b:2", options={"sasl.username": "u", "linger.ms": "50"})
    client = settings.client(linger_ms=2, acks="all")
    assert client["bootstrap.servers"] == "a:1,b:2"
    assert KafkaSettings(servers="a:1", options={"reconnect.backoff.ms": "7"}).client()["reconnect.backoff.ms"] == "7"
    assert (client["sasl.username"], client["linger.ms"], client["acks"]) == ("u", 2, "all")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"servers": " "}, "kafka"),
        ({"servers": "a:1", "prefix": "a b"}, "prefix"),
        ({"servers": "a:1", "options": {"partitioner": "random"}}, "partitioner"),
        ({"servers": "a:1", "options": {"isolation.level": "read_uncommitted"}}, "isolation.level"),
        ({"servers": "a:1", "options": {"metadata.broker.list": "b:2"}}, "metadata.broker.list"),
        ({"servers": "a:1", "options": {"request.required.acks": "0"}}, "request.required.acks"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KafkaSettings(**fields)  # type: ignore[arg-type] # wrong on purpose
    assert caught.value.field == named


def test_a_properties_file(tmp_path: Path) -> None:
    path = tmp_path / "kafka.properties"
    path.write_text("# for production\n\nsasl.username = u\nsasl.password=a=b\n", encoding="utf-8")
    assert read_options(path) == {"sasl.username": "u", "sasl.password": "a=b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb\n", ":2: write `name = value`"),
        ("a = 1\n\na = 2\n", ":3: a: stands here twice"),
        ("= 1\n", ":1: write"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "kafka.properties"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_options(path)
    assert message in str(caught.value)


def test_passwords_are_shown_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "kafka.properties"
    path.write_text("sasl.password = secret\nsasl.password secret\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_options(path)
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(KafkaSettings(servers="a:1", options={"sasl.password": "secret"}))


def test_an_absent_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_options(tmp_path / "none")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, Unavailable),
        (KafkaError._ALL_BROKERS_DOWN, Unavailable),
        (KafkaError._TIMED_OUT, Unavailable),
        (KafkaError._MSG_TIMED_OUT, Unavailable),
        (KafkaError._RESOLVE, Unavailable),
        (KafkaError._DESTROY_BROKER, Unavailable),
        (KafkaError._FENCED, OwnershipLost),
        (KafkaError.INVALID_PRODUCER_EPOCH, OwnershipLost),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ConfigError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAuthorized),
        (KafkaError._AUTHENTICATION, NotAuthorized),
        (KafkaError._INVALID_ARG, ConfigError),
        (KafkaError._SSL, ConfigError),
        (KafkaError.POLICY_VIOLATION, ConfigError),
        (KafkaError.MSG_SIZE_TOO_LARGE, BadRecord),
        (
            KafkaError.UNKNOWN_SERVER_ERROR if hasattr(KafkaError, "UNKNOWN_SERVER_ERROR") else KafkaError.UNKNOWN,
            FairstreamError,
        ),
    ],
)
def test_an_error_of_kafka_says_what_to_do(code: int, kind: type[FairstreamError]) -> None:
    error = from_kafka(KafkaError(code), "doing x")
    assert type(error) is kind
    assert str(error).startswith("doing x: ")


def test_an_error_that_kafka_calls_passing_is_unavailable() -> None:
    assert type(from_kafka(KafkaError(KafkaError.NOT_COORDINATOR, retriable=True), "x")) is Unavailable


def test_what_the_client_raises_is_mapped() -> None:
    with pytest.raises(Unavailable, match="doing x"), mapped_errors("doing x"):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(FairstreamError, match="doing x: odd"), mapped_errors("doing x"):
        raise KafkaException("odd")


def test_other_errors_pass() -> None:
    with pytest.raises(LookupError), mapped_errors("doing x"):
        raise LookupError


class Answering:
    """A client that hears why nobody answers, in its polls only."""

    def __init__(self, kafka: KafkaSettings, *reasons: int) -> None:
        self.kafka, self.reasons = kafka, reasons

    def poll(self, timeout: float) -> None:  # noqa: ARG002 - the contract's
        self.kafka.heard.extend(KafkaError(reason, "the reason") for reason in self.reasons)


def ask(*reasons: int, answers: tuple[str | int, ...] = (KafkaError._TRANSPORT,), timeout_s: float = 0.0) -> str:
    """Ask a Kafka that gives these answers in turn; a number is an error."""
    kafka = KafkaSettings(servers="a:1")
    kafka.heard.append(KafkaError(KafkaError._AUTHENTICATION, "long ago"))
    left = list(answers)

    def answer(_: float) -> str:
        given = left.pop(0)
        if isinstance(given, str):
            return given
        raise KafkaException(KafkaError(given, "no answer"))

    with mapped_errors("asking"):
        return first_answer(kafka, Answering(kafka, *reasons), answer, timeout_s, "asking")


@pytest.mark.parametrize("reason", [KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED])
def test_a_kafka_that_does_not_let_us_in_is_no_absent_one(reason: int) -> None:
    with pytest.raises(ConfigError, match="asking: the reason; check the c"):
        ask(KafkaError._ALL_BROKERS_DOWN, reason, timeout_s=60)


def test_an_absent_kafka_is_no_refusal_whatever_was_heard_before() -> None:
    with pytest.raises(Unavailable, match="asking: no answer; is Kafka running there"):
        ask(KafkaError._ALL_BROKERS_DOWN)


def test_a_late_answer_is_waited_for() -> None:
    assert ask(answers=(KafkaError._TIMED_OUT, KafkaError._TRANSPORT, "here"), timeout_s=60) == "here"


def test_what_asking_again_does_not_mend_is_not_asked_again() -> None:
    with pytest.raises(ConfigError):
        ask(answers=(KafkaError.TOPIC_AUTHORIZATION_FAILED, "here"), timeout_s=60)
