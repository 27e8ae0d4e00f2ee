"""All errors of fairstream: one root, named by what the caller must do.

The first line of a class's docstring is its message when none is given, so the sentence that a
person reads when it is raised and the one that a programmer reads here are the same. Errors of
other libraries are turned into these at the edge that called them. All of them survive pickling
with their data, since some cross a process boundary.
"""

from pathlib import Path
from typing import ClassVar, Self


class FairstreamError(Exception):
    """fairstream failed; see the cause, and report it if no message says what to do."""

    # What a command exits with when it ends by this error.
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str | None = None) -> None:
        doc = type(self).__doc__ or FairstreamError.__doc__ or ""
        super().__init__(message or doc.partition("\n")[0])

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own form calls the class with `args`, which loses keyword-only data.
        return _rebuild, (type(self), self.args, self.__dict__)

    @classmethod
    def _blank(cls, args: tuple[object, ...]) -> Self:
        return cls.__new__(cls, *args)


def _rebuild(cls: type[FairstreamError], args: tuple[object, ...], data: dict[str, object]) -> FairstreamError:
    error = cls._blank(args)
    error.__dict__.update(data)
    return error


# --- fix something, then try again


class ConfigError(FairstreamError):
    """The configuration is wrong; correct the named field and start again."""

    exit_code: ClassVar[int] = 2

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        value: object = None,
        source: str | None = None,
    ) -> None:
        """`source` says where the field stands: a file with its line, or an environment name."""
        super().__init__(message)
        self.field = field
        self.value = value
        self.source = source

    def __str__(self) -> str:
        where = ": ".join(visible(part) for part in (self.source, self.field) if part)
        got = "" if self.value is None else f" (got {shown(self.value)})"
        return f"{where}: {self.args[0]}{got}" if where else f"{self.args[0]}{got}"


class DeploymentMoved(ConfigError):
    """This deployment has moved to other topics; start with their prefix."""


class NotAuthorized(ConfigError):
    """Kafka does not let this user do that; check the credentials, and grant the right that is missing."""


class NotInstalled(FairstreamError):
    """Something that this command needs is not installed; install what the message names."""

    exit_code: ClassVar[int] = 2


class Untrusted(FairstreamError):
    """A downloaded file is not the one that was locked; nothing was run, and it was removed."""


# --- wait, then try again


class Unavailable(FairstreamError):
    """Kafka or the registry does not answer; check its address, or try again later."""

    exit_code: ClassVar[int] = 75  # EX_TEMPFAIL: a supervisor may retry


class NotDelivered(FairstreamError):
    """Kafka did not take some records; send them again (a run_id that did arrive is refused as a duplicate)."""

    def __init__(self, message: str | None = None, *, failed: int, first: FairstreamError | None = None) -> None:
        """`failed` is how many records; `first` says what became of the first of them, None if nothing is known."""
        super().__init__(message)
        self.failed = failed
        self.first = first


class StepAborted(FairstreamError):
    """Nothing of the step was written; load the shard again and repeat the step."""


class StartFailed(FairstreamError):
    """A local process did not start; the end of its log says why."""

    def __init__(self, message: str | None = None, *, log: Path | None = None) -> None:
        super().__init__(message)
        self.log = log


# --- give something up


class OwnershipLost(FairstreamError):
    """Another scheduler owns this shard now; stop writing, drop its memory, and rejoin."""


class BatchUnreadable(FairstreamError):
    """Kafka's client cannot unpack a batch of records; nothing behind it is read unless one begins there."""

    def __init__(self, message: str | None = None, *, offset: int) -> None:
        """`offset` is that of its first record."""
        super().__init__(message)
        self.offset = offset


class StateUnreadable(FairstreamError):
    """The saved state of this shard cannot be read; do not serve it until it is repaired."""


class CheckpointWrong(FairstreamError):
    """A checkpoint is not what was written; replay from an earlier one, and find out who changed it."""


# --- look for another source of what was recorded


class NotReplayable(FairstreamError):
    """What was recorded does not hold all that a replay needs; begin from a checkpoint, or ask who deleted it."""

    exit_code: ClassVar[int] = 2


class ExportDamaged(FairstreamError):
    """An exported file is not what its manifest says; fetch it again from where it was made."""


# --- refuse something, and go on


class BadRecord(FairstreamError):
    """A record cannot be used; send it to the rejected topic with the reason, and go on."""

    def __init__(self, message: str | None = None, *, field: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value

    def __str__(self) -> str:
        got = "" if self.value is None else f" (got {shown(self.value)})"
        # Even the sentence may quote what somebody sent.
        return visible(f"{self.field}: {self.args[0]}" if self.field else str(self.args[0])) + got


# --- what messages are made of


def shown(value: object, limit: int = 80) -> str:
    """A value as a message shows it: on one line, of at most `limit` characters, whatever it is."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end; an integer of more digits than Python prints
        return f"a value of type {type(value).__name__} that is too large to show"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def visible(text: str) -> str:
    """A text that others chose (the name of a tenant, a run, a class) as it may stand in a line: all of it is seen.

    What a terminal would obey or hide (controls, line ends, marks that turn the direction of writing, NUL, half a
    surrogate pair) stands as Python's escape of it. What is visible already stays as it is.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def in_lines(text: str) -> str:
    """The same of a text that may have several lines, as a list of problems has."""
    return "\n".join(visible(line) for line in text.split("\n"))
