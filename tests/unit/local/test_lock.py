"""The lock file: what it says is all there, or it is refused whole."""

import re

import pytest

from streams.errors import ConfigError
from streams.local import lock

GOOD = """
[kafka]
version = "4.2.0"
[[dependencies]]
groupId = "org.example"
artifactId = "thing"
version = "1.0"
sha256 = "{sha256}"
"""
SHA256 = "0" * 64


def test_the_shipped_lock_is_complete() -> None:
    shipped = lock.load()
    assert shipped.version == "4.2.0"
    assert len(shipped.jars) == 46
    kafka = {str(jar) for jar in shipped.jars if jar.group == "org.apache.kafka"}
    assert "org.apache.kafka:kafka_2.13:4.2.0" in kafka
    assert {jar.rpartition(":")[2] for jar in kafka} == {"4.2.0"}


def test_the_shipped_lock_names_no_host() -> None:
    assert not re.search(r"://|\.(org|com)/", lock.LOCK_FILE.read_text(encoding="utf-8"))


def test_the_folder_depends_on_every_checksum() -> None:
    one = lock.parse(GOOD.format(sha256=SHA256))
    other = lock.parse(GOOD.format(sha256="0" * 63 + "1"))
    assert one.folder.startswith("kafka-4.2.0-")
    assert one.folder != other.folder


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[[", "not a lock file"),
        ('[kafka]\nversion = "4.2.0"', "needs"),
        (GOOD.format(sha256=""), "sha256"),
        (GOOD.format(sha256="0" * 63), "64 lower-case hex"),
        (GOOD.format(sha256="G" * 64), "64 lower-case hex"),
        (GOOD.format(sha256=SHA256).replace('artifactId = "thing"', ""), "artifactId"),
        (GOOD.format(sha256=SHA256).replace('"thing"', '"../../thing"'), "artifactId"),
        (GOOD.format(sha256=SHA256).replace('"1.0"', "1"), "version"),
        (GOOD.format(sha256=SHA256) + GOOD.format(sha256=SHA256).partition("4.2.0")[2][2:], "same file name"),
    ],
)
def test_an_incomplete_lock_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        lock.parse(text)
