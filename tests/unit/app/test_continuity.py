from __future__ import annotations

import pytest

from streams.app.continuity import Topics, next_reign
from streams.errors import ConfigError, StateUnreadable
from streams.rows import PositionsRecord
from tests.unit.app.fakes import NAMES

COUNTS = {"requests": 4, "completions": 4}
IDS = {"requests": "r1", "completions": "c1", "state": "s1"}
LAST = PositionsRecord(3, {"requests": 41}, COUNTS, IDS)


def topics(
    requests: tuple[int, int] = (0, 50), completions: tuple[int, int] = (0, 50), ids: dict[str, str] | None = None
) -> Topics:
    ends = {NAMES.requests: requests, NAMES.completions: completions}
    return Topics(COUNTS, IDS if ids is None else ids, ends.__getitem__)


def test_a_fresh_shard_begins_where_its_inputs_begin(caplog: pytest.LogCaptureFixture) -> None:
    reign = next_reign(None, topics(completions=(7, 9)), NAMES, 2)
    assert reign == PositionsRecord(1, {"completions": 6}, COUNTS, IDS)
    assert caplog.records == []  # it has missed nothing


def test_a_reign_goes_on_where_the_last_one_stood() -> None:
    assert next_reign(LAST, topics(), NAMES, 2) == PositionsRecord(4, {"requests": 41}, COUNTS, IDS)


@pytest.mark.parametrize("ids", [IDS, {}])
def test_state_from_before_topics_were_known_by_their_ids_is_gone_on_with(ids: dict[str, str]) -> None:
    old = PositionsRecord(3, {"requests": 41}, COUNTS)
    assert next_reign(old, topics(ids=ids), NAMES, 2).topics == ids


def test_without_an_answer_about_ids_the_known_ones_stay() -> None:
    assert next_reign(LAST, topics(ids={}), NAMES, 2).topics == IDS


@pytest.mark.parametrize("topic", list(IDS))
def test_a_topic_that_was_made_anew_is_refused_however_full_it_is(topic: str) -> None:
    with pytest.raises(StateUnreadable, match=rf"^runs\.{topic} was deleted and made anew"):
        next_reign(LAST, topics(ids={**IDS, topic: "new"}), NAMES, 2)


def test_a_shard_that_was_in_memory_a_moment_ago_is_not_fresh_however_empty_its_topic_is() -> None:
    """A step may fail while its topic is made anew; the reload finds nothing then, and must not begin afresh."""
    with pytest.raises(StateUnreadable, match=r"^runs\.state was deleted and made anew under its owner"):
        next_reign(None, topics(), NAMES, 2, known_state="s0")
    for known, ids in (("s1", IDS), ("s0", {}), (None, IDS)):
        assert next_reign(None, topics(ids=ids), NAMES, 2, known_state=known).epoch == 1


def test_a_topic_that_is_missing_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"runs\.state is missing.*fairstream topics"):
        next_reign(LAST, topics(ids={"requests": "r1", "completions": "c1"}), NAMES, 2)


def test_other_partition_counts_are_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="fairstream migrate shards"):
        next_reign(PositionsRecord(3, {}, {"requests": 8, "completions": 8}), topics(), NAMES, 2)


def test_an_input_that_is_shorter_than_what_was_applied_is_refused() -> None:
    with pytest.raises(StateUnreadable, match=r"runs\.requests, partition 2, ends at 41"):
        next_reign(LAST, topics(requests=(0, 41)), NAMES, 2)
    next_reign(LAST, topics(requests=(0, 42)), NAMES, 2)


def test_what_retention_deleted_unread_is_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    reign = next_reign(LAST, topics(requests=(60, 70), completions=(0, 5)), NAMES, 2)
    assert reign.applied == {"requests": 59}
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "topic=runs.requests partition=2 from=42 to=60: up to 18 records" in record.message
