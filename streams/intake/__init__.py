"""From the records of the input topics to inputs of the core: what is applied, set aside, forwarded or refused. Pure.

The runtime and the audit read by this same code, so that whoever replays a step gives the core what it was given.
"""

from streams.intake.reading import (
    ASTRAY,
    FORWARDED_ON,
    SKIPPED,
    UNREADABLE,
    Forward,
    Intake,
    Limits,
    Reader,
    Unreadable,
)
from streams.intake.records import InputBatch, InputRecord, Source

__all__ = [
    "ASTRAY",
    "FORWARDED_ON",
    "SKIPPED",
    "UNREADABLE",
    "Forward",
    "InputBatch",
    "InputRecord",
    "Intake",
    "Limits",
    "Reader",
    "Source",
    "Unreadable",
]
