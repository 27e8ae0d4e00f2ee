from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from streams.cli.status import _document, _span, _tables
from streams.client.status_view import Overview, overview
from streams.wire import Status
from tests.unit.client.test_status_view import FLOW, NOW_MS, SHARD


def shown(seen: Overview) -> list[str]:
    out = io.StringIO()
    Console(width=200, file=out).print(_tables(seen))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_a_table_shows_shards_and_tenants() -> None:
    lines = shown(overview([Status(0, 1, SHARD), Status(0, 1, FLOW)], NOW_MS))
    assert "0 1 / 5 8 / - 1 1 p v2 9 1.0 s ago" in lines
    assert "a default pro 2 25.0% 100.0% 1 / 10 1 / 5 -3 50 1.0 min" in lines


def test_what_there_is_none_of_is_a_dash() -> None:
    idle = replace(
        FLOW, plan=None, queued_runs=0, flight_runs=0, stated_share_ppm=0, actual=0, oldest_submitted_ms=None
    )
    lines = shown(overview([Status(0, 1, replace(SHARD, policy_version=-1)), Status(0, 1, idle)], NOW_MS))
    assert "a default - 2 - - - - -3 0 -" in lines
    assert any("built-in" in line for line in lines)


def test_without_shards_it_says_what_may_be_missing() -> None:
    assert shown(overview([], NOW_MS)) == ["no shard has shown itself yet: is a scheduler running?"]


def test_the_document_names_fields_as_the_messages_do() -> None:
    [tenant] = _document(overview([Status(0, 1, FLOW)], NOW_MS))["tenants"]
    assert tenant["class"] == "default"
    assert "class_" not in tenant


def test_a_span_has_the_unit_a_person_would_name() -> None:
    spans = {ms: _span(ms) for ms in (0, 999, 1_000, 90_000, 3_600_000, 100_000_000)}
    assert list(spans.values()) == ["0 ms", "999 ms", "1.0 s", "1.5 min", "1.0 h", "1.2 d"]
