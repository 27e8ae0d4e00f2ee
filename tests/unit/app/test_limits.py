from __future__ import annotations

from collections.abc import Mapping

import pytest

from streams.app.limits import LEAST_BYTES, Refused, TopicLimits
from streams.core.effects import Dispatch, Revoke
from streams.core.inputs import Undeliverable
from streams.errors import ConfigError, Unavailable
from streams.wire import MAX_MESSAGE_BYTES, OVERHEAD_BYTES, STEP_BYTES, encode_dispatch, encode_revoke
from tests.unit.app.fakes import NAMES

BODY = b'{"payload":"' + b"x" * 200_000 + b'"}'
RUN = Dispatch(1, "acme", "r-1", "w", "default", 1, 5, 1_000, None, BODY, 0, 1, 0, 0)


def big() -> Refused:
    return Refused(NAMES.dispatch, b"r-1", encode_dispatch(RUN, 0, 1, 1))


def limits(**stated: int) -> TopicLimits:
    """Limits as Kafka states them, of the named topics."""
    made = TopicLimits(NAMES, lambda: {getattr(NAMES, topic): most for topic, most in stated.items()})
    made.refresh()
    return made


def test_where_nobody_has_set_less_everything_fits() -> None:
    made = TopicLimits(NAMES)
    made.refresh()
    assert (made.largest_body, made.batch_bytes) == (None, None)
    assert made.of(NAMES.state) == MAX_MESSAGE_BYTES
    assert made.settle() == []


def test_the_lowest_of_dispatch_and_state_is_what_a_run_may_have() -> None:
    assert limits(dispatch=1_000_000).largest_body == 1_000_000 - 9_216 - OVERHEAD_BYTES
    assert limits(dispatch=1_100_000).largest_body is None
    assert limits(rejected=100_000).largest_body is None


def test_batches_are_as_large_as_the_lowest_limit() -> None:
    assert limits(requests=1_048_588).batch_bytes is None  # Kafka's default
    assert limits(rejected=100_000).batch_bytes == 100_000 - OVERHEAD_BYTES


@pytest.mark.parametrize(
    ("topic", "most"),
    [("state", STEP_BYTES - 1), ("journal", STEP_BYTES - 1), ("dispatch", LEAST_BYTES - 1), ("rejected", 1_000)],
)
def test_a_topic_that_takes_so_little_that_a_shard_would_stop_is_named(topic: str, most: int) -> None:
    with pytest.raises(ConfigError, match=rf"{getattr(NAMES, topic)}: takes {most} bytes.*max\.message\.bytes"):
        limits(**{topic: most})


@pytest.mark.parametrize("failure", [ConfigError("no right to ask"), Unavailable("not now")])
def test_what_cannot_be_asked_is_as_it_was(failure: Exception) -> None:
    answers: list[Mapping[str, int] | Exception] = [{NAMES.dispatch: 100_000}, failure]

    def read() -> Mapping[str, int]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = TopicLimits(NAMES, read)
    made.refresh()
    made.refresh()
    assert made.of(NAMES.dispatch) == 100_000


def test_a_run_whose_dispatch_was_refused_is_undeliverable_once() -> None:
    made = limits(dispatch=100_000)
    made.note(big())
    made.note(big())
    assert made.settle() == [Undeliverable("acme", "r-1", big().size, 100_000)]
    assert made.settle() == []


def test_what_was_refused_for_its_neighbours_is_tried_again_in_smaller_batches() -> None:
    """The topic was set to less: known now. Nothing else need be learned."""
    stated = {NAMES.dispatch: MAX_MESSAGE_BYTES}
    made = TopicLimits(NAMES, lambda: stated)
    made.refresh()
    made.note(big())
    stated[NAMES.dispatch] = 500_000
    made.refresh()
    assert made.settle() == []
    assert made.batch_bytes == 500_000 - OVERHEAD_BYTES


def test_where_limits_are_not_known_small_batches_tell_which_record_is_too_large() -> None:
    made = TopicLimits(NAMES)
    small = Refused(NAMES.dispatch, b"r-2", encode_revoke(Revoke(2, "acme", "r-2", 1, "why"), 0, 1, 1))
    for each in (big(), small):  # they shared a batch
        made.note(each)
    assert made.settle() == []
    assert made.batch_bytes == LEAST_BYTES - OVERHEAD_BYTES
    made.note(big())
    assert made.settle() == [Undeliverable("acme", "r-1", big().size, None)]
    assert made.of(NAMES.dispatch) == big().size - 1
    assert not made.fits(NAMES.dispatch, b"r-1", big().value)


def test_what_was_learned_holds_until_the_topic_is_changed() -> None:
    stated = {NAMES.dispatch: 300_000}
    made = TopicLimits(NAMES, lambda: stated)
    made.refresh()
    for _ in range(2):  # it states more than it takes
        made.note(big())
        made.settle()
    made.refresh()
    assert made.of(NAMES.dispatch) == big().size - 1
    stated[NAMES.dispatch] = 400_000
    made.refresh()
    assert made.of(NAMES.dispatch) == 400_000


def test_a_topic_that_does_not_take_a_small_record_alone_is_named() -> None:
    made = TopicLimits(NAMES)
    for _ in range(2):
        made.note(Refused(NAMES.journal, b"0", b"small"))
        if made.batch_bytes is None:
            assert made.settle() == []
    with pytest.raises(ConfigError, match=f"{NAMES.journal}: takes less than 65536 bytes"):
        made.settle()


def test_of_what_is_no_dispatch_the_limit_is_all_that_is_learned() -> None:
    made = limits(rejected=100_000, dispatch=100_000)
    made.note(Refused(NAMES.rejected, b"acme", b"x" * 200_000))
    revoke = encode_revoke(Revoke(2, "acme", "r-2", 1, "w" * 200_000), 0, 1, 1)
    made.note(Refused(NAMES.dispatch, b"r-2", revoke))
    assert made.settle() == []
