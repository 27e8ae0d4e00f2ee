"""The witness finds what is wrong with a log: each damage by its sentence, and none with what is sound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import orjson
import pytest

from streams.app.in_memory import load
from streams.core.records import FLOW
from streams.core.shard import Shard
from streams.rows import POSITIONS, PositionsRecord, decode, encode, encode_key
from streams.simulate.faulty.ledger import Violation
from streams.simulate.faulty.log import Log, Place, Record
from streams.simulate.faulty.witness import Witness, _is_over
from streams.simulate.faulty.workers import Attempt
from streams.simulate.faulty.world import Setting, simulate
from streams.wire import decode_completion, journal_digest

Records = dict[Place, list[Record]]
JOURNAL, STATE, DISPATCH, REJECTED = ("journal", 0), ("state", 0), ("dispatch", 0), ("rejected", 0)
PLACES = (JOURNAL, STATE, DISPATCH, REJECTED, ("requests", 0), ("completions", 0))
CASES: list[Any] = []


@cache
def sound() -> Log:
    outcome, log = simulate(4, load, Setting(shards=1, ticks=25))
    assert outcome.problem is None
    return log


def damage(sentence: str) -> Callable[[Callable[[Records], None]], None]:
    def note(do: Callable[[Records], None]) -> None:
        CASES.append(pytest.param(sentence, do, id=do.__name__))

    return note


def look(records: Records) -> None:
    """Let a witness look at these once they are all there."""
    log = Log()
    for place, each in records.items():
        for record in each:
            log.append(place, record.key, record.value, record.headers, timestamp=record.timestamp)
    spent: defaultdict[Attempt, set[int]] = defaultdict(set)
    for record in records["completions", 0]:
        try:
            said = decode_completion(record.key, record.value, 0)
        except ValueError:
            continue
        if said.tokens is not None:
            spent[said.tenant, said.run_id, said.attempt].add(said.tokens)
    Witness(log, 1, spent).at_rest()


def parts() -> Records:
    return {place: [*sound().read(place, 0)[0]] for place in PLACES}


def rechained(records: Records, edit: Callable[[dict[str, Any]], bool]) -> None:
    """Alter the first journal record that `edit` takes, and make the chain right again, up to the positions."""
    digest, done = "", False
    for index, record in enumerate(records[JOURNAL]):
        step = orjson.loads(record.value or b"")
        done = done or edit(step)
        value = orjson.dumps(step | {"previous": digest})
        digest = journal_digest(value)
        records[JOURNAL][index] = record._replace(value=value)
    assert done, "there was one to alter"
    close(records, journal=digest)


def close(records: Records, **fields: Any) -> None:
    """Alter the positions as they were written last."""
    key = encode_key(0, (POSITIONS,))
    index = max(index for index, record in enumerate(records[STATE]) if record.key == key)
    row = decode((POSITIONS,), records[STATE][index].value or b"")
    assert isinstance(row, PositionsRecord)
    records[STATE][index] = records[STATE][index]._replace(value=encode(replace(row, **fields)))


def column(section: str, name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], bool]:
    """Alter the first entry of a column, in the first step that has one."""

    def edit(step: dict[str, Any]) -> bool:
        values = step[section][name]
        if values:
            values[0] = change(values[0])
        return bool(values)

    return edit


@pytest.mark.parametrize(
    ("flight_runs", "flight_tokens", "over"),
    [(2, 10, False), (3, 9, True), (2, 11, True), (1, 11, False), (0, 0, False)],
)
def test_a_window_may_be_exceeded_by_one_large_run_alone(flight_runs: int, flight_tokens: int, *, over: bool) -> None:
    view = Shard(0, 1).snapshot().shard
    view = replace(view, window_runs=2, window_tokens=10, flight_runs=flight_runs, flight_tokens=flight_tokens)
    assert _is_over(view) is over


def test_what_is_sound_is_found_sound() -> None:
    look(parts())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "do" in metafunc.fixturenames:
        metafunc.parametrize(("sentence", "do"), CASES)


def test_damage_is_found(sentence: str, do: Callable[[Records], None]) -> None:
    records = parts()
    do(records)
    with pytest.raises(Violation, match=sentence):
        look(records)


@damage("the step is 6 and should be 5")
def a_step_is_dropped(records: Records) -> None:
    del records[JOURNAL][4]


@damage("the step is 5 and should be 6")
def a_step_is_doubled(records: Records) -> None:
    records[JOURNAL].insert(4, records[JOURNAL][4])


@damage("the digest of the record before")
def a_step_is_altered(records: Records) -> None:
    record = records[JOURNAL][4]
    records[JOURNAL][4] = record._replace(value=(record.value or b"") + b" ")


@damage("the positions' record of the journal")
def the_last_step_is_altered(records: Records) -> None:
    record = records[JOURNAL][-1]
    records[JOURNAL][-1] = record._replace(value=(record.value or b"") + b" ")


@damage("the epoch goes back")
def an_epoch_is_of_a_former_owner(records: Records) -> None:
    rechained(records, lambda step: step["step"] > 4 and not step.update(epoch=0))


@damage("time goes back")
def a_step_is_earlier_than_the_one_before(records: Records) -> None:
    rechained(records, lambda step: step["step"] > 4 and not step.update(now_ms=1))


@damage("whether it is the first step of a reign")
def a_takeover_is_hidden(records: Records) -> None:
    rechained(records, lambda step: step["step"] > 1 and step["takeover"] and not step.update(takeover=False))


@damage("the first of (requests|completions) is")
def inputs_are_applied_twice(records: Records) -> None:
    def edit(step: dict[str, Any]) -> bool:
        inputs = [each for each in step["inputs"] if each["topic"] != "policy" and each["first"]]
        for each in inputs:
            each["first"] -= 1
        return bool(inputs)

    rechained(records, edit)


@damage("the sequence number")
def a_number_is_skipped(records: Records) -> None:
    rechained(records, column("decisions", "seq", lambda seq: seq + 1))


@damage("the attempt of")
def an_attempt_is_not_the_next(records: Records) -> None:
    rechained(records, column("decisions", "attempt", lambda attempt: attempt + 1))


@damage("was served before it could pay")
def a_tenant_is_served_on_credit(records: Records) -> None:
    rechained(records, column("decisions", "deficit", lambda _: -1))


@damage("was settled and never dispatched")
def somebody_else_is_charged(records: Records) -> None:
    rechained(records, column("settlements", "run_id", lambda _: "nobody's"))


@damage("what .* was charged is")
def the_estimate_is_forgotten(records: Records) -> None:
    rechained(records, column("settlements", "estimate", lambda estimate: estimate + 1))


@damage("it said")
def more_is_charged_than_was_spent(records: Records) -> None:
    def edit(step: dict[str, Any]) -> bool:
        said = step["settlements"]
        for index, (outcome, reported) in enumerate(zip(said["outcome"], said["reported"], strict=True)):
            if outcome == "succeeded" and reported:
                said["actual"][index] += 100_000
                return True
        return False

    rechained(records, edit)


@damage("was settled twice")
def an_account_is_closed_twice(records: Records) -> None:
    def edit(step: dict[str, Any]) -> bool:
        for values in step["settlements"].values():
            values.extend(values[:1])
        return bool(step["settlements"]["outcome"][:1]) and step["settlements"]["outcome"][0] != "lost"

    rechained(records, edit)


@damage("hash of the rows")
def a_row_is_altered(records: Records) -> None:
    flows = [
        index for index, each in enumerate(records[STATE]) if (each.key or b"").startswith(b'[0,"%s"' % FLOW.encode())
    ]
    index = flows[-1]
    records[STATE][index] = records[STATE][index]._replace(value=records[STATE][flows[0]].value)


@damage("hash of the rows")
def a_deletion_is_lost(records: Records) -> None:
    del records[STATE][max(index for index, each in enumerate(records[STATE]) if each.value is None)]


@damage("the positions' place in requests")
def the_positions_are_behind(records: Records) -> None:
    close(records, applied={"requests": 0, "completions": 0})


@damage("was sent, decided was None")
def a_dispatch_is_doubled(records: Records) -> None:
    records[DISPATCH].append(records[DISPATCH][0])


@damage("was decided and never sent")
def a_dispatch_is_lost(records: Records) -> None:
    del records[DISPATCH][3]


@damage("was refused 2 times")
def a_refusal_is_doubled(records: Records) -> None:
    records[REJECTED] += records[REJECTED]


@damage("requests were never applied")
def a_request_is_forgotten(records: Records) -> None:
    records["requests", 0] += records["requests", 0] * 3


@damage("runs were asked for, and .* answers given")
def a_refusal_is_not_counted(records: Records) -> None:
    rechained(records, lambda step: bool(step["counts"].pop("refused", 0)))


@damage("were accepted, and ended")
def a_run_is_accepted_that_nobody_knows(records: Records) -> None:
    rechained(records, lambda step: not step["counts"].update(accepted=step["counts"].get("accepted", 0) + 1))
