from collections import Counter

import pytest

from streams.core.policy_check import parse_policy, policy_document
from streams.demo.claims import judge
from streams.demo.measure import measure
from streams.demo.options import DemoOptions
from streams.demo.story import make_stories
from streams.errors import ConfigError
from streams.simulate.scenarios.catalogue import SEED
from streams.simulate.scenarios.meridian import meridian
from streams.simulate.scenarios.recorded import arena
from streams.simulate.story import Story
from tests.unit.demo.recorded import BEGIN_MS, accounts, record


def test_the_first_story_is_the_one_that_the_readme_tells() -> None:
    story = meridian(SEED)
    runs = Counter(arrival.tenant for arrival in story.arrivals)
    assert len(runs) == 11
    assert runs["meridian"] == 900
    assert max(arrival.at_ms for arrival in story.arrivals) * story.compression <= 20 * 60_000
    costs = [arrival.tokens for arrival in story.arrivals]
    assert 40 < max(costs) / min(costs) <= 50
    assert set(story.small) == set(runs) - {"meridian", "borealis"}
    assert len(set(story.weights.values())) > 1


def test_the_second_story_is_the_whole_trace() -> None:
    story = arena()
    assert len(story.arrivals) == 1_500
    assert len(story.tenants) == 27
    assert set(story.weights.values()) == {1}


@pytest.mark.parametrize("story", make_stories("both", None), ids=lambda story: story.name)
def test_its_policy_is_one_that_could_be_applied(story: Story) -> None:
    assert parse_policy(policy_document(story.policy)) == story.policy
    assert story.policy.window.runs == story.slots


@pytest.mark.parametrize("handover_ms", [10, 60])
@pytest.mark.parametrize("story", make_stories("both", None), ids=lambda story: story.name)
def test_every_claim_holds_in_simulation(story: Story, handover_ms: int) -> None:
    records = record(story, handover_ms=handover_ms)
    figures = measure(story, records, accounts(story, records), BEGIN_MS)
    assert [(claim.name, claim.evidence) for claim in judge(figures) if not claim.holds] == []


def test_another_seed_is_another_story() -> None:
    assert meridian(1).arrivals != meridian(2).arrivals
    assert meridian(1).arrivals == meridian(1).arrivals


def test_stories_can_be_chosen() -> None:
    assert [story.name for story in make_stories("both", None)] == ["meridian", "trace"]
    assert [story.name for story in make_stories("trace", 7)] == ["trace"]
    assert make_stories("meridian", 7)[0].arrivals == meridian(7).arrivals


def test_a_story_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="story"):
        DemoOptions(story="other")  # type: ignore[arg-type] # as a program might
