"""How attempts and runs end: reports of workers, lost leases, cancels.

Every way out settles the attempt exactly once (`_settle`) and gives its place in the window back exactly once
(`State.release`). An attempt whose lease ran out is *lost*: settled at what its heartbeats owned up to, and
remembered (`lost`). If it is heard of after all, the difference is charged, once (`_late`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.core import counts, endings, gap, ledger, lost, reasons
from streams.core.effects import Revoke, Settlement
from streams.core.endings import end_run
from streams.core.estimator import FP_BITS, follow
from streams.core.inputs import HEARTBEAT, RETURNED, STARTED, SUCCEEDED
from streams.core.overload import last_waiting
from streams.core.records import IDLE, key_of
from streams.core.removal import say_removed
from streams.core.runs import RunState
from streams.core.sizes import weight_of_names

if TYPE_CHECKING:
    from streams.core.flows import Flow, Tenant
    from streams.core.inputs import Cancel, Completion, Undeliverable
    from streams.core.runs import Flight, Run
    from streams.core.state import State

LOST = "lost"


def report(state: State, completion: Completion) -> None:
    """Take in what a worker says of an attempt. Reports on attempts nobody knows are counted and dropped."""
    flight = state.flights.get((completion.tenant, completion.run_id, completion.attempt))
    if flight is None:
        _late(state, completion)
        return
    if completion.status in (STARTED, HEARTBEAT):
        _extend(state, flight, completion.tokens)
    else:
        _finish(state, flight, completion)
    state.refresh(flight.flow.parent)


def lose(state: State, flight: Flight) -> None:
    """Give an attempt up whose lease has run out: free its place, charge what it owned up to, try again later."""
    tenant = flight.flow.parent
    state.out.counts[counts.LOST] += 1
    state.given_up_bytes += weight_of_names(flight)
    if flight.revoked:
        endings.keep_account(state, flight)
    _settle(state, flight, flight.reported, LOST, reported=True)
    run = tenant.runs.get(flight.run_id)
    if run is not None and not flight.revoked:
        lost.give_up(run, flight.attempt, flight.reported)
        if not flight.heard:
            run.tries -= 1  # no worker took it up: a fleet that is away must not use up its runs' attempts
        _retry(state, run, "its lease ran out")
    state.refresh(tenant)


def cancel(state: State, cancel: Cancel) -> None:
    """End a run its tenant takes back. An attempt in flight is revoked; its tokens are charged when they come."""
    tenant = state.tenants.get(cancel.tenant)
    run = tenant.runs.get(cancel.run_id) if tenant is not None else None
    if tenant is None or run is None:
        state.out.counts[counts.UNKNOWN] += 1
        return
    state.out.counts[counts.CANCELLED] += 1
    _stop(state, run, "cancelled by its tenant")
    state.refresh(tenant)


def expire(state: State, run: Run) -> None:
    """Drop a run that is still queued at its deadline, with a reason."""
    deadline, now = run.deadline_ms, state.record.now_ms
    state.reject(run, reasons.EXPIRED, f"still queued at its deadline {deadline}", limit=deadline, value=now)
    state.out.counts[counts.EXPIRED] += 1
    _stop(state, run, "deadline passed")
    state.refresh(run.flow.parent)


def give_way(state: State, tenant: Tenant, limit: int, value: int, retry_after_ms: int) -> None:
    """Drop the last run of `tenant`: the backlog of the shard is full, and it has the most waiting per weight.

    The run may be sent again, unless it was dispatched before.
    """
    run = last_waiting(tenant)
    detail = f"the shard's backlog is full, and tenant {tenant.name!r} has the most waiting for its weight"
    after_ms = retry_after_ms if not run.attempt else None
    state.reject(run, reasons.OVERLOADED, detail, limit=limit, value=value, retry_after_ms=after_ms)
    state.out.counts[counts.DROPPED] += 1
    endings.drop(state, run)
    state.refresh(tenant)


def take_out(state: State, given: Undeliverable) -> None:
    """End a run that no worker can be given, with a reason. Nothing is charged for it: no attempt of it has begun.

    An attempt that is in flight was dispatched when the topic took more: it is revoked, since it would end by coming
    back, and its tokens are charged when they come.
    """
    tenant = state.tenants.get(given.tenant)
    run = tenant.runs.get(given.run_id) if tenant is not None else None
    if tenant is None or run is None:
        state.out.counts[counts.UNKNOWN] += 1
        return
    most = "less" if given.limit is None else f"{given.limit} at most"
    detail = f"its record takes {given.size} bytes, and Kafka takes {most}"
    state.reject(run, reasons.TOO_LARGE, detail, limit=given.limit, value=given.size)
    state.out.counts[counts.UNDELIVERABLE] += 1
    if run.state is RunState.IN_FLIGHT:
        _stop(state, run, "too large to be dispatched again")
    else:
        endings.drop(state, run)
    state.refresh(tenant)


def _extend(state: State, flight: Flight, tokens: int | None) -> None:
    """Let the attempt be silent for another lease, and charge what it has spent beyond its charge."""
    flight.heard = True
    flight.expires_ms = max(flight.expires_ms, state.lease_now + flight.lease_ms)
    state.out.changed[flight.key] = flight
    if tokens is not None:
        flow = flight.flow
        flow.ring.catch_up(flow)
        excess = ledger.own_up(flow, flight, tokens)
        _correct(state, flow, excess, class_pays=flight.class_pays)
        if excess:
            _note_error(state, flow, flight.estimate, flight.charged, flight.charged)
        state.out.changed[flow.key] = flow


def _finish(state: State, flight: Flight, completion: Completion) -> None:
    """Settle an attempt that has ended and decide what becomes of its run."""
    status, out = completion.status, state.out
    if status == RETURNED:
        _settle(state, flight, 0, status, reported=True)
    else:
        actual, reported = _cost(state, flight, completion.tokens)
        _settle(state, flight, actual, status, reported=reported)
        if reported:
            state.record.uses += 1
            policy, use = state.policy.policy, state.record.uses
            state.estimator.learn(flight, actual, use=use, policy=policy, changed=out.changed)
    run = flight.flow.parent.runs.get(flight.run_id)
    if run is None or flight.revoked:
        return  # the run had ended by another way; only this account was open
    if status == SUCCEEDED:
        _learn_duration(state, flight)
        out.counts[counts.SUCCEEDED] += 1
        end_run(state, run)
    elif status == RETURNED:
        out.counts[counts.RETURNED] += 1
        run.tries -= 1
        _come_back(state, run, pause_ms=0)
    elif completion.retryable:
        _retry(state, run, completion.error or "it failed")
    else:
        out.counts[counts.FAILED] += 1
        end_run(state, run)


def _cost(state: State, flight: Flight, tokens: int | None) -> tuple[int, bool]:
    """Return what an attempt that ran is charged, and whether its worker said so."""
    if tokens is None:
        state.out.counts[counts.UNREPORTED] += 1
        return flight.charged, False
    least = state.policy.policy.estimates.min_charge
    return tokens if tokens > least else least, True


def _settle(state: State, flight: Flight, actual: int, outcome: str, *, reported: bool) -> None:
    flow, out = flight.flow, state.out
    flow.ring.catch_up(flow)
    ledger.settle(flow, flight.charged, actual)
    if state.turns is not None:
        _correct(state, flow, actual - flight.charged, class_pays=flight.class_pays)
    if actual:  # one that cost nothing (returned, or lost unheard) says nothing of its estimate
        flow.settled_estimate += flight.estimate
    _note_error(state, flow, flight.estimate, flight.charged, actual)
    state.release(flight)
    out.changed[flow.key] = flow
    out.settlements.append(
        Settlement(flight.tenant, flight.run_id, flight.attempt, outcome, flight.estimate, actual, reported)
    )


def _note_error(state: State, flow: Flow, first: int, charged: int, actual: int) -> None:
    """Keep the figures of the bound while the flow is measured by them: how far one of its attempts was off."""
    ring = flow.ring
    if flow.state is not IDLE and gap.note_error(ring.record, first, charged, actual):
        state.out.changed[ring.key] = ring.record


def _correct(state: State, flow: Flow, tokens: int, *, class_pays: bool) -> None:
    """Let the flow's class pay, too, for what an attempt has cost beyond what it was charged before."""
    if state.turns is not None and tokens:
        state.turns.correct(flow.ring, tokens, state.out.changed, pays=class_pays)


