"""What the demo may be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from streams.errors import ConfigError

StoryName = Literal["both", "meridian", "trace"]

_STORIES: Final = ("both", "meridian", "trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """How to play the demo. Raises `ConfigError` for a story that does not exist, and for an export onto something."""

    kafka: str | None = None  # host:port; None: a local Kafka for as long as the demo lasts
    kafka_config: Path | None = None  # librdkafka properties, for a Kafka that wants to know who comes
    story: StoryName = "both"
    seed: int | None = None  # of the first story's arrivals and costs; None: the one the README shows
    export: Path | None = None  # a directory that keeps each story's topics, for `fairstream audit`
    json: bool = False

    def __post_init__(self) -> None:
        if self.story not in _STORIES:
            raise ConfigError(f"must be one of {', '.join(_STORIES)}", field="story", value=self.story)
        if self.export is not None and self.export.exists() and (self.export.is_file() or any(self.export.iterdir())):
            raise ConfigError(
                "is not empty; name a directory that is not there yet", field="export", value=str(self.export)
            )
