"""How far off estimates are: a sketch of actual / estimate, a histogram of a few dozen counters.

The ratio is rounded to a grid of four values an octave: 1, 5/4, 3/2, 7/4, 2, 5/2, 3, ... and the same below one. What
is read from it is within a ninth of what was put in, from 1/1024 to 1024, and an exact estimate is counted as exact.
Such log-linear buckets are those of HdrHistogram (G. Tene); that relative error is the one to bound is the point of
DDSketch (C. Masson, J. E. Rim, H. K. Lee, PVLDB 12(12), 2019). Sketches are merged by adding their counts.

A bucket is a number: 4 x octave + quarter; 0 is a ratio of one, -4 a half, 4 two. Integers only.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MILLION: Final = 1_000_000
OCTAVES: Final = 10
LOWEST: Final = -4 * OCTAVES  # a ratio of 1/1024, or less
HIGHEST: Final = 4 * OCTAVES  # of 1024, or more
_DIGITS: Final = OCTAVES + 2  # binary digits after the point: the grid's values in the lowest octave need as many
_GRID: Final = [(4 + bucket % 4) << (bucket // 4 + OCTAVES) for bucket in range(LOWEST, HIGHEST + 1)]
_EDGES: Final = [low + high for low, high in pairwise(_GRID)]  # half-way between, with one digit more


def bucket_of(actual: int, estimate: int) -> int:
    """Return the bucket of actual / estimate, both in tokens; actual >= 0, estimate > 0."""
    return LOWEST + bisect_right(_EDGES, (actual << (_DIGITS + 1)) // estimate)


def ratio_ppm(bucket: int) -> int:
    """Return the ratio that a bucket stands for, in parts per million."""
    return MILLION * _GRID[bucket - LOWEST] >> _DIGITS


def error_ppm(bucket: int) -> int:
    """Return |actual - estimate| / estimate of a bucket, in parts per million: 0 is right, 3,000,000 is 4 x dearer."""
    return abs(ratio_ppm(bucket) - MILLION)


def error_quantile(counts: Mapping[int, int], percent: int) -> int:
    """Return the error, in parts per million of the estimate, that `percent` of the runs counted stay within.

    `counts`: bucket -> runs, at least one of them. 0 < percent <= 100.
    """
    needed = -(-sum(counts.values()) * percent // 100)
    errors = sorted((error_ppm(bucket), count) for bucket, count in counts.items())
    for error, count in errors:
        needed -= count
        if needed <= 0:
            return error
    raise ValueError("an empty sketch has no quantiles")


def halved(counts: Mapping[int, int]) -> dict[int, int]:
    """Return half of each count, without zeros: what is old fades.

    Halves are rounded along the running sum, so that many buckets of one run each lose half of their runs and not
    all of them: a quantile moves by one run at most.
    """
    half: dict[int, int] = {}
    before = 0
    for bucket in sorted(counts):
        after = before + counts[bucket]
        kept = after // 2 - before // 2
        if kept:
            half[bucket] = kept
        before = after
    return half
