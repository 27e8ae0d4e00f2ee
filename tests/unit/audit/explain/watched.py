"""A shard driven by hand and watched as a replay of it would be: for tests that choose every millisecond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streams.audit.explain.explanation import Explanation
from streams.audit.explain.life import Answer, Life
from streams.audit.explain.requests import Asked
from streams.audit.explain.watching import Watcher
from streams.audit.replay import ReplayedStep
from streams.core.effects import Dispatch, Effects, Rejection
from streams.core.inputs import Completion, Input, SetPolicy, Submit, Takeover
from streams.core.policy import Policy
from streams.core.shard import Shard
from streams.wire import AppliedPolicy, JournalEntry
from tests.builders import make_report, make_submit
from tests.drivers import START_MS

SHARD = 0


class Watched:
    """Steps of one shard, at times that the test says, and a run that is asked for in one of them."""

    def __init__(self, policy: Policy, *, tenant: str = "a", run_id: str = "r") -> None:
        self.core = Shard(SHARD, 1)
        self._steps: list[tuple[JournalEntry, Sequence[Input]]] = []
        self._refused: dict[int, Sequence[Rejection]] = {}
        self.dispatches: list[Dispatch] = []
        self.asked: list[Asked] = []
        self.stamps: dict[int, int] = {}
        self.now_ms = START_MS
        self._run = tenant, run_id
        self._position = 0
        self.step(Takeover(1))
        self.state_policy(policy)

    def state_policy(self, policy: Policy, after_ms: int = 0) -> Effects:
        position = self.next_position()
        applied = AppliedPolicy(position, "an operator", self.now_ms, policy)
        return self.step(SetPolicy(position, policy), after_ms=after_ms, policies=(applied,))

    def step(
        self,
        *inputs: Input,
        after_ms: int = 0,
        policies: Sequence[AppliedPolicy] = (),
        refused: Sequence[Rejection] = (),
    ) -> Effects:
        """Let time pass and take a step; `refused` are runs that the intake lets no further."""
        self.now_ms += after_ms
        effects = self.core.step(inputs, self.now_ms)
        entry = JournalEntry(
            shard=SHARD,
            step=effects.step,
            epoch=self.core.epoch,
            takeover=any(isinstance(given, Takeover) for given in inputs),
            now_ms=effects.now_ms,
            policy_version=self.core.policy_version,
            inputs=(),
            decisions=(),
            revokes=(),
            settlements=(),
            rejections=(),
            counts={},
            policies=tuple(policies),
        )
        self.dispatches += effects.dispatches
        self._steps.append((entry, inputs))
        self._refused[entry.step] = refused
        return effects

    def submit(
        self, tenant: str, *run_ids: str, after_ms: int = 0, sent_ms: int | None = None, **fields: Any
    ) -> Effects:
        """Ask for runs. `sent_ms` before now is when the records were written."""
        self.now_ms += after_ms
        at_ms = self.now_ms - (sent_ms or 0)
        given = [
            make_submit(tenant, run_id, position=self.next_position(), submitted_ms=at_ms, **fields)
            for run_id in run_ids
        ]
        for submit in given:
            if (submit.tenant, submit.run_id) == self._run:
                self.ask(submit)
        return self.step(*given)

    def ask(self, submit: Submit) -> None:
        """Note a request for our run, as `requests.find` does. Its step is another matter."""
        self.asked.append(Asked(SHARD, submit.position, submit.submitted_ms, submit, None))

    def report(self, status: str, *, attempt: int = 1, told_ms: int = 0, after_ms: int = 0, **fields: Any) -> Effects:
        """Let a worker report on our run, `told_ms` before the step that takes it in."""
        dispatch = self.attempt(attempt)
        self.now_ms += after_ms
        completion: Completion = make_report(dispatch, status, **fields)
        completion.position = self.next_position()
        self.stamps[completion.position] = self.now_ms - told_ms
        return self.step(completion)

    def finish(self, dispatch: Dispatch, after_ms: int = 0) -> Effects:
        """Let another run succeed, at its estimate."""
        return self.step(make_report(dispatch, tokens=dispatch.estimate), after_ms=after_ms)

    def next_position(self) -> int:
        self._position += 1
        return self._position

    def attempt(self, number: int) -> Dispatch:
        (found,) = [
            each for each in self.dispatches if (each.tenant, each.run_id, each.attempt) == (*self._run, number)
        ]
        return found

    def watched(self) -> Watcher:
        """Return one that has been shown all steps, by a core of its own."""
        watcher = Watcher(self.asked, self.stamps.get)
        core = Shard(SHARD, 1)
        for entry, inputs in self._steps:
            effects = core.step(inputs, entry.now_ms)
            effects.rejections += self._refused[entry.step]
            watcher.see(ReplayedStep(entry, inputs, effects, core, ()))
        watcher.finish(core)
        return watcher

    def answers(self) -> list[Answer]:
        return self.watched().answers

    def life(self) -> Life:
        """Return the last life, as it is told when the record ends now."""
        (*_, answer) = self.answers()
        assert answer.life is not None
        return answer.life

    def explained(self) -> Explanation:
        watcher = self.watched()
        return Explanation(
            tenant=self._run[0],
            run_id=self._run[1],
            shard=SHARD,
            answers=tuple(watcher.answers),
            chosen=watcher.answers[-1],
            last=watcher.last,
            divergence=None,
        )
