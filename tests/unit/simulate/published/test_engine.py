from collections.abc import Callable, Sequence

import pytest

from streams.errors import ConfigError
from streams.simulate.published.engine import Pool, Request, serve
from streams.simulate.published.queues import Fifo

# Round numbers: a step of decoding takes 10 ms, a token of input 1 ms.
POOL = Pool(
    memory_tokens=100, prefill_tokens=50, patience=2, prefill_ns=1_000_000, step_ns=10_000_000, run_ns=0, held_ns=0
)
MS = 1_000


def request(number: int, at_ms: int = 0, *, input_tokens: int = 10, output_tokens: int = 5) -> Request:
    return Request(at_ms * MS, "a", str(number), input_tokens, output_tokens)


def test_reading_makes_the_first_token_and_each_step_another() -> None:
    (answer,) = serve([request(0)], Fifo(), POOL)
    assert (answer.first_us, answer.ended_us) == (10 * MS, 50 * MS)


def test_a_single_token_needs_no_step() -> None:
    (answer,) = serve([request(0, output_tokens=1)], Fifo(), POOL)
    assert answer.first_us == answer.ended_us == 10 * MS


def test_requests_are_decoded_together() -> None:
    first, second = serve([request(0), request(1)], Fifo(), POOL)
    assert (first.first_us, second.first_us) == (20 * MS, 20 * MS)  # both inputs were read in one go
    assert (first.ended_us, second.ended_us) == (60 * MS, 60 * MS)


def test_who_comes_later_waits_for_the_engine_s_patience() -> None:
    first, second = serve([request(0, output_tokens=9), request(1, 15)], Fifo(), POOL)[::-1]
    assert first.request.number == "0"
    # Read until 10, two steps until 30; then the second's input until 40, during which the first makes nothing.
    assert second.first_us == 40 * MS
    assert first.ended_us == (30 + 10 + 6 * 10) * MS


def test_the_patience_over_the_queue_is_asked_before_each_step() -> None:
    answers = {each.request.number: each for each in serve([request(0, output_tokens=9), request(1, 35)], Fifo(), POOL)}
    # Two steps until 30, a third one since nobody is there, and at 40 there is.
    assert answers["1"].first_us == 50 * MS


def test_memory_is_kept_for_the_last_token_of_all() -> None:
    """Three would hold 33 now and 120 in the end. When the first two end, with 11 to come, the third holds 19 or so."""
    answers = serve([request(number, output_tokens=30) for number in range(3)], Fifo(), POOL)
    assert len({each.first_us for each in answers[:2]}) == 1
    assert answers[2].first_us == (20 + 18 * 10 + 10) * MS


def test_who_ends_early_makes_room_for_the_last_tokens_of_others() -> None:
    """In the end 45 + 45 + 11 would be too much; but the third one has gone when the others have made so much."""
    wanted = [request(0, output_tokens=35), request(1, output_tokens=35), request(2, output_tokens=1)]
    assert len({each.first_us for each in serve(wanted, Fifo(), POOL)}) == 1


def test_inputs_of_one_go_are_limited() -> None:
    answers = serve([request(number, input_tokens=30, output_tokens=2) for number in range(2)], Fifo(), POOL)
    assert [each.first_us for each in answers] == [30 * MS, (30 + 10 + 30) * MS]


def test_a_step_takes_longer_the_more_there_is_in_it() -> None:
    pool = Pool(step_ns=10_000, run_ns=2_000, held_ns=100, server_ns=1_000, prefill_ns=3_000)
    assert pool.decode_us(5, 40) == 10 + 1 + 5 * 2 + 4
    assert pool.prefill_us(7) == 1 + 21


def test_an_engine_without_work_looks_at_its_queue_now_and_then() -> None:
    (answer,) = serve([request(0, 1_234)], Fifo(), POOL)
    assert answer.first_us == (1_240 + 10) * MS


def test_what_never_fits_is_refused() -> None:
    with pytest.raises(ConfigError, match="request"):
        serve([request(0, output_tokens=90)], Fifo(), POOL)


class Miser(Fifo):
    """Keeps everything back."""

    def choose(self, fits: Callable[[Request], bool], now_us: int) -> Sequence[Request]:
        del fits, now_us
        return []


def test_a_queue_that_keeps_everything_back_is_told() -> None:
    with pytest.raises(RuntimeError, match="Miser has served 0 of 1"):
        serve([request(0)], Miser(), POOL)
