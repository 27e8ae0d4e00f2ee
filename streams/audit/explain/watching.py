"""Follow one run through the steps of a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from streams.audit.explain import parts
from streams.audit.explain.curve import Point, Slices
from streams.audit.explain.life import CANCELLED, Answer, Attempt, Life, Moment, Outage, PolicyApplied, Report
from streams.audit.explain.meanwhile import Meanwhile
from streams.core import waiting
from streams.core.inputs import FAILED, SUCCEEDED, Completion, Submit

if TYPE_CHECKING:
    from streams.audit.explain.requests import Asked
    from streams.audit.replay import ReplayedStep
    from streams.core.inputs import Input
    from streams.core.run_view import RunView
    from streams.core.shard import Shard


class Named(Protocol):
    """What names a run."""

    @property
    def tenant(self) -> str: ...
    @property
    def run_id(self) -> str: ...


Stamp = Callable[[int], int | None]  # offset of a completion -> time of its record, ms; None: it is unknown

IN_FLIGHT: Final = ""


class Watcher:
    """To be shown the steps of a shard in order, and to be finished once."""

    def __init__(self, asked: Sequence[Asked], stamp: Stamp) -> None:
        """`asked` are the requests for one run of one tenant; `stamp` tells when a completion was written."""
        submit = asked[0].submit
        self.answers: Final = [Answer(asked=each) for each in asked]
        self.last: Moment | None = None
        self._by_offset: Final[Mapping[int, Answer]] = {each.asked.offset: each for each in self.answers}
        self._tenant: Final = submit.tenant
        self._run_id: Final = submit.run_id
        self._stamp: Final = stamp
        self._first_ms: Final = min(each.at_ms for each in asked)
        self._outages: list[Outage] = []
        self._lives: list[Life] = []
        self._open: Life | None = None
        self._part: str = IN_FLIGHT

    @property
    def done(self) -> bool:
        """Whether no later step can tell more, but of an attempt that was given up as lost and is heard of."""
        answered = all(answer.moment is not None for answer in self.answers)
        settled = all(attempt.ended is not None for life in self._lives for attempt in life.attempts)
        return answered and self._open is None and settled

    def see(self, step: ReplayedStep) -> None:
        """Take in what a step did."""
        entry = step.entry
        moment = Moment(entry.step, entry.now_ms)
        self._pass_time(moment, epoch=entry.epoch if entry.takeover else None)
        self._note_policies(step, moment)
        self._note_reports(step, moment)
        self._note_settlements(step, moment)
        view = step.core.view_run(self._tenant, self._run_id)
        self._note_end(step, moment, view)
        was_waiting = self._open is not None and self._part != IN_FLIGHT
        self._note_requests(step, moment, view)
        self._note_dispatch(step, moment, was_waiting=was_waiting)
        if self._open is not None:
            self._look(step.core, moment, view)
        self.last = moment

    def finish(self, core: Shard | None) -> None:
        """End with the record. `core` is the shard after the last step that was seen; None: it has gone on since."""
        life = self._open
        if life is None or self.last is None:
            return
        for attempt in life.attempts:
            attempt.cut(self.last.at_ms)
        if core is None:
            return
        life.ahead_at_last = core.view_ahead(self._tenant, self._run_id)
        if life.departure is None or life.state != "in_flight":
            life.departure = core.snapshot()
        view = core.view_run(self._tenant, self._run_id)
        assert view is not None, "a run that has not ended is known to its shard"
        life.curve.end(self._point(core, self.last, view))

    # --- time

    def _pass_time(self, moment: Moment, epoch: int | None) -> None:
        """Book the time since the last step; `epoch` is that of a new owner, if the step begins with one."""
        before_ms = self.last.at_ms if self.last is not None else 0
        life = self._open
        if epoch is not None and moment.at_ms > max(before_ms, self._first_ms):
            self._outages.append(Outage(before_ms, moment.at_ms, epoch))
            if life is not None:
                life.outages.append(self._outages[-1])
        if life is None:
            return
        part = parts.OUTAGE if epoch is not None else self._part
        if self._part == IN_FLIGHT:
            self._fill_flight(life, before_ms, moment.at_ms)
            return
        life.waiting[part] = life.waiting.get(part, 0) + moment.at_ms - before_ms
        life.phases.fill(before_ms, moment.at_ms, part)

    @staticmethod
    def _fill_flight(life: Life, begin_ms: int, end_ms: int) -> None:
        """For the picture: what is in flight is running once a worker has said so."""
        heard = bool(life.attempts[-1].reports)
        life.phases.fill(begin_ms, end_ms, parts.RUNNING if heard else parts.HANDOVER)

    # --- what happened

    def _note_policies(self, step: ReplayedStep, moment: Moment) -> None:
        if self._open is not None:
            self._open.policies += [
                PolicyApplied(moment, each.offset, each.policy.name, each.author) for each in step.entry.policies
            ]

    def _note_reports(self, step: ReplayedStep, moment: Moment) -> None:
        for given in step.inputs:
            if isinstance(given, Completion) and self._is_ours(given):
                attempt = self._attempt(given.attempt)
                if attempt is not None and attempt.ended is None:
                    at_ms = self._stamp(given.position)
                    earliest = attempt.reports[-1].at_ms if attempt.reports else attempt.dispatched.at_ms
                    held = moment.at_ms if at_ms is None else min(max(at_ms, earliest), moment.at_ms)
                    attempt.reports.append(Report(held, given.status, given.tokens, given.error, given.worker))

    def _note_settlements(self, step: ReplayedStep, moment: Moment) -> None:
        for settlement in step.effects.settlements:
            attempt = self._attempt(settlement.attempt) if self._is_ours(settlement) else None
            if attempt is None:
                continue
            if attempt.ended is not None:
                attempt.amended = settlement.actual
            else:
                attempt.actual, attempt.reported = settlement.actual, settlement.reported
                attempt.close(moment, settlement.outcome)

    def _note_end(self, step: ReplayedStep, moment: Moment, view: RunView | None) -> None:
        """See whether the run that is open has ended by this step."""
        life = self._open
        if life is None:
            return
        offset = life.asked.offset
        rejections = [each for each in step.effects.rejections if self._is_ours(each) and each.position == offset]
        if not rejections and view is not None and view.position == offset:
            return
        life.ended = moment
        life.seen_ms = moment.at_ms
        for revoke in step.effects.revokes:
            if self._is_ours(revoke):
                life.attempts[-1].revoked = revoke.reason
        for attempt in life.attempts:
            attempt.cut(moment.at_ms)
        if rejections:
            life.rejection = rejections[0]
            life.end = rejections[0].reason
        else:
            life.end = self._how(life, step.inputs)
        if life.departure is None:
            life.departure = step.core.snapshot()
        self._open = None

    def _how(self, life: Life, inputs: Sequence[Input]) -> str:
        """Return how a run ended that was not rejected: by a report, or its tenant has taken it back."""
        for given in inputs:
            if isinstance(given, Completion) and self._is_ours(given):
                if given.status == SUCCEEDED:
                    return SUCCEEDED
                if given.status == FAILED and not given.retryable and given.attempt == life.attempts[-1].number:
                    return FAILED
        return CANCELLED

    def _note_requests(self, step: ReplayedStep, moment: Moment, view: RunView | None) -> None:
        for given in step.inputs:
            if not isinstance(given, Submit) or not self._is_ours(given):
                continue
            answer = self._by_offset.get(given.position)
            if answer is None:
                continue
            answer.moment = moment
            refusals = [
                each for each in step.effects.rejections if self._is_ours(each) and each.position == given.position
            ]
            if refusals:
                answer.refusal = refusals[0]
            elif view is not None and view.position == given.position:
                answer.life = self._begin(step, moment, answer.asked, view)
            else:
                answer.taken_back = True
        for refused in step.effects.rejections:  # refused before the core: no input tells of it
            answer = self._by_offset.get(refused.position) if self._is_ours(refused) else None
            if answer is not None and answer.moment is None:
                answer.moment, answer.refusal = moment, refused

    def _begin(self, step: ReplayedStep, moment: Moment, asked: Asked, view: RunView) -> Life:
        arrived_ms = min(asked.at_ms, moment.at_ms) if asked.at_ms else moment.at_ms
        life = Life(
            asked=asked,
            arrived_ms=arrived_ms,
            accepted=moment,
            class_=view.class_,
            estimate=view.estimate,
            cost=step.core.view_cost(self._tenant, asked.submit.workflow, view.class_),
            rules=view.rules,
            deficit=view.deficit,
            round=view.round,
            window_runs=view.window_runs,
            window_tokens=view.window_tokens,
            arrival=step.core.snapshot(),
            ahead=step.core.view_ahead(self._tenant, self._run_id),
            meanwhile=Meanwhile(arrived_ms),
            phases=Slices(arrived_ms),
        )
        within = [Outage(max(begin, arrived_ms), end, epoch) for begin, end, epoch in self._outages if end > arrived_ms]
        away_ms = sum(outage.end_ms - outage.begin_ms for outage in within)
        life.outages += within
        life.waiting = {parts.INTAKE: moment.at_ms - arrived_ms - away_ms, parts.OUTAGE: away_ms}
        told_ms = arrived_ms
        for begin_ms, end_ms, _ in within:
            life.phases.fill(told_ms, begin_ms, parts.INTAKE)
            life.phases.fill(begin_ms, end_ms, parts.OUTAGE)
            told_ms = end_ms
        life.phases.fill(told_ms, moment.at_ms, parts.INTAKE)
        self._lives.append(life)
        self._open = life
        return life

    def _note_dispatch(self, step: ReplayedStep, moment: Moment, *, was_waiting: bool) -> None:
        """Take in the run's own dispatch, and what was dispatched before it while it waited."""
        life = self._open
        if life is None:
            return
        before, own = [], None
        for dispatch in step.effects.dispatches:
            if self._is_ours(dispatch):
                own = dispatch
                break
            before.append(dispatch)
        began = life.accepted == moment
        back = own is not None or any(self._is_ours(each) for each in step.effects.settlements)
        if was_waiting or began or back:
            life.meanwhile.count(moment.at_ms, before, step.effects.settlements if was_waiting else ())
        if own is not None:
            attempt = Attempt(
                number=own.attempt,
                dispatched=moment,
                seq=own.seq,
                round=own.round,
                estimate=own.estimate,
                deficit_before=own.deficit_before,
                waited=parts.added(life.waiting),
                waited_last=self._last_part(step, life, moment),
            )
            life.waiting = {}
            life.attempts.append(attempt)
            life.departure = step.core.snapshot()

    def _last_part(self, step: ReplayedStep, life: Life, moment: Moment) -> str:
        """Return the part of the wait that a dispatch by this step ends."""
        if step.entry.takeover and (life.accepted == moment or self._part != IN_FLIGHT):
            return parts.OUTAGE
        return parts.INTAKE if life.accepted == moment else self._part

    # --- how it stands

    def _look(self, core: Shard, moment: Moment, view: RunView | None) -> None:
        life = self._open
        assert life is not None
        assert view is not None, "a run that has not ended is known to its shard"
        life.state, life.ready_ms = view.state, view.ready_ms
        life.seen_ms = moment.at_ms
        self._part = parts.BACKOFF if view.wait == waiting.DELAYED and life.attempts else view.wait
        if life.curve.wants():
            life.curve.add(self._point(core, moment, view))

    def _point(self, core: Shard, moment: Moment, view: RunView) -> Point:
        ahead = core.view_ahead(self._tenant, self._run_id)
        return Point(
            step=moment.step,
            at_ms=moment.at_ms,
            part=self._part,
            ahead_runs=ahead.runs if ahead is not None else 0,
            ahead_tokens=ahead.tokens if ahead is not None else 0,
            deficit=view.deficit,
            round=view.round,
            flight_runs=view.flight_runs,
            flight_tokens=view.flight_tokens,
            shard_flight_runs=view.shard_flight_runs,
            shard_flight_tokens=view.shard_flight_tokens,
        )

    def _is_ours(self, named: Named) -> bool:
        return named.run_id == self._run_id and named.tenant == self._tenant

    def _attempt(self, number: int) -> Attempt | None:
        """Return the attempt of this number in the latest life that has one."""
        for life in reversed(self._lives):
            for attempt in life.attempts:
                if attempt.number == number:
                    return attempt
        return None
