"""Every check of the arithmetic finds the damage that it is there for, and nothing is wrong with what is sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from streams.core.inputs import SUCCEEDED
from streams.core.records import FlightRecord, FlowRecord, RunRecord
from streams.rows import PositionsRecord
from streams.wire import Assignment, InputRange, JournalEntry
from tests.integration.arithmetic import (
    ALWAYS,
    WHEN_DRAINED,
    Evidence,
    accounts,
    dispatches,
    leases,
    problems,
    problems_when_drained,
    requests,
    steps,
)
from tests.integration.topics import Seen
from tests.unit.arithmetic.told import ACME, LEASE_MS, told

Check = Callable[[Evidence], Iterator[str]]
CASES: list[Any] = []


def damage(check: Check, sentence: str) -> Callable[[Callable[[Evidence], None]], None]:
    """Note what does damage, which check must find it, and (part of) the sentence that must say so."""

    def note(do: Callable[[Evidence], None]) -> None:
        CASES.append(pytest.param(check, sentence, do, id=do.__name__))

    return note


def test_the_story_is_sound() -> None:
    evidence = told()
    assert [*problems(evidence), *problems_when_drained(evidence)] == []


def test_every_check_has_its_damage() -> None:
    assert {case.values[0] for case in CASES} == {*ALWAYS, *WHEN_DRAINED}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "do" in metafunc.fixturenames:
        metafunc.parametrize(("check", "sentence", "do"), CASES)


def test_damage_is_found(check: Check, sentence: str, do: Callable[[Evidence], None]) -> None:
    evidence = told()
    do(evidence)
    found = list(check(evidence))
    assert any(sentence in each for each in found), found


def entry_of(evidence: Evidence, number: int, **changes: Any) -> None:
    """Change a step of the first shard's journal."""
    entries = evidence.journal[0]
    entries[number - 1] = entries[number - 1]._replace(**changes)


def settlement(evidence: Evidence, run_id: str, attempt: int) -> tuple[JournalEntry, int]:
    """The step that settled an attempt first, and where in it."""
    for entry in evidence.journal[0]:
        for index, each in enumerate(entry.settlements):
            if (each.run_id, each.attempt) == (run_id, attempt):
                return entry, index
    raise KeyError(run_id)


def move_settlement(evidence: Evidence, run_id: str, attempt: int, to: int) -> None:
    """Let it have been made in another step."""
    entry, index = settlement(evidence, run_id, attempt)
    moved = entry.settlements[index]
    rest = tuple(each for each in entry.settlements if each is not moved)
    entry_of(evidence, entry.step, settlements=rest)
    entry_of(evidence, to, settlements=(*evidence.journal[0][to - 1].settlements, moved))


def row(evidence: Evidence, kind: type[Any], **fields: Any) -> Any:
    rows = evidence.rows_of(0, kind)
    return next(each for each in rows if all(getattr(each, name) == value for name, value in fields.items()))


def sent(evidence: Evidence, run_id: str, attempt: int = 1) -> int:
    """Where in the dispatch partition an attempt was handed out."""
    return next(
        index
        for index, each in enumerate(evidence.sent[0])
        if isinstance(each, Assignment) and (each.run_id, each.attempt) == (run_id, attempt)
    )


@damage(steps.journal_unbroken, "shard 0: the journal's steps are not 1, 2, 3, ...")
def a_step_twice(evidence: Evidence) -> None:
    evidence.journal[0].insert(2, evidence.journal[0][2])


@damage(steps.journal_unbroken, "the journal's steps are not 1, 2, 3, ...")
def a_step_missing(evidence: Evidence) -> None:
    del evidence.journal[0][2]


@damage(steps.journal_unbroken, "the first one, is no takeover")
def no_beginning(evidence: Evidence) -> None:
    entry_of(evidence, 1, takeover=False)


@damage(steps.journal_unbroken, "step 6 is of epoch 1, the one before of 2")
def a_step_of_a_former_owner(evidence: Evidence) -> None:
    entry_of(evidence, 6, epoch=1)


@damage(steps.journal_unbroken, "step 3: takeover False, epoch 1→2")
def an_owner_that_did_not_take_over(evidence: Evidence) -> None:
    entry_of(evidence, 3, epoch=2)


@damage(steps.journal_unbroken, "time went back at step 3")
def a_clock_that_goes_back(evidence: Evidence) -> None:
    entry_of(evidence, 3, now_ms=1)


