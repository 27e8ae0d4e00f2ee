"""The two stories of the demo."""

from __future__ import annotations

from streams.demo.options import StoryName
from streams.simulate.scenarios.catalogue import SEED
from streams.simulate.scenarios.meridian import meridian
from streams.simulate.scenarios.recorded import arena
from streams.simulate.story import Story


def make_stories(which: StoryName, seed: int | None) -> list[Story]:
    """Return the stories to be played, in order."""
    stories = []
    if which in ("both", "meridian"):
        stories.append(meridian(SEED if seed is None else seed))
    if which in ("both", "trace"):
        stories.append(arena())
    return stories
