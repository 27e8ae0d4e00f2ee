"""What is read of the input topics, whoever has fetched it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Source(StrEnum):
    """The input topics, without prefix, in the order in which a step applies them."""

    COMPLETIONS = "completions"
    REQUESTS = "requests"


class InputRecord(Protocol):
    """What is read of a consumed record, as aiokafka shapes it."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


class InputBatch(Protocol):
    """Records of one input topic, of one partition, in order of offset."""

    @property
    def source(self) -> Source: ...
    @property
    def records(self) -> Sequence[InputRecord]: ...
