"""Find a run among the recorded requests: on which shard it was decided, and where its records stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import orjson

from streams.audit.checkpoints import latest_before
from streams.audit.recording import Rec, Recording
from streams.core.inputs import Cancel, Submit
from streams.errors import BadRecord, ConfigError, visible
from streams.wire import FORWARDED, decode_journal, decode_request, partition_for

Tell = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how much

_REQUESTS: Final = "requests"
_TELL_EVERY: Final = 10_000  # offsets
_ESCAPE: Final = b"\\"  # a producer may write any letter of a name by its number


class Asked(NamedTuple):
    """A request for the run, on the shard of its tenant."""

    shard: int
    offset: int
    at_ms: int  # the record's time; 0: unknown
    submit: Submit
    via: str | None  # `topic:partition:offset` where it stood first, if it was forwarded


def silent(_what: str, _done: int, _of: int) -> None:
    """Tell nobody."""


def find(
    recording: Recording, run_id: str, tenant: str | None = None, *, since_ms: int | None = None, tell: Tell = silent
) -> list[Asked]:
    """Return the requests for a run in order of offset, at least one; duplicates are among them.

    Reads the requests of the tenant's shard, or of all shards if no tenant is named; with `since_ms` without those that
    the last checkpoint before that time has behind it.

    Raises:
        ConfigError: there is none (any more), or more than one tenant has a run of this name.
    """
    shards = range(recording.shards) if tenant is None else [partition_for(tenant, recording.shards)]
    found, unreadable = [], []
    for shard in shards:
        for record in _naming(recording, shard, run_id, since_ms, tell):
            try:
                given = _decode(record)
            except BadRecord as error:
                unreadable.append(f"{_REQUESTS}/{shard} offset {record.offset}: {error}")
                continue
            named = given.run_id == run_id and tenant in {None, given.tenant}
            if named and isinstance(given, Submit) and partition_for(given.tenant, recording.shards) == shard:
                found.append(Asked(shard, record.offset, given.submitted_ms, given, _origin(record)))
    tenants = sorted({asked.submit.tenant for asked in found})
    if len(tenants) > 1:
        names = ", ".join(map(visible, tenants))
        raise ConfigError(f"several tenants have a run of this name: {names}; say whose", field="--tenant")
    if not found:
        raise _unknown(recording, run_id, tenant, unreadable)
    return found


def _naming(recording: Recording, shard: int, run_id: str, since_ms: int | None, tell: Tell) -> Iterator[Rec]:
    """Yield the records that may name the run: reading all of them as JSON would cost ten times as much."""
    needle = orjson.dumps(run_id)[1:-1]
    start = _start(recording, shard, since_ms)
    first, end = recording.bounds(_REQUESTS, shard)
    whole = end - max(start, first)
    told = start
    for record in recording.read(_REQUESTS, shard, start):
        if record.offset - told >= _TELL_EVERY:
            told = record.offset
            tell(f"{_REQUESTS}/{shard}", whole - (end - told), whole)
        value = record.value or b""
        if needle in value or _ESCAPE in value:
            yield record
    tell(f"{_REQUESTS}/{shard}", whole, whole)


def _start(recording: Recording, shard: int, since_ms: int | None) -> int:
    """Return the first offset that a checkpoint before that time does not know yet; 0: there is none."""
    found = latest_before(recording, shard, at_ms=since_ms) if since_ms is not None else None
    positions = found.positions if found is not None else None
    return positions.applied.get(_REQUESTS, -1) + 1 if positions is not None else 0


def _decode(record: Rec) -> Submit | Cancel:
    if not record.readable:
        raise BadRecord("no client can read them", field="headers")
    return decode_request(record.key, record.value, record.offset, record.timestamp)


def _origin(record: Rec) -> str | None:
    return next((value.decode(errors="replace") for name, value in record.headers if name == FORWARDED), None)


def _unknown(recording: Recording, run_id: str, tenant: str | None, unreadable: list[str]) -> ConfigError:
    """Say what is known of a run without a request. It may be older than what is kept, or have been moved here."""
    shards = range(recording.shards) if tenant is None else [partition_for(tenant, recording.shards)]
    cut = [shard for shard in shards if recording.bounds(_REQUESTS, shard)[0] or not _from_the_first(recording, shard)]
    if unreadable:
        message = f"a request that names it could not be read, and was refused: {unreadable[0]}"
    else:
        message = "no request of such a run is recorded" + ("" if tenant is None else f" of tenant {visible(tenant)}")
        message += "".join(f"; {told}" for shard in cut for told in _left(recording, shard, run_id, tenant))
    return ConfigError(message, field="RUN_ID", value=run_id)


def _from_the_first(recording: Recording, shard: int) -> bool:
    """Tell whether the journal begins with the first step; else the deployment has moved, or its records are gone."""
    record = next(iter(recording.read("journal", shard)), None)
    return record is None or decode_journal(record.value).step == 1


def _left(recording: Recording, shard: int, run_id: str, tenant: str | None) -> Iterator[str]:
    """Yield what is left of a run in a shard whose earlier requests are not there (any more)."""
    first, _ = recording.bounds(_REQUESTS, shard)
    yield f"of shard {shard} the record begins with offset {first}: what was before has been deleted, or moved here"
    needle = orjson.dumps(run_id)
    for record in recording.read("journal", shard):
        if needle not in (record.value or b""):
            continue
        entry = decode_journal(record.value)
        for decision in entry.decisions:
            if decision.run_id == run_id and tenant in {None, decision.tenant}:
                yield f"the journal tells of its attempt {decision.attempt}, dispatched in step {entry.step} there"
                return
