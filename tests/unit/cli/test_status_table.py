from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from streams.cli.status import _document, _span, _tables
from streams.client.status_view import Overview, overview
from streams.wire import Status
from tests.unit.client.test_status_view import CLASS, FLOW, NOW_MS, SHARD

SHOWN = Status(0, 1, SHARD)


def shown(seen: Overview) -> list[str]:
    out = io.StringIO()
    Console(width=200, file=out).print(_tables(seen))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_a_table_shows_shards_classes_and_tenants() -> None:
    lines = shown(overview([Status(0, 1, SHARD), Status(0, 1, CLASS), Status(0, 1, FLOW)], NOW_MS))
    assert "0 1 / 5 8 / - 1 1 2 window runs p v2 9 1.0 s ago" in lines
    assert "default 0 75.0% 100.0% 4 / 400 2 1 3 120 900" in lines
    assert "a default pro 2 25.0% 100.0% 1 / 10 turn 1 / 5 -3 50 1.10 25% / 300% 1.0 min" in lines


def test_a_stuck_shard_stands_out() -> None:
    lines = shown(overview([Status(0, 1, replace(SHARD, waiting_for="caps", stuck=True))], NOW_MS))
    assert any("caps STUCK" in line for line in lines)


def test_a_tenant_says_how_far_off_its_turn_is_and_whom_it_belongs_to() -> None:
    waiting = replace(FLOW, rounds_to_go=1_200, group="acme")
    lines = shown(overview([SHOWN, Status(0, 1, waiting), Status(0, 1, replace(waiting, plan=None))], NOW_MS))
    assert sum("turn in 1,200" in line for line in lines) == 2
    assert any(" pro, acme " in line for line in lines)
    assert any(" -, acme " in line for line in lines)


def test_names_that_others_chose_command_neither_the_terminal_nor_the_table() -> None:
    nasty = "[red]a[/red]:boom:\x1b[2J\n\u202eb\0"
    flow = replace(FLOW, tenant=nasty, class_=nasty, plan=nasty, group=nasty)
    seen = [
        Status(0, 1, replace(SHARD, policy_name=nasty)),
        Status(0, 1, replace(CLASS, class_=nasty)),
        Status(0, 1, flow),
    ]
    out = io.StringIO()
    Console(width=2_000, file=out, force_terminal=True, color_system=None).print(_tables(overview(seen, NOW_MS)))
    lines = out.getvalue().splitlines()
    assert out.getvalue().count(r"[red]a[/red]:boom:\x1b[2J\n\u202eb\x00") == 6
    assert all(line.isprintable() for line in lines)


def test_a_class_with_nobody_to_compare_shows_no_gap() -> None:
    lines = shown(overview([SHOWN, Status(0, 1, replace(CLASS, gap=0, bound=0))], NOW_MS))
    assert "default 0 75.0% - 4 / 400 2 1 3 - -" in lines


def test_what_there_is_none_of_is_a_dash() -> None:
    idle = replace(
        FLOW,
        plan=None,
        skip="",
        queued_runs=0,
        flight_runs=0,
        stated_share_ppm=0,
        actual=0,
        ratio_ppm=None,
        error_p50_ppm=None,
        error_p90_ppm=None,
        oldest_submitted_ms=None,
    )
    lines = shown(overview([Status(0, 1, replace(SHARD, policy_version=-1)), Status(0, 1, idle)], NOW_MS))
    assert "a default - 2 - - - - - -3 0 - - -" in lines
    assert any("built-in" in line for line in lines)


def test_without_shards_it_says_what_may_be_missing() -> None:
    assert shown(overview([], NOW_MS)) == ["no shard has shown itself yet: is a scheduler running?"]


def test_the_document_names_fields_as_the_messages_do() -> None:
    document = _document(overview([Status(0, 1, FLOW), Status(0, 1, CLASS)], NOW_MS))
    for kind in ("tenants", "classes"):
        [row] = document[kind]
        assert row["class"] == "default"
        assert "class_" not in row


def test_a_span_has_the_unit_a_person_would_name() -> None:
    spans = {ms: _span(ms) for ms in (0, 999, 1_000, 90_000, 3_600_000, 100_000_000)}
    assert list(spans.values()) == ["0 ms", "999 ms", "1.0 s", "1.5 min", "1.0 h", "1.2 d"]
