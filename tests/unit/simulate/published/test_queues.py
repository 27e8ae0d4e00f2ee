from streams.core.policy import Window
from streams.simulate.published.deficit import DeficitRoundRobin
from streams.simulate.published.engine import Queue, Request
from streams.simulate.published.queues import Fifo, VirtualTokenCounter


def request(number: int, tenant: str, *, input_tokens: int = 10, output_tokens: int = 5) -> Request:
    return Request(0, tenant, str(number), input_tokens, output_tokens)


def fill(queue: Queue, *wanted: Request) -> None:
    for each in wanted:
        queue.arrive(each, 0)


def choose(queue: Queue, places: int) -> str:
    left = [places]

    def fits(_request: Request) -> bool:
        left[0] -= 1
        return left[0] >= 0

    return "".join(each.tenant for each in queue.choose(fits, 0))


def make(queue: Queue, *running: Request) -> None:
    """Make all tokens of these but the first ones, and end them."""
    for each in running:
        for _ in range(each.output_tokens - 1):
            queue.decode([each], 0)
        queue.finish(each, 0)


def test_first_come_first_served() -> None:
    queue = Fifo()
    fill(queue, *(request(number, tenant) for number, tenant in enumerate("aaab")))
    assert choose(queue, 3) == "aaa"
    assert choose(queue, 3) == "b"


def test_the_smallest_counter_goes_next() -> None:
    queue = VirtualTokenCounter()
    fill(queue, *(request(number, tenant) for number, tenant in enumerate("aaabbb")))
    assert choose(queue, 4) == "abab"


def test_a_token_of_output_counts_twice_one_of_input() -> None:
    queue = VirtualTokenCounter()
    first = request(0, "a", input_tokens=10, output_tokens=20)
    fill(queue, first, *(request(1 + number, "a", input_tokens=1) for number in range(3)))
    fill(queue, *(request(9 + number, "b", input_tokens=17) for number in range(9)))
    assert choose(queue, 1) == "a"
    make(queue, first)  # a stands at 10 + 2 * 20 = 50
    assert choose(queue, 5) == "bbbaa"  # b at 19, 38, 57 with its first tokens; then a at 53


def test_who_comes_back_has_no_credit_for_the_time_it_was_away() -> None:
    queue = VirtualTokenCounter()
    fill(queue, *(request(number, "a") for number in range(20)))
    assert choose(queue, 10) == "a" * 10
    fill(queue, *(request(50 + number, "b") for number in range(20)))
    assert choose(queue, 6) in {"ababab", "bababa"}


def test_what_was_predicted_is_counted_at_once_and_settled() -> None:
    queue = VirtualTokenCounter(predicts=True)
    first, second = request(0, "a", input_tokens=1, output_tokens=100), request(1, "a", input_tokens=1)
    fill(queue, first, second, request(2, "a"))
    fill(queue, *(request(3 + number, "b", input_tokens=148) for number in range(4)))
    assert choose(queue, 1) == "a"
    make(queue, first)  # 201; its requests are taken to make 100 tokens from now on
    assert choose(queue, 2) == "bb"  # 150, 300
    assert choose(queue, 2) == "ab"  # a is counted 201 at once: 402
    make(queue, second)  # it made 5 tokens: 95 of them go back, 212
    assert choose(queue, 1) == "a"


def test_a_prediction_follows_the_last_requests() -> None:
    queue = VirtualTokenCounter(predicts=True)
    for number, length in enumerate((10, 20)):
        given = request(number, "a", output_tokens=length)
        fill(queue, given)
        choose(queue, 1)
        make(queue, given)
    assert queue._lengths["a"] == 12_000  # thousandths: four fifths of 10, one of 20


def test_ours_hands_out_as_much_as_its_window() -> None:
    queue = DeficitRoundRobin(Window(runs=2))
    fill(queue, *(request(number, tenant) for number, tenant in enumerate("aaaabb")))
    assert choose(queue, 9) == "aa"
    queue.finish(request(0, "a"), 1)
    queue.finish(request(1, "a"), 2)
    assert "b" in choose(queue, 9)


def test_ours_leaves_in_the_engine_what_does_not_fit_yet() -> None:
    queue = DeficitRoundRobin(Window(runs=4))
    fill(queue, *(request(number, "a") for number in range(6)))
    assert choose(queue, 1) == "a"
    assert choose(queue, 9) == "aaa"


def test_ours_believes_stated_costs_if_it_is_told_to() -> None:
    for told, estimate in ((True, 20), (False, 1_000)):
        queue = DeficitRoundRobin(Window(runs=1), told=told)
        fill(queue, request(0, "a"))
        (flow,) = queue._shard.snapshot().flows
        assert flow.charged == estimate
