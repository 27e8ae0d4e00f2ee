"""Books kept beside a shard from its inputs and effects alone: what a reader of the topics could prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from streams.core import counts, reasons
from streams.core.effects import Dispatch, Effects, Settlement
from streams.core.inputs import Input, Submit

AFTER_ADMISSION = (reasons.EXPIRED, reasons.DEAD_LETTERED)

Identity = tuple[str, str]


@dataclass
class Attempt:
    """One dispatch, with what became of it."""

    dispatch: Dispatch
    settlements: list[Settlement] = field(default_factory=list)


@dataclass
class Books:
    """Entries, and the arithmetic that must hold over them after every step."""

    seq: int = 0
    now_ms: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    requests: dict[Identity, Submit] = field(default_factory=dict)  # the last one accepted under an identity
    attempts: dict[Identity, list[Attempt]] = field(default_factory=dict)  # of the last one accepted
    closed: int = 0  # tokens spent by runs whose identity has been used again

    def enter(self, inputs: Iterable[Input], effects: Effects) -> None:
        """Book one step, and refuse what can't be."""
        assert effects.now_ms >= self.now_ms, "time went back"
        self.now_ms = effects.now_ms
        self.counts += effects.counts
        refused = {each.position for each in effects.rejections if each.reason not in AFTER_ADMISSION}
        for settlement in effects.settlements:  # of attempts of earlier steps: dispatching comes last
            self._settle(settlement)
        # A run that is rejected as undeliverable was accepted earlier: its request is not among these inputs.
        for given in inputs:
            if isinstance(given, Submit) and given.position not in refused:
                self._accept(given)
        self._sequence(effects)
        for dispatch in effects.dispatches:
            self._dispatch(dispatch)

    @property
    def open_runs(self) -> int:
        """Return how many accepted runs have not ended, by the counters."""
        return self.counts[counts.ACCEPTED] - sum(self.counts[end] for end in counts.ENDS)

    @property
    def spent(self) -> int:
        """Return the tokens of all closed accounts."""
        return self.closed + sum(_spent(attempts) for attempts in self.attempts.values())

    @property
    def open_attempts(self) -> list[Dispatch]:
        attempts = (attempt for each in self.attempts.values() for attempt in each)
        return [attempt.dispatch for attempt in attempts if not attempt.settlements]

    def _accept(self, request: Submit) -> None:
        identity = (request.tenant, request.run_id)
        before = self.attempts.get(identity, [])
        assert all(attempt.settlements for attempt in before), f"{identity}: taken again with an attempt in flight"
        self.closed += _spent(before)
        self.requests[identity] = request
        self.attempts[identity] = []

    def _sequence(self, effects: Effects) -> None:
        for seq in sorted([each.seq for each in effects.dispatches] + [each.seq for each in effects.revokes]):
            self.seq += 1
            assert seq == self.seq, "the sequence has a gap"

    def _dispatch(self, dispatch: Dispatch) -> None:
        identity = (dispatch.tenant, dispatch.run_id)
        attempts, request = self.attempts[identity], self.requests[identity]
        attempts.append(Attempt(dispatch))
        assert dispatch.attempt == len(attempts), f"{identity}: attempt {dispatch.attempt} is not the next"
        assert dispatch.deficit_after == dispatch.deficit_before - dispatch.estimate
        assert dispatch.deficit_before >= dispatch.estimate, "served before it could pay"
        assert request.deadline_ms is None or request.deadline_ms > self.now_ms, "dispatched after its deadline"
        assert (request.not_before_ms or 0) <= self.now_ms, "dispatched before its time"

    def _settle(self, settlement: Settlement) -> None:
        attempt = self.attempts[settlement.tenant, settlement.run_id][settlement.attempt - 1]
        assert attempt.dispatch.attempt == settlement.attempt
        before = attempt.settlements
        attempt.settlements = [*before, settlement]
        if not before:
            assert settlement.estimate == attempt.dispatch.estimate
        else:
            assert [each.outcome for each in before] == ["lost"], "an account was closed twice"
            assert settlement.estimate == before[0].actual


def _spent(attempts: Iterable[Attempt]) -> int:
    return sum(attempt.settlements[-1].actual for attempt in attempts if attempt.settlements)
