"""How much of a step's records a run stands for: what bounds a step in bytes counts by it.

A step writes the payload of a run into its dispatch or its rejection, and its names into the journal as well, where all
of a step stand in one record. So a character of a name weighs more than a byte of a payload: it takes `_IN_JSON` bytes
at most, and a step that is bounded to 8 MiB by weight puts an eighth of that, 1 MiB, of names into its journal record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from streams.core.runs import Flight, Run

_IN_JSON: Final = 6  # bytes of a control character; of any other 4 at most
NAME_WEIGHT: Final = 8 * _IN_JSON


def weight_of_names(of: Run | Flight) -> int:
    """Return what the names of a run weigh in a step that only speaks of it."""
    return NAME_WEIGHT * (len(of.tenant) + len(of.run_id) + len(of.class_))


def weight_of(run: Run) -> int:
    """Return what a run weighs in a step that writes its payload, too."""
    return len(run.body) + NAME_WEIGHT * (len(run.tenant) + len(run.run_id) + len(run.class_))  # once for each run