@damage(steps.journal_unbroken, "the positions are of epoch 1, the journal of 2")
def positions_of_a_former_owner(evidence: Evidence) -> None:
    row(evidence, PositionsRecord).epoch = 1


@damage(steps.chain_unbroken, "shard 0: step 4 follows")
def a_record_that_was_altered(evidence: Evidence) -> None:
    evidence.digests[0][2] = "f" * 64


@damage(steps.chain_unbroken, "shard 0: step 1 follows 'ffffffff', not ''")
def a_first_record_that_follows_another(evidence: Evidence) -> None:
    entry_of(evidence, 1, previous="f" * 64)


@damage(steps.chain_unbroken, "which is not the last step")
def a_last_record_that_was_dropped(evidence: Evidence) -> None:
    del evidence.journal[0][-1], evidence.digests[0][-1]


@damage(steps.state_as_the_journal_says, "shard 0: the state's hash is ")
def a_row_that_was_altered(evidence: Evidence) -> None:
    row(evidence, FlowRecord).deficit += 1


@damage(steps.state_as_the_journal_says, "shard 0: the state's hash is ")
def a_row_that_was_lost(evidence: Evidence) -> None:
    evidence.rows[0].remove(row(evidence, FlowRecord))


@damage(steps.inputs_applied_once, "requests from 0 applied after 8")
def inputs_applied_again(evidence: Evidence) -> None:
    entry_of(evidence, 2, inputs=(InputRange("requests", 0, 9),))


@damage(steps.inputs_applied_once, "requests from 10 applied after 8")
def an_input_skipped(evidence: Evidence) -> None:
    entry_of(evidence, 2, inputs=(InputRange("requests", 10, 10),))


@damage(steps.inputs_applied_once, "requests applied to 9, positions say 7")
def positions_that_lag(evidence: Evidence) -> None:
    row(evidence, PositionsRecord).applied["requests"] = 7


@damage(steps.all_inputs_applied, "shard 0: requests, offset 10, was not applied")
def an_input_nobody_read(evidence: Evidence) -> None:
    evidence.requests.append(Seen(0, 10, 0, None, b"{", ()))


@damage(dispatches.each_attempt_once, f"{ACME}/good attempt 1 was dispatched 2 times")
def an_attempt_dispatched_twice(evidence: Evidence) -> None:
    evidence.sent[0].append(evidence.sent[0][sent(evidence, "good")])


@damage(dispatches.each_attempt_once, f"{ACME}/failing was dispatched as attempts [2, 3]")
def an_attempt_left_out(evidence: Evidence) -> None:
    del evidence.sent[0][sent(evidence, "failing")]


@damage(dispatches.each_attempt_once, f"{ACME}/uninvited was dispatched and never accepted")
def a_run_nobody_asked_for(evidence: Evidence) -> None:
    index = sent(evidence, "good")
    evidence.sent[0][index] = evidence.sent[0][index]._replace(run_id="uninvited")


@damage(dispatches.each_attempt_once, "/crowd-2 was dispatched and never accepted")
def a_run_that_was_refused(evidence: Evidence) -> None:
    index = sent(evidence, "crowd-1")
    evidence.sent[0][index] = evidence.sent[0][index]._replace(run_id="crowd-2")


@damage(dispatches.sequence_gapless, "shard 0: sequence numbers twice [2], missing []")
def a_number_twice(evidence: Evidence) -> None:
    evidence.sent[0].append(evidence.sent[0][sent(evidence, "failing")])


@damage(dispatches.sequence_gapless, "shard 0: sequence numbers twice [], missing [2]")
def a_number_missing(evidence: Evidence) -> None:
    del evidence.sent[0][sent(evidence, "failing")]


@damage(dispatches.order_kept, "is of epoch 1, the one before of 7")
def an_epoch_that_goes_back(evidence: Evidence) -> None:
    index = sent(evidence, "good")
    evidence.sent[0][index] = evidence.sent[0][index]._replace(epoch=7)


@damage(dispatches.order_kept, "is of step 1, the one before of 7")
def a_step_that_goes_back(evidence: Evidence) -> None:
    index = sent(evidence, "good")
    evidence.sent[0][index] = evidence.sent[0][index]._replace(step=7)


@damage(dispatches.order_kept, "dispatch partition 0: seq 1 of shard 0 behind 2")
def records_out_of_order(evidence: Evidence) -> None:
    partition = evidence.sent[0]
    partition.insert(0, partition.pop(sent(evidence, "failing")))


