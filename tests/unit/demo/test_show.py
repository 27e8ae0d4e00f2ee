import json
from collections import Counter
from io import StringIO

import pytest
from rich.console import Console

from streams.demo.claims import judge
from streams.demo.measure import Figures, measure
from streams.demo.player import Moment
from streams.demo.progress import watching
from streams.demo.records import Records
from streams.demo.show import WIDTH, show, to_json
from streams.demo.story import make_stories
from streams.simulate.story import Story
from tests.unit.demo.recorded import BEGIN_MS, accounts, record


@pytest.fixture
def figures(story: Story, records: Records) -> Figures:
    return measure(story, records, accounts(story, records), BEGIN_MS)


def printed(figures: Figures) -> str:
    out = StringIO()
    show(figures, judge(figures), Console(file=out, width=WIDTH))
    return out.getvalue()


def rows(text: str) -> dict[str, list[str]]:
    """The cells of the table's lines by tenant."""
    lines = [line.split() for line in text.splitlines()]
    begin = next(number for number, cells in enumerate(lines) if cells[:1] == ["tenant"]) + 1
    end = begin + lines[begin:].index([])
    return {cells[0].rstrip("*+"): cells for cells in lines[begin:end]}


def test_every_tenant_has_a_line_and_every_claim_its_answer(figures: Figures) -> None:
    text = printed(figures)
    assert list(rows(text)) == list(figures.story.tenants)
    assert text.count("\nyes ") == len(judge(figures))
    assert all(f"\n{marked} " in text for marked in ("big*", "large*", "little+", "tiny+"))
    assert "simulated" in text


@pytest.mark.parametrize("story", make_stories("both", None), ids=lambda story: story.name)
def test_the_real_tables_fit_into_a_hundred_columns_unbroken(story: Story) -> None:
    records = record(story)
    text = printed(measure(story, records, accounts(story, records), BEGIN_MS))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" not in text
    runs = Counter(arrival.tenant for arrival in story.arrivals)
    assert {tenant: str(runs[tenant]) in cells for tenant, cells in rows(text).items()} == dict.fromkeys(runs, True)


def test_a_claim_that_fails_stands_out(figures: Figures) -> None:
    out = StringIO()
    claims = [claim._replace(holds=False) for claim in judge(figures)]
    show(figures, claims, Console(file=out, width=WIDTH))
    assert out.getvalue().count("NO ") == len(claims)


def test_the_document_says_the_same_and_whether_all_holds(figures: Figures) -> None:
    claims = judge(figures)
    document = json.loads(to_json([(figures, claims)]))
    assert document["holds"] is True
    (told,) = document["stories"]
    tenants = {each["tenant"]: each for each in told["tenants"]}
    assert set(tenants) == set(figures.story.tenants)
    assert tenants["big"]["waits_ms"]["fairstream"]["p95"] == figures.waits["big"].p95
    assert tenants["big"]["waits_ms"]["fifo"]["p95"] == figures.fifo_waits["big"].p95
    assert tenants["big"]["tokens"]["charged"] == tenants["big"]["tokens"]["actual"]
    assert 0.99 < told["jain_index"] <= 1
    assert [claim["name"] for claim in told["claims"]] == [claim.name for claim in claims]
    failed = [claims[0]._replace(holds=False), *claims[1:]]
    assert json.loads(to_json([(figures, failed)]))["holds"] is False


def test_progress_is_told_in_lines_where_nobody_watches(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    queued = {"big": 7, "large": 9, "tiny": 1}
    with watching(story) as watch:
        for second in range(25):
            watch(Moment(elapsed_s=float(second), filed=10, started=5, settled=3, queued=queued))
        watch(Moment(elapsed_s=31.0, filed=10, started=10, settled=10, queued={}))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["10 s", "20 s", "31 s"]
    assert "large 9, big 7, all others 1" in lines[0]
    assert "nothing queued" in lines[-1]