def _late(state: State, completion: Completion) -> None:
    """Take in a report on an attempt that is not in flight: given up as lost, settled already, or never known."""
    tenant = state.tenants.get(completion.tenant)
    run = tenant.runs.get(completion.run_id) if tenant is not None else None
    number = completion.attempt
    over = completion.status not in (STARTED, HEARTBEAT)  # else: what it spends is charged when it ends
    if run is not None and number in run.lost:
        state.out.counts[counts.LATE] += 1
        if over:
            _amend(state, run.flow, completion, run.lost.pop(number))
            state.out.changed[run.retry_key] = run.retry_record()
            if completion.status == SUCCEEDED:  # the first success of any attempt finishes the run
                state.out.counts[counts.SUCCEEDED] += 1
                _stop(state, run, "an earlier attempt has succeeded")
            state.refresh(run.flow.parent)
        return
    attempt = (completion.tenant, completion.run_id, number)
    account = state.lost.find(attempt)
    if account is None:
        state.out.counts[counts.UNKNOWN] += 1
        return
    state.out.counts[counts.LATE] += 1
    if over:  # its run has ended meanwhile: only the account is open
        _amend(state, account.flow, completion, account.charged)
        state.lost.close(attempt)
        state.out.changed[key_of(account.page)] = account.page
        state.refresh(account.flow.parent)
        state.close(account.flow)