@damage(dispatches.as_the_journal_says, "seq 1: decided None, sent")
def what_was_never_decided(evidence: Evidence) -> None:
    entry_of(evidence, 1, decisions=evidence.journal[0][0].decisions[1:])


@damage(dispatches.as_the_journal_says, "seq 1: decided")
def what_was_sent_by_another_owner(evidence: Evidence) -> None:
    index = sent(evidence, "good")
    evidence.sent[0][index] = evidence.sent[0][index]._replace(epoch=7)


@damage(dispatches.as_the_journal_says, "'cancelled by its tenant', 2, 1), sent None")
def a_revocation_not_sent(evidence: Evidence) -> None:
    evidence.sent[0] = [each for each in evidence.sent[0] if isinstance(each, Assignment)]


@damage(dispatches.all_served, f"{ACME}/good was accepted and never dispatched")
def a_run_lost(evidence: Evidence) -> None:
    del evidence.sent[0][sent(evidence, "good")]


@damage(requests.each_answered_once, "requests, partition 0, offset 1 was refused 2 times: ['duplicate', 'duplicate']")
def a_refusal_twice(evidence: Evidence) -> None:
    evidence.refusals.append(next(each for each in evidence.refusals if each.run_id == "good"))


@damage(requests.each_answered_once, "offset 6 was refused (duplicate), and no request that could be stands there")
def a_refusal_of_nothing(evidence: Evidence) -> None:
    index = next(index for index, each in enumerate(evidence.refusals) if each.run_id == "good")
    wrong = evidence.refusals[index]
    evidence.refusals[index] = wrong._replace(position=wrong.position._replace(offset=6))  # a cancel stands there


@damage(requests.each_answered_once, "requests, partition 0, offset 7 cannot be used, and the refusals of it are []")
def an_unreadable_record_passed_over(evidence: Evidence) -> None:
    evidence.refusals[:] = [each for each in evidence.refusals if each.position[:] != ("runs.requests", 0, 7)]


@damage(requests.each_answered_once, "shard 0: 6 requests were applied, and the answers are")
def a_request_without_an_answer(evidence: Evidence) -> None:
    entry = evidence.journal[0][0]
    entry_of(evidence, 1, counts={**entry.counts, "accepted": entry.counts["accepted"] - 1})


@damage(requests.refused_as_the_journal_says, "1 times in the journal, 0 times in the rejected topic")
def a_refusal_not_written(evidence: Evidence) -> None:
    evidence.refusals[:] = [each for each in evidence.refusals if each.reason != "duplicate"]


@damage(requests.refused_as_the_journal_says, "0 times in the journal, 1 times in the rejected topic")
def a_refusal_not_decided(evidence: Evidence) -> None:
    entry_of(evidence, 1, rejections=())


@damage(
    requests.forwarded_once, "requests, partition 0, offset 8 is of another shard's tenant and was forwarded 2 times"
)
def a_record_forwarded_twice(evidence: Evidence) -> None:
    copy = next(seen for seen in evidence.requests if seen.headers)
    evidence.requests.append(copy._replace(offset=99))


@damage(
    accounts.runs_conserved, "shard 0: 5 runs were accepted, 0 are left, and ended {'succeeded': 4, 'cancelled': 2}"
)
def a_run_that_ended_twice(evidence: Evidence) -> None:
    entry = evidence.journal[0][1]
    entry_of(evidence, 2, counts={**entry.counts, "succeeded": entry.counts["succeeded"] + 1})


@damage(accounts.runs_conserved, "shard 0: 5 runs were accepted, 1 are left")
def a_run_that_ended_and_is_still_there(evidence: Evidence) -> None:
    evidence.rows[0].append(RunRecord(ACME, "good", "w", "default", 0, 1, None, None, 1, 1, 1, 0, b""))


@damage(accounts.settled_once, "'good', 1) was settled 2 times: ['succeeded', 'succeeded']")
def an_attempt_settled_twice(evidence: Evidence) -> None:
    entry, index = settlement(evidence, "good", 1)
    entry_of(evidence, entry.step, settlements=(*entry.settlements, entry.settlements[index]))


