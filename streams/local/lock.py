"""The lock file: which jars make up Kafka, and the SHA-256 of each. Pure."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streams.errors import ConfigError

LOCK_FILE: Final = Path(__file__).with_name("kafka.lock.toml")
_SHA256_HEX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One locked artifact."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """All jars of one Kafka version."""

    version: str
    jars: tuple[Jar, ...]

    @property
    def folder(self) -> str:
        """The name of the cache folder: another lock never finds this one's jars."""
        digest = hashlib.sha256("".join(f"{jar}={jar.sha256}\n" for jar in self.jars).encode())
        return f"kafka-{self.version}-{digest.hexdigest()[:12]}"


def load(path: Path = LOCK_FILE) -> Lock:
    """Read a lock file; refuse it whole if any entry lacks a field or a checksum."""
    return parse(path.read_text(encoding="utf-8"), source=path.name)


def parse(text: str, *, source: str = "lock") -> Lock:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not a lock file: {error}", source=source) from error
    version = data.get("kafka", {}).get("version")
    entries = data.get("dependencies", [])
    if not isinstance(version, str) or not entries:
        raise ConfigError("a lock file needs [kafka] version and [[dependencies]]", source=source)
    jars = tuple(_jar(entry, f"{source}, dependency {n}") for n, entry in enumerate(entries, 1))
    names = {jar.filename for jar in jars}
    if len(names) != len(jars):
        raise ConfigError("two dependencies have the same file name", source=source)
    return Lock(version=version, jars=jars)


def _jar(entry: Mapping[str, object], source: str) -> Jar:
    def text(field: str) -> str:
        value = entry.get(field)
        if not isinstance(value, str) or not value or "/" in value or value.startswith("."):
            raise ConfigError("must be a plain, non-empty text", field=field, value=value, source=source)
        return value

    sha256 = text("sha256")
    if len(sha256) != _SHA256_HEX or not set(sha256) <= set("0123456789abcdef"):
        raise ConfigError("must be 64 lower-case hex digits", field="sha256", value=sha256, source=source)
    return Jar(group=text("groupId"), artifact=text("artifactId"), version=text("version"), sha256=sha256)
