"""Submits a file of runs: every line that can be submitted is, and every other is reported with its number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from streams import clock
from streams.client.publisher import Publisher
from streams.client.run_files import Line
from streams.errors import BadRecord


class Submitted(NamedTuple):
    """What became of a file."""

    filed: int
    bad: int


def submit_lines(
    publisher: Publisher,
    lines: Iterable[Line],
    *,
    bad_line: Callable[[int, BadRecord], None],
    progress: Callable[[], None] = lambda: None,
    rate: float | None = None,
) -> Submitted:
    """Submit each line, at most `rate` a second, and wait until all are in Kafka.

    `bad_line` gets the number and the problem of each line that is no run; `progress` is called after every line.
    Raises `Unavailable` and `NotDelivered` as `Publisher` does. Lines already sent stay sent.
    """
    begin, filed, bad = clock.monotonic(), 0, 0
    for line in lines:
        try:
            if line.problem is not None:
                raise line.problem
            publisher.submit_message(line.fields)
        except BadRecord as problem:
            bad += 1
            bad_line(line.number, problem)
        else:
            filed += 1
            if rate is not None:
                _wait(publisher, until_s=begin + filed / rate)
        progress()
    publisher.flush()
    return Submitted(filed, bad)


def _wait(publisher: Publisher, *, until_s: float) -> None:
    while (left := until_s - clock.monotonic()) > 0:
        publisher.poll(left)