@damage(accounts.settled_once, "'silent', 1) was settled 3 times: ['lost', 'failed', 'failed']")
def an_attempt_amended_twice(evidence: Evidence) -> None:
    entry, index = evidence.settlements[ACME, "silent", 1][1]
    del evidence.__dict__["settlements"]
    entry_of(evidence, entry.step, settlements=(*entry.settlements, index))


@damage(accounts.settled_once, "'silent', 1) was given up at 5 tokens and amended from 6")
def an_amendment_of_something_else(evidence: Evidence) -> None:
    entry, _ = evidence.settlements[ACME, "silent", 1][1]
    del evidence.__dict__["settlements"]
    entry_of(evidence, entry.step, settlements=(replace(entry.settlements[0], estimate=6),))


@damage(accounts.settled_once, "was settled and never dispatched")
def a_settlement_of_nothing(evidence: Evidence) -> None:
    del evidence.sent[0][sent(evidence, "good")]


@damage(accounts.settled_once, "tokens and settled from 3")
def a_settlement_of_another_charge(evidence: Evidence) -> None:
    entry, index = settlement(evidence, "good", 1)
    changed = [replace(each, estimate=3) if at == index else each for at, each in enumerate(entry.settlements)]
    entry_of(evidence, entry.step, settlements=tuple(changed))


@damage(accounts.settled_or_in_flight, "'good', 1) was dispatched, is not in flight, and was never settled")
def an_attempt_forgotten(evidence: Evidence) -> None:
    entry, index = settlement(evidence, "good", 1)
    rest = tuple(each for at, each in enumerate(entry.settlements) if at != index)
    entry_of(evidence, entry.step, settlements=rest)


def flight(run_id: str, charged: int = 0) -> FlightRecord:
    return FlightRecord(ACME, run_id, "default", "w", 1, 1, 1, 0, charged, charged, 0, 0, 0)


@damage(accounts.settled_or_in_flight, "'good', 1) was settled and is in flight")
def an_attempt_that_keeps_its_place(evidence: Evidence) -> None:
    evidence.rows[0].append(flight("good"))


@damage(accounts.tokens_conserved, "and has 1 in flight")
def a_charge_that_is_not_in_the_account(evidence: Evidence) -> None:
    evidence.rows[0].append(flight("good", charged=1))


@damage(accounts.tokens_conserved, "shard 0, class default:")
def a_refund_that_was_forgotten(evidence: Evidence) -> None:
    account = row(evidence, FlowRecord, tenant=ACME)
    account.charged += 1
    account.actual += 1


@damage(accounts.tokens_conserved, "attempts were dispatched")
def an_attempt_that_was_not_booked(evidence: Evidence) -> None:
    row(evidence, FlowRecord, tenant=ACME).dispatched -= 1


@damage(accounts.nothing_left, "/good attempt 1 is still in flight")
def a_place_that_is_never_given_back(evidence: Evidence) -> None:
    evidence.rows[0].append(flight("good"))


@damage(accounts.nothing_left, "/good still has a row")
def a_run_that_does_not_end(evidence: Evidence) -> None:
    evidence.rows[0].append(RunRecord(ACME, "good", "w", "default", 0, 1, None, None, 1, 1, 1, 0, b""))


@damage(leases.one_attempt_at_a_time, "/failing attempt 2 was dispatched before attempt 1 was settled")
def an_attempt_beside_another(evidence: Evidence) -> None:
    move_settlement(evidence, "failing", 1, to=5)


@damage(leases.one_attempt_at_a_time, "/failing attempt 2 was dispatched in step")
def an_attempt_after_the_end(evidence: Evidence) -> None:
    entry, index = settlement(evidence, "failing", 1)
    changed = [replace(each, outcome=SUCCEEDED) if at == index else each for at, each in enumerate(entry.settlements)]
    entry_of(evidence, entry.step, settlements=tuple(changed))


@damage(leases.leases_honoured, f"was given up 2000 ms before its lease of {LEASE_MS} ms ran out")
def a_lease_that_a_heartbeat_did_not_prolong(evidence: Evidence) -> None:
    entry, _ = settlement(evidence, "silent", 1)
    for each in evidence.journal[0][entry.step - 1 :]:
        entry_of(evidence, each.step, now_ms=each.now_ms - 2_000)


@damage(leases.leases_honoured, f"ms before its lease of {LEASE_MS} ms ran out")
def a_lease_that_ran_while_nobody_could_be_heard(evidence: Evidence) -> None:
    move_settlement(evidence, "silent", 1, to=4)
