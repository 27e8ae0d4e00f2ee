"""The error tree: every message says what to do, and no data is lost on the way."""

import inspect
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import errors
from streams.errors import BadRecord, ConfigError, FairstreamError, NotDelivered, StartFailed, visible

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


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("acme", "acme"),
        ("größe 大", "größe 大"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\0", r"\x00"),
        ("abc\u202ecba", r"abc\u202ecba"),
        ("\u2066\u200f\u2028\x9b", r"\u2066\u200f\u2028\x9b"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown(text: str, seen: str) -> None:
    assert visible(text) == seen


@given(st.text(st.characters()))
def test_a_visible_text_can_be_printed_and_stays_as_it_is(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)
    assert not text.isprintable() or visible(text) == text


@pytest.mark.parametrize("kind", [BadRecord, ConfigError])
def test_a_field_that_somebody_else_named_is_visible_in_a_message(kind: type[BadRecord | ConfigError]) -> None:
    assert str(kind("unknown", field="a\x1b[2J\nb", value="c\u202e")).isprintable()


def test_even_the_sentence_about_a_record_is_visible() -> None:
    assert str(BadRecord("Invalid enum value 'a\x1b[2J\n'")).isprintable()
