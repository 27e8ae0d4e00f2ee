"""Who was served while a run waited, and what each had a claim to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streams.audit.explain.curve import Slices
from streams.core.effects import Dispatch, Settlement
from streams.core.snapshot import FlowView, ShardSnapshot

Name = tuple[str, str]  # class, tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A tenant of a class, over the time in which the run waited. Tokens; shares are parts per million."""

    class_: str
    tenant: str
    plan: str | None
    group: str | None
    weight: int | None  # as are the next four, when the run came; None: the shard did not know it then
    stated_share_ppm: int | None  # of its class; 0: it had no work
    queued_runs: int | None
    queued_tokens: int | None
    deficit_before: int | None  # negative: debt
    deficit_after: int | None  # when the run was dispatched, or at last; None: it had been forgotten
    runs: int  # dispatched
    tokens: int  # charged for them then
    share_ppm: int  # of the tokens that were charged meanwhile
    corrected: int  # what ended meanwhile had cost so much more than it was charged; negative: less
    rounds: int  # in so many rounds of its class something of it was dispatched


class Meanwhile:
    """Counts what is dispatched and settled while a run waits."""

    def __init__(self, begin_ms: int) -> None:
        self.slices = Slices(begin_ms)  # tokens by tenant
        self._runs: dict[Name, int] = {}
        self._tokens: dict[Name, int] = {}
        self._corrected: dict[str, int] = {}
        self._rounds: dict[Name, tuple[int, int]] = {}  # number of rounds, the last of them

    def count(self, now_ms: int, dispatches: Iterable[Dispatch], settlements: Iterable[Settlement]) -> None:
        """Take in what a step did before the run had its turn."""
        for dispatch in dispatches:
            name = dispatch.class_, dispatch.tenant
            self._runs[name] = self._runs.get(name, 0) + 1
            self._tokens[name] = self._tokens.get(name, 0) + dispatch.estimate
            number, last = self._rounds.get(name, (0, -1))
            if dispatch.round != last:
                self._rounds[name] = number + 1, dispatch.round
            self.slices.add(now_ms, dispatch.tenant, dispatch.estimate)
        for settlement in settlements:
            more = settlement.actual - settlement.estimate
            self._corrected[settlement.tenant] = self._corrected.get(settlement.tenant, 0) + more

    def served(self, before: ShardSnapshot | None, after: ShardSnapshot | None) -> list[Served]:
        """Return who was served, and who had work when the run came, most tokens first.

        A correction is not told by class: it stands with the first class of its tenant that is named.
        """
        then, now = _flows(before), _flows(after)
        waiting = (name for name, flow in then.items() if flow.queued_runs)
        names = sorted({*self._runs, *waiting}, key=lambda name: (-self._tokens.get(name, 0), name))
        whole = sum(self._tokens.values())
        corrected = dict(self._corrected)
        return [self._row(name, then.get(name), now.get(name), whole, corrected.pop(name[1], 0)) for name in names]

    def _row(self, name: Name, then: FlowView | None, now: FlowView | None, whole: int, corrected: int) -> Served:
        class_, tenant = name
        known = then or now
        tokens = self._tokens.get(name, 0)
        return Served(
            class_=class_,
            tenant=tenant,
            plan=known.plan if known is not None else None,
            group=known.group if known is not None else None,
            weight=known.weight if known is not None else None,
            stated_share_ppm=then.stated_share_ppm if then is not None else None,
            queued_runs=then.queued_runs if then is not None else None,
            queued_tokens=then.queued_tokens if then is not None else None,
            deficit_before=then.deficit if then is not None else None,
            deficit_after=now.deficit if now is not None else None,
            runs=self._runs.get(name, 0),
            tokens=tokens,
            share_ppm=tokens * 1_000_000 // whole if whole else 0,
            corrected=corrected,
            rounds=self._rounds.get(name, (0, 0))[0],
        )


def _flows(snapshot: ShardSnapshot | None) -> Mapping[Name, FlowView]:
    return {(flow.class_, flow.tenant): flow for flow in snapshot.flows} if snapshot is not None else {}
