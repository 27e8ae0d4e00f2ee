"""The error tree: every message says what to do, and no data is lost on the way."""

import inspect
import pickle
from pathlib import Path

import pytest

from streams import errors
from streams.errors import BadRecord, ConfigError, FairstreamError, NotDelivered, StartFailed

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, FairstreamError)]
EXAMPLES = [
    FairstreamError(),
    ConfigError("must be above 0", field="quantum", value=0, source="policy.toml:3"),
    BadRecord("must be an integer", field="estimate", value="x" * 1_000),
    NotDelivered(failed=3, first=BadRecord("too large")),
    StartFailed("no luck", log=Path("kafka.log")),
]


@pytest.mark.parametrize("cls", CLASSES)
def test_the_docstring_is_one_sentence_that_fits_a_line(cls: type[FairstreamError]) -> None:
    first = (cls.__doc__ or "").partition("\n")[0]
    assert first.endswith(".")
    assert len(first) < 120


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_another_process(error: FairstreamError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert repr(copy.__dict__) == repr(error.__dict__)
    assert copy.args == error.args


def test_messages_name_place_field_and_value() -> None:
    assert str(EXAMPLES[1]) == "policy.toml:3: quantum: must be above 0 (got 0)"
    assert str(ConfigError("must be above 0")) == "must be above 0"
    assert str(BadRecord("is missing", field="tenant")) == "tenant: is missing"


def endless() -> list[object]:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["x" * 1_000, 10**10_000, endless(), {"k": "v" * 1_000}], ids=type)
@pytest.mark.parametrize("kind", [BadRecord, ConfigError])
def test_a_value_in_a_message_is_short(kind: type[BadRecord | ConfigError], value: object) -> None:
    assert 20 < len(str(kind("must be an integer", field="estimate", value=value))) < 150


def test_without_a_message_the_docstring_speaks() -> None:
    assert str(NotDelivered(failed=1)).startswith("Kafka did not take some records")
