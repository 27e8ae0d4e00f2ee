"""What a record says of its runs: hand-made ones for each rule, recorded ones for the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from streams.audit.recording import MemoryRecording, Rec
from streams.audit.what_if import make_traffic, read_record
from streams.audit.what_if.reading import Record
from streams.audit.what_if.runs import RecordedRun
from streams.core.inputs import FAILED, RETURNED, STARTED, SUCCEEDED
from streams.core.policy import Policy, Window
from streams.errors import ConfigError
from streams.simulate.pool import Served
from streams.wire import JournalEntry, PolicyChange, decode_journal, encode_policy
from tests.recorded import record
from tests.unit.audit.what_if.tape import BEGIN_MS, POLICY, Tape, settled


def only(tape: Tape) -> RecordedRun:
    (run,) = read_record(tape.recording).runs
    return run


def served(tape: Tape) -> Served:
    (run,) = make_traffic(read_record(tape.recording)).served
    return run


def test_a_run_costs_what_was_settled_and_lasts_from_its_start_to_its_end() -> None:
    tape = Tape()
    tape.request(0, "r", estimate=40, max_tokens=90, class_="default", payload=[1, 2, 3])
    tape.step(10, hands_out=["r"])
    tape.report(15, "r", STARTED)
    tape.report(115, "r", SUCCEEDED, tokens=77)
    tape.step(130, settles=[settled("r", tokens=77)])
    run = served(tape)
    assert (run.charge, run.decided_ms, run.started_ms, run.ended_ms, run.wait_ms) == (50, 10, 15, 115, 15)
    arrival = run.arrival
    assert (arrival.at_ms, arrival.tokens, arrival.duration_ms) == (0, 77, 100)
    assert (arrival.estimate, arrival.max_tokens, arrival.class_) == (40, 90, "default")
    assert arrival.body_bytes > len("[1,2,3]")


def test_without_a_started_report_it_lasts_from_its_dispatch() -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.step(10, hands_out=["r"])
    tape.report(115, "r", SUCCEEDED, tokens=7)
    tape.step(130, settles=[settled("r", tokens=7)])
    assert (served(tape).started_ms, served(tape).arrival.duration_ms) == (10, 105)


def test_without_its_dispatch_record_it_was_decided_when_the_step_was() -> None:
    tape = Tape()
    tape.served(0, "r")
    tape.recording.topics["dispatch", 0].clear()
    assert served(tape).decided_ms == 0


def test_all_attempts_of_a_run_are_one_and_it_waited_until_the_first_began() -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.step(10, hands_out=["r"])
    tape.report(20, "r", STARTED)
    tape.report(50, "r", FAILED, tokens=5, retryable=True)
    tape.step(60, settles=[settled("r", tokens=5, outcome=FAILED)])
    tape.step(100, hands_out=[("r", 2)])
    tape.report(105, "r", STARTED, attempt=2)
    tape.report(145, "r", SUCCEEDED, attempt=2, tokens=60)
    tape.step(150, settles=[settled("r", tokens=60, attempt=2)])
    run = served(tape)
    assert (run.arrival.tokens, run.arrival.duration_ms) == (65, 30 + 40)
    assert (run.started_ms, run.ended_ms) == (20, 145)


def test_an_attempt_that_was_lost_unheard_held_its_place_and_did_not_begin_the_run() -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.step(10, hands_out=["r"])
    tape.step(1_010, settles=[settled("r", tokens=0, outcome="lost")])
    tape.step(1_100, hands_out=[("r", 2)])
    tape.report(1_110, "r", STARTED, attempt=2)
    tape.report(1_150, "r", SUCCEEDED, attempt=2, tokens=60)
    tape.step(1_150, settles=[settled("r", tokens=60, attempt=2)])
    run = served(tape)
    assert (run.started_ms, run.arrival.duration_ms, run.arrival.tokens) == (1_110, 1_000 + 40, 60)


def test_a_late_report_of_a_lost_attempt_amends_its_cost_and_ends_the_run() -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.step(10, hands_out=["r"])
    tape.report(20, "r", STARTED)
    tape.step(1_010, settles=[settled("r", tokens=10, outcome="lost")])
    tape.report(1_500, "r", SUCCEEDED, tokens=70)
    tape.step(1_500, settles=[settled("r", tokens=70, charged=10)])
    assert only(tape).state == SUCCEEDED
    assert (served(tape).arrival.tokens, served(tape).arrival.duration_ms) == (70, 990)


def test_a_lost_attempt_that_failed_after_all_does_not_end_its_run() -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.step(10, hands_out=["r"])
    tape.step(1_010, settles=[settled("r", tokens=0, outcome="lost")])
    tape.report(1_100, "r", FAILED, tokens=8)
    tape.step(1_100, settles=[settled("r", tokens=8, charged=0, outcome=FAILED)])
    assert (only(tape).state, served(tape).arrival.tokens) == ("waiting", 8)


@pytest.mark.parametrize(
    ("status", "retryable", "state"),
    [(FAILED, False, "failed"), (FAILED, True, "waiting"), (RETURNED, False, "waiting")],
)
def test_what_has_ended_and_what_comes_back(status: str, retryable: bool, state: str) -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.step(0, hands_out=["r"])
    tape.report(40, "r", status, tokens=5, retryable=retryable)
    tape.step(50, settles=[settled("r", tokens=5, outcome=status)])
    assert only(tape).state == state
    assert served(tape).arrival.tokens == 5, "it used the pool just so"


def test_a_run_of_which_nothing_has_ended_is_left_out_by_what_became_of_it() -> None:
    tape = Tape()
    tape.served(0, "done")
    refused = tape.request(1, "refused")
    expired = tape.request(1, "expired")
    tape.request(1, "cancelled")
    tape.request(1, "flying")
    tape.request(1, "queued")
    tape.step(100, rejects=[("refused", "queue_full", refused)], hands_out=["flying"])
    tape.cancel(150, "cancelled")
    tape.step(200, rejects=[("expired", "expired", expired)])
    traffic = make_traffic(read_record(tape.recording))
    assert [arrival.run_id for arrival in traffic.arrivals] == ["done"]
    reasons = ("queue_full", "expired", "cancelled", "in_flight", "waiting")
    assert traffic.left_out == {"a": dict.fromkeys(reasons, 1)}


def test_a_cancel_after_the_end_changes_nothing_and_one_in_flight_does() -> None:
    tape = Tape()
    tape.served(0, "done")
    tape.cancel(150, "done")
    tape.request(160, "flying")
    tape.step(160, hands_out=["flying"])
    tape.cancel(170, "flying")
    tape.step(175)
    tape.report(180, "flying", FAILED, tokens=3)
    tape.step(180, settles=[settled("flying", tokens=3, outcome=FAILED)])
    assert [run.state for run in read_record(tape.recording).runs] == [SUCCEEDED, "cancelled"]
    assert make_traffic(read_record(tape.recording)).states == {SUCCEEDED: 1, "cancelled": 1}


def test_a_cancel_of_the_same_step_finds_its_run() -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.cancel(0, "r")
    tape.step(5)
    assert only(tape).state == "cancelled"


def test_a_duplicate_does_not_take_its_name_from_the_run_that_has_it() -> None:
    tape = Tape()
    tape.request(0, "r")
    tape.step(0, hands_out=["r"])
    again = tape.request(10, "r")
    tape.step(10, rejects=[("r", "duplicate", again)])
    tape.report(100, "r", SUCCEEDED, tokens=9)
    tape.step(100, settles=[settled("r", tokens=9)])
    assert [run.state for run in read_record(tape.recording).runs] == [SUCCEEDED, "duplicate"]


def test_a_name_that_was_forgotten_and_comes_again_is_another_run() -> None:
    tape = Tape()
    tape.served(0, "r", tokens=10)
    tape.served(500, "r", tokens=20)
    traffic = make_traffic(read_record(tape.recording))
    assert [(arrival.at_ms, arrival.tokens) for arrival in traffic.arrivals] == [(0, 10), (500, 20)]


def test_arrivals_keep_the_order_of_the_topic_and_no_clock_can_put_them_after_their_step() -> None:
    tape = Tape()
    tape.served(0, "first")
    for at_ms, run_id in ((100, "late"), (50, "early"), (9_000_000, "future"), (120, "last")):
        tape.request(at_ms, run_id)
    tape.step(130)
    assert [run.at_ms - BEGIN_MS for run in read_record(tape.recording).runs] == [0, 100, 100, 130, 130]


def test_runs_whose_request_is_gone_are_counted() -> None:
    tape = Tape()
    tape.served(0, "gone")
    tape.served(500, "there")
    tape.recording.topics["requests", 0] = tape.recording.topics["requests", 0][1:]
    found = read_record(tape.recording)
    assert (found.strangers, found.steps_cut) == (Counter(a=1), 1)
    assert make_traffic(found).left_out == {"a": {"no_request": 1}}


def test_policies_follow_each_other_from_their_steps() -> None:
    other = Policy(name="other", quantum=7, window=Window(runs=9))
    tape = Tape()
    tape.served(0, "r")
    tape.step(500, policy=other)
    traffic = make_traffic(read_record(tape.recording))
    assert [(stated.at_ms, stated.policy) for stated in traffic.policies] == [(0, POLICY), (500, other)]


def test_a_policy_that_is_nowhere_any_more_is_told() -> None:
    tape = Tape()
    tape.served(0, "r")
    tape.recording.topics["journal", 0].pop(0)
    with pytest.raises(ConfigError, match="no longer in the policy topic"):
        read_record(tape.recording)


def test_a_policy_that_the_topic_still_has_is_taken_from_there() -> None:
    tape = Tape()
    tape.served(0, "r")
    tape.recording.topics["journal", 0].pop(0)
    nonsense, stated = b"{}", encode_policy(PolicyChange(POLICY, "somebody", 0))
    tape.recording.topics["policy", 0] = [Rec(0, 0, b"x", stated), Rec(1, 0, b"x", nonsense)]
    assert [policy for _, policy in read_record(tape.recording).policies] == [POLICY]


@pytest.fixture(scope="module", params=[1, 2])
def recording(request: pytest.FixtureRequest) -> MemoryRecording:
    return record(request.param, ticks=90)


@pytest.fixture(scope="module")
def found(recording: MemoryRecording) -> Record:
    return read_record(recording)


def entries(recording: MemoryRecording) -> Iterator[JournalEntry]:
    for shard in range(recording.shards):
        for each in recording.read("journal", shard):
            yield decode_journal(each.value)


def test_every_token_that_was_settled_is_some_runs(recording: MemoryRecording, found: Record) -> None:
    settled_: Counter[str] = Counter()
    first: set[tuple[str, str, int]] = set()
    for entry in entries(recording):
        for each in entry.settlements:
            attempt = each.tenant, each.run_id, each.attempt
            settled_[each.tenant] += each.actual - (each.estimate if attempt in first else 0)
            first.add(attempt)
    read: Counter[str] = Counter()
    for run in found.runs:
        read[run.submit.tenant] += sum(attempt.tokens for attempt in run.attempts.values())
    assert +settled_ == +read


def test_every_decision_is_some_runs_attempt(recording: MemoryRecording, found: Record) -> None:
    decided = sorted((entry.shard, each.seq) for entry in entries(recording) for each in entry.decisions)
    assert decided == sorted((run.shard, attempt.seq) for run in found.runs for attempt in run.attempts.values())
    assert (found.strangers, found.steps_cut) == (Counter(), 0)


def test_runs_end_as_the_shards_have_counted(recording: MemoryRecording, found: Record) -> None:
    counted: Counter[str] = Counter()
    for entry in entries(recording):
        counted.update(entry.counts)
    states = Counter(run.state for run in found.runs)
    assert states[SUCCEEDED] == counted["succeeded"] > 0
    assert states["expired"] == counted["expired"] > 0
    assert states["duplicate"] == counted["refused.duplicate"] > 0
    assert states["tenant_paused"] == counted["refused.tenant_paused"]
    assert states["cancelled"] == counted["cancelled"] > 0
    assert found.unreadable > 0


def test_every_run_is_played_or_counted(found: Record) -> None:
    middle = sorted(run.at_ms for run in found.runs)[len(found.runs) // 2]
    for since, until in ((None, None), (middle, None), (None, middle)):
        traffic = make_traffic(found, since, until)
        left = sum(sum(reasons.values()) for reasons in traffic.left_out.values())
        assert len(traffic.arrivals) + left == len(found.runs)
        assert sum(traffic.states.values()) == len(traffic.arrivals) == len(traffic.served)
        assert all(run.arrival.at_ms <= run.started_ms and run.decided_ms <= run.started_ms for run in traffic.served)


def test_what_no_client_can_read_is_no_run_whatever_stands_there() -> None:
    """Its key and value may look like a request's; the journal says that no shard has taken it for one."""
    recording = record(1, ticks=60)
    entries = [(shard, decode_journal(each.value)) for shard in range(2) for each in recording.read("journal", shard)]
    unread = {(shard, each.last) for shard, entry in entries for each in entry.unread if each.topic == "requests"}
    there = {(shard, each.offset) for shard in range(2) for each in recording.read("requests", shard) if each.value}
    assert unread & there
    found = read_record(recording)
    assert not unread & {(run.shard, run.submit.position) for run in found.runs}
    assert found.unreadable >= len(unread)
