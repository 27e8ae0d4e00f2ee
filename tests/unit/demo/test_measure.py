from collections import Counter
from dataclasses import replace

import pytest

from streams.core.inputs import SUCCEEDED
from streams.demo.measure import as_filed, as_served, measure
from streams.demo.records import Account, Filed, Records
from streams.errors import FairstreamError
from streams.simulate.baselines import Fifo
from streams.simulate.deficit_round_robin import DeficitRoundRobin
from streams.simulate.pool import play
from streams.simulate.story import Story
from streams.simulate.waits import waits
from tests.unit.demo.recorded import BEGIN_MS, accounts, without_report


def test_what_was_measured_is_what_was_played(story: Story, records: Records) -> None:
    played = play(story.arrivals, DeficitRoundRobin(story.policy, slots=story.slots), slots=story.slots, handover_ms=2)
    arrivals = as_filed(story, records, BEGIN_MS)
    assert arrivals == story.arrivals
    assert as_served(arrivals, records, BEGIN_MS) == played


def test_fifo_gets_the_arrivals_as_they_were_not_as_they_were_planned(story: Story, records: Records) -> None:
    late = [request._replace(at_ms=request.at_ms + 500) for request in records.filed]
    records.filed = late
    figures = measure(story, records, accounts(story, records), BEGIN_MS)
    moved = [arrival._replace(at_ms=arrival.at_ms + 500) for arrival in story.arrivals]
    assert figures.fifo_waits == waits(play(moved, Fifo(), slots=story.slots))
    assert figures.waits["big"].p50 == waits(as_served(story.arrivals, records, BEGIN_MS))["big"].p50 - 500


def test_fifo_gets_the_durations_as_they_were_not_as_they_were_planned(story: Story, records: Records) -> None:
    records.reports = [
        report._replace(at_ms=report.at_ms + 40) if report.status == SUCCEEDED else report for report in records.reports
    ]
    figures = measure(story, records, accounts(story, records), BEGIN_MS)
    slower = [arrival._replace(duration_ms=arrival.duration_ms + 40) for arrival in story.arrivals]
    assert figures.fifo_waits == waits(play(slower, Fifo(), slots=story.slots))


def test_fifos_shares_are_of_the_same_time_and_the_same_tokens_divided_otherwise(
    story: Story, records: Records
) -> None:
    figures = measure(story, records, accounts(story, records), BEGIN_MS)
    assert figures.contest is not None
    fifo = play(story.arrivals, Fifo(), slots=story.slots)
    handed_out: Counter[str] = Counter()
    for run in fifo:
        if figures.contest.interval.contains(run.decided_ms):
            handed_out[run.arrival.tenant] += run.arrival.tokens
    assert {tenant: share.observed for tenant, share in figures.fifo_shares.items() if share.observed} == handed_out
    assert figures.fifo_shares["big"].observed != figures.shares["big"].observed


def test_requests_count_in_the_order_of_their_topic(story: Story, records: Records) -> None:
    # The clock went back by 5 ms between two requests: the queue does not.
    first, second = records.filed[1], records.filed[2]
    records.filed[1:3] = [first, second._replace(at_ms=first.at_ms - 5)]
    arrivals = as_filed(story, records, BEGIN_MS)
    assert [arrival.run_id for arrival in arrivals[:2]] == [first.run_id, second.run_id]
    assert arrivals[1].at_ms == arrivals[0].at_ms


def test_a_run_that_was_never_filed_is_missed(story: Story, records: Records) -> None:
    del records.filed[-1]
    with pytest.raises(FairstreamError, match="1 runs were never filed"):
        measure(story, records, {}, BEGIN_MS)


def test_a_run_that_was_never_done_is_missed(story: Story, records: Records) -> None:
    records.reports = list(without_report(records, "tiny"))
    with pytest.raises(FairstreamError, match=r"1 runs were never done .*tiny/"):
        measure(story, records, {}, BEGIN_MS)


def test_a_run_that_came_twice_is_measured_by_the_attempt_that_succeeded(story: Story, records: Records) -> None:
    last = records.handed[-1]
    again = last._replace(seq=last.seq + 1, attempt=2, at_ms=last.at_ms + 7)
    records.handed.append(again)
    of_run = [report for report in records.reports if (report.tenant, report.run_id) == (last.tenant, last.run_id)]
    records.reports = [report for report in records.reports if report not in of_run]
    records.reports += [report._replace(attempt=2, at_ms=report.at_ms + 7) for report in of_run]
    served = as_served(as_filed(story, records, BEGIN_MS), records, BEGIN_MS)
    assert served[-1].decided_ms == again.at_ms - BEGIN_MS
    assert len(served) == len(story.arrivals)


def test_the_rehearsal_counts_for_nothing_but_the_sequence(story: Story, records: Records) -> None:
    figures = measure(story, records, accounts(story, records), BEGIN_MS)
    assert figures.attempts == len(story.arrivals) == len(records.handed) - 1
    assert figures.gapless
    assert set(figures.waits) == set(story.tenants) == set(figures.ledgers)


def test_a_gap_in_the_sequence_is_seen(story: Story, records: Records) -> None:
    records.handed[-1] = records.handed[-1]._replace(seq=records.handed[-1].seq + 1)
    assert not measure(story, records, accounts(story, records), BEGIN_MS).gapless


@pytest.mark.parametrize("way", ["reported", "settled", "charged", "actual"])
def test_one_token_too_few_is_seen_in_whatever_way_it_was_lost(story: Story, records: Records, way: str) -> None:
    rows = accounts(story, records)
    account = rows["tiny"]
    if way == "reported":
        index = max(i for i, r in enumerate(records.reports) if r.tenant == "tiny" and r.status == SUCCEEDED)
        report = records.reports[index]
        records.reports[index] = report._replace(tokens=(report.tokens or 0) - 1)
    elif way == "settled":
        index = max(i for i, each in enumerate(records.settled) if each.tenant == "tiny")
        records.settled[index] = replace(records.settled[index], actual=records.settled[index].actual - 1)
    else:
        rows["tiny"] = account._replace(**{way: account.actual - 1})
    ledgers = measure(story, records, rows, BEGIN_MS).ledgers
    assert [tenant for tenant, ledger in ledgers.items() if not ledger.balanced] == ["tiny"]


def test_a_tenant_without_a_row_is_not_balanced(story: Story, records: Records) -> None:
    rows = accounts(story, records)
    del rows["little"]
    ledgers = measure(story, records, rows, BEGIN_MS).ledgers
    assert ledgers["little"].charged == 0
    assert not ledgers["little"].balanced


def test_rows_of_others_do_not_matter(story: Story, records: Records) -> None:
    rows = accounts(story, records) | {"rehearsal": Account(1, 1)}
    records.filed.append(Filed("somebody", "else", BEGIN_MS))
    assert set(measure(story, records, rows, BEGIN_MS).ledgers) == set(story.tenants)
