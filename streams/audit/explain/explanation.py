"""Explain a run: find it, replay its shard, watch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streams.audit.checkpoints import Checkpoint, latest_before, prove
from streams.audit.explain.life import Answer, Life, Moment
from streams.audit.explain.requests import Asked, Tell, find, silent
from streams.audit.explain.stamps import Stamps
from streams.audit.explain.watching import Watcher
from streams.audit.recording import Recording
from streams.audit.replay import Divergence, ShardReplay
from streams.errors import ConfigError

_TELL_EVERY: Final = 100  # steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A run, all requests for it, and how far the record tells of it."""

    tenant: str
    run_id: str
    shard: int
    answers: tuple[Answer, ...]  # to its requests in order of offset, at least one
    chosen: Answer  # the one that is explained
    last: Moment | None  # the last step that was replayed; None: the journal is empty
    divergence: Divergence | None  # where the record can't be followed any further

    @property
    def life(self) -> Life | None:
        """What is explained, if the request was accepted."""
        return self.chosen.life


def explain(
    recording: Recording,
    run_id: str,
    *,
    tenant: str | None = None,
    offset: int | None = None,
    since_ms: int | None = None,
    tell: Tell = silent,
) -> Explanation:
    """Return why a run waited, and what became of it.

    A run may have been asked for more than once. What is explained is the request at `offset`; if none is named, the
    last one that was accepted, else the last one. With `since_ms` they are looked for from the last checkpoint before
    that time on.

    Raises:
        ConfigError: there is no such run or request in the record, or several tenants have one.
        NotReplayable: the record does not reach back to it, or another version of the core has decided it.
        CheckpointWrong: the checkpoint before it is not what was written.
    """
    asked = find(recording, run_id, tenant, since_ms=since_ms, tell=tell)
    if offset is not None and offset not in {each.offset for each in asked}:
        offsets = ", ".join(str(each.offset) for each in asked)
        raise ConfigError(
            f"no request for this run stands there; its requests: {offsets}", field="--offset", value=offset
        )
    shard = asked[0].shard
    watcher = Watcher(asked, Stamps(recording, shard))
    replay = ShardReplay(recording, shard, _start(recording, asked[0]))
    problem = _watch(replay, watcher, recording.bounds("journal", shard), tell)
    return Explanation(
        tenant=asked[0].submit.tenant,
        run_id=run_id,
        shard=shard,
        answers=tuple(watcher.answers),
        chosen=_chosen(watcher.answers, offset),
        last=watcher.last,
        divergence=problem or replay.divergence,
    )


def _watch(replay: ShardReplay, watcher: Watcher, journal: tuple[int, int], tell: Tell) -> Divergence | None:
    """Show the steps to the watcher until it has seen enough. Return what is wrong with the step that ended it."""
    first, end = journal
    core = problem = None
    for number, step in enumerate(replay):
        if step.problems:
            core, problem = None, step.problems[0]
            break
        watcher.see(step)
        core = step.core
        if number % _TELL_EVERY == 0:
            tell("journal", replay.offset - first, end - first)
        if watcher.done:
            break
    watcher.finish(core)
    return problem


def _chosen(answers: list[Answer], offset: int | None) -> Answer:
    if offset is not None:
        return next(answer for answer in answers if answer.asked.offset == offset)
    accepted = [answer for answer in answers if answer.life is not None]
    return accepted[-1] if accepted else answers[-1]


def _start(recording: Recording, asked: Asked) -> Checkpoint | None:
    """Return the last checkpoint before the first request came and was taken in; None: there is none."""
    at_ms = asked.at_ms or None  # of unknown time: from the last one on backwards
    while (found := latest_before(recording, asked.shard, at_ms=at_ms)) is not None:
        applied = found.positions.applied if found.positions is not None else {}
        if applied.get("requests", -1) < asked.offset:
            prove(recording, found)
            return found
        at_ms = found.now_ms - 1  # the producer's clock was ahead of the scheduler's
    return None