def _amend(state: State, flow: Flow, completion: Completion, charged: int) -> None:
    """Correct the account of an attempt that was given up at `charged`, if its worker says what it spent."""
    if completion.tokens is None or completion.status == RETURNED:
        return
    actual = max(completion.tokens, state.policy.policy.estimates.min_charge)
    flow.ring.catch_up(flow)
    ledger.amend(flow, charged, actual)
    _correct(state, flow, actual - charged, class_pays=actual > charged)  # how it was booked is not remembered
    flow.peak += 1  # it comes on top of what is in flight
    _note_error(state, flow, charged, charged, actual)
    state.out.changed[flow.key] = flow
    tenant, run_id, number = completion.tenant, completion.run_id, completion.attempt
    state.out.settlements.append(Settlement(tenant, run_id, number, completion.status, charged, actual, reported=True))


def _retry(state: State, run: Run, why: str) -> None:
    """Send a run back to its old place after a pause, or give it up if its attempts are used up."""
    if run.tries >= run.max_attempts:
        detail = f"attempt {run.attempt}: {why}; {run.max_attempts} attempts allowed"
        state.reject(run, reasons.DEAD_LETTERED, detail, limit=run.max_attempts, value=run.tries)
        state.out.counts[counts.DEAD_LETTERED] += 1
        end_run(state, run)
        return
    leases = state.policy.policy.leases
    pause_ms = min(leases.backoff_ms << min(max(run.tries - 1, 0), 32), leases.max_backoff_ms)
    if _come_back(state, run, pause_ms):
        state.out.counts[counts.RETRIED] += 1


def _come_back(state: State, run: Run, pause_ms: int) -> bool:
    """Put a run back to its old place, after a pause, and keep what it has behind it. False: it is rejected instead."""
    if state.policy.policy.removes(run.tenant):
        end_run(state, run)
        say_removed(state, run)
        return False
    run.ready_ms = state.record.now_ms + pause_ms
    run.retried = True
    state.enqueue(run)
    state.out.changed[run.retry_key] = run.retry_record()
    return True


def _stop(state: State, run: Run, reason: str) -> None:
    """End a run wherever it is."""
    if run.state is RunState.IN_FLIGHT:
        flight = state.flights[run.tenant, run.run_id, run.attempt]
        flight.revoked = True
        state.revoked.add((run.tenant, run.run_id))
        flight.flow.open += 1
        state.record.seq += 1
        state.out.counts[counts.REVOKED] += 1
        state.out.revokes.append(Revoke(state.record.seq, run.tenant, run.run_id, run.attempt, reason))
        state.out.changed[flight.key] = flight
    else:
        state.dequeue(run, RunState.ENDED)
    end_run(state, run)


def _learn_duration(state: State, flight: Flight) -> None:
    """Follow how long an attempt takes, for `retry_after_ms`."""
    record = state.record
    record.run_ms_fp = follow(record.run_ms_fp, (record.now_ms - flight.dispatched_ms) << FP_BITS, 16)
