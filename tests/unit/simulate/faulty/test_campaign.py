"""Many seeds: what is told of them, and that what is found wrong is told with its seed."""

import io

import orjson
from rich.console import Console

from streams.app.in_memory import load
from streams.simulate.faulty import campaign
from streams.simulate.faulty.campaign import Campaign
from streams.simulate.faulty.chances import KINDS
from streams.simulate.faulty.world import Outcome, Setting

SETTING = Setting(shards=2, processes=2, tenants=3, ticks=10)
WRONG = Outcome(17, 5, 3, 2, {KINDS[0]: 1}, {}, 250_000, "shard 1, step 5: [bold]something[/bold] is wrong")
RIGHT = WRONG._replace(seed=18, problem=None, widest_gap_ppm=500_000)


def shown(found: Campaign) -> str:
    out = io.StringIO()
    campaign.show(found, Console(file=out, width=100))
    return out.getvalue()


def test_each_seed_has_its_outcome() -> None:
    told: list[int] = []
    found = campaign.run(range(5, 8), load, SETTING, told.append)
    assert [each.seed for each in found.outcomes] == [5, 6, 7]
    assert told == [1, 2, 3]
    assert found.unsound == []
    assert "3 deployments of 2 shards" in shown(found)
    assert "Everything held after every step." in shown(found)


def test_what_is_wrong_is_told_with_its_seed() -> None:
    found = Campaign(SETTING, [RIGHT, WRONG])
    assert found.unsound == [WRONG]
    assert "seed 17: shard 1, step 5: [bold]something[/bold] is wrong" in shown(found)
    assert "Everything held" not in shown(found)
    assert "widest gap 50% of its bound" in shown(found)


def test_the_table_fits() -> None:
    assert max(map(len, shown(Campaign(SETTING, [RIGHT])).splitlines())) <= 100


def test_programs_are_told_all_of_it() -> None:
    document = orjson.loads(orjson.dumps(campaign.document(Campaign(SETTING, [RIGHT, WRONG]))))
    assert document["sound"] is False
    assert document["shards"] == 2
    assert document["fired"].keys() == {*KINDS}
    assert document["fired"][KINDS[0]] == 2
    assert [each["problem"] for each in document["outcomes"]] == [None, WRONG.problem]
