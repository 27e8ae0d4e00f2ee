"""Ways to break the core, one at a time, and the tests that must notice. Data for `test_mutations`.

Each rule that the scheduler exists for is broken here in the smallest way there is. A mutant that no named test
catches means that the rule is not tested; one that can't be made any more, that the rule has moved.
"""

from __future__ import annotations

from typing import NamedTuple

RING = "tests/unit/core/test_ring.py"
NEWCOMERS = "tests/unit/core/test_newcomers.py"
OUTCOMES = "tests/unit/core/test_outcomes.py"
LOST = "tests/unit/core/test_lost.py"
UNDELIVERABLE = "tests/unit/core/test_undeliverable.py"
FORGETTING = "tests/unit/core/test_forgetting.py"
CLASSES = "tests/unit/core/test_classes.py"
HISTORIES = "tests/unit/core/test_estimator_memory.py"
GAP = "tests/property/test_gap.py::test_the_bound_is_close_if_estimates_are_right"
GROUPS = "tests/unit/core/test_groups.py"
RESHARDING = "tests/unit/core/test_resharding.py"
NAMES = "tests/simulation/test_many_names.py"
HISTORY = "tests/golden/test_version.py::test_what_was_decided_is_decided_again"  # of what was decided, for replays
SHARES = "tests/simulation/test_scenarios.py::test_everybody_gets_its_share_at_every_moment"


class Mutant(NamedTuple):
    """Replace text in a module of `streams.core`; the named tests must then fail, each of them."""

    module: str
    replace: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def one(module: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(module, ((old, new),), tests)


MUTANTS: dict[str, Mutant] = {
    # The order.
    "tie-breaker: of equal flows the last comes first": Mutant(
        "ring",
        (
            ("| flow.place", "| (_PLACE_MASK ^ flow.place)"),
            ("entry & _PLACE_MASK", "entry & _PLACE_MASK ^ _PLACE_MASK"),
        ),
        (f"{RING}::test_equal_flows_are_told_apart_by_their_place",),
    ),
    "resume of a half-done visit: it earns a second quantum": one(
        "ring",
        "        if self.current is not None:\n            return self.current",
        "        if self.current is not None:\n            self.current.deficit += self.current.rate\n"
        "            return self.current",
        f"{RING}::test_a_full_window_does_not_end_a_visit",
    ),
    "resume of a half-done visit: a takeover forgets it": one(
        "ring",
        "if self.record.visiting and flow.place == self.record.cursor:",
        "if self.record.visiting and flow.place > self.record.cursor:",
        "tests/unit/core/test_loading.py::test_a_half_done_visit_goes_on_where_it_was",
    ),
    "resume of a half-done visit: after the cap it earns again": one(
        "ring",
        "flow.half_visit = flow.deficit >= head.estimate",
        "flow.half_visit = False",
        f"{RING}::test_a_visit_broken_off_by_the_cap_is_finished_without_a_second_quantum",
    ),
    "a cap earns nothing: the blocked earn": one(
        "ring",
        "if rounds <= 0 or flow.state is BLOCKED:",
        "if rounds <= 0:",
        f"{RING}::test_a_capped_flow_earns_nothing_until_it_has_room",
    ),
    "one visit a round: who returns is visited again": one(
        "ring",
        "        if eligible < earliest:\n",
        "        if eligible > earliest:\n",
        f"{RING}::test_a_head_dearer_than_a_quantum_waits_its_rounds_and_blocks_nobody",
    ),
    "a newcomer joins the round under way": one(
        "state",
        "flow.accrued = ring.record.round if ring.record.cursor >= 0 else ring.record.round - 1",
        "flow.accrued = ring.passed(flow)",
        f"{NEWCOMERS}::test_a_newcomer_begins_with_the_next_round",
        f"{NEWCOMERS}::test_fresh_names_one_at_a_time_starve_nobody",
        f"{FORGETTING}::test_names_that_take_turns_gain_nothing",
        f"{NAMES}::test_fresh_names_one_at_a_time",
    ),
    "a newcomer waits for the next round though this one has not begun": one(
        "state",
        "flow.accrued = ring.record.round if ring.record.cursor >= 0 else ring.record.round - 1",
        "flow.accrued = ring.record.round",
        f"{NEWCOMERS}::test_who_comes_before_the_first_visit_begins_with_this_round",
    ),
    "a newcomer is owed a visit in the round it came in": one(
        "gap",
        "rounds = max(flow.ring.passed(flow), flow.accrued)",
        "rounds = flow.ring.passed(flow)",
        "tests/unit/core/test_gap.py::test_a_newcomer_is_owed_nothing_for_the_round_it_came_in",
    ),
    "FIFO place of a retry: it goes to the end": one(
        "fifo",
        "if run.attempt or run.not_before_ms or (last is not None and run.position < last.position):",
        "if run.not_before_ms:",
        "tests/unit/core/test_fifo.py::test_a_retry_goes_back_to_its_old_place",
        f"{RING}::test_a_returned_run_goes_back_to_its_place_before_its_successors",
    ),
    "the head that does not fit is passed over by a lower class": one(
        "dispatching",
        "                    return\n        return\n",
        "                    break\n        return\n",
        f"{RING}::test_a_higher_class_that_waits_for_tokens_holds_the_lower_one",
    ),
    # Groups.
    "groups: who comes and goes binds in the round under way": one(
        "ring",
        "flow.extra = 0 if visited else flow.rate + flow.extra - rate",
        "flow.extra = 0",
        f"{GROUPS}::test_who_comes_earns_nothing_in_the_round_under_way_and_the_others_what_they_would_have",
        f"{NAMES}::test_ids_that_take_turns_within_a_round[True-0.15-0.21]",
    ),
    "groups: each member has the whole weight": one(
        "groups",
        "max(1, earns * weight // weights)",
        "earns",
        f"{GROUPS}::test_the_active_members_divide_the_group_s_quantum_by_their_own_weights",
        f"{NAMES}::test_twenty_tenant_ids_in_a_group_have_its_weight",
    ),
    "groups: what an idle member owes fades beside the active ones": one(
        "ring",
        "return fade(flow.deficit, rounds * flow.rate)",
        "return fade(flow.deficit, rounds * (flow.rate or (flow.group.earns if flow.group else 0)))",
        f"{GROUPS}::test_what_an_idle_member_owes_stands_still",
    ),
    "groups: rounds that have passed are booked at the new share": one(
        "ring",
        "                continue\n            self.catch_up(flow)\n",
        "                continue\n",
        f"{GROUPS}::test_who_leaves_makes_the_others_earn_more_from_the_next_round_on",
        HISTORY,
    ),
    "groups: the rows of the others are not written": one(
        "state",
        "changed.update((each.key, each) for each in ring.rerated)",
        "pass",
        f"{GROUPS}::test_who_comes_earns_nothing_in_the_round_under_way_and_the_others_what_they_would_have",
    ),
    # The ledger.
    "reset of credit on leaving: it is kept": one(
        "ring",
        "        flow.deficit = min(0, flow.deficit)\n",
        "",
        f"{RING}::test_credit_is_dropped_on_leaving",
        f"{RING}::test_credit_is_dropped_on_leaving_by_cancel",
    ),
    "keeping of debt: it is forgiven on leaving": one(
        "ring",
        "        flow.deficit = min(0, flow.deficit)\n",
        "        flow.deficit = 0\n",
        f"{RING}::test_debt_is_kept_when_what_is_queued_is_taken_back",
    ),
    "keeping of debt: it is forgiven on return": one(
        "ring",
        "        flow.state = ACTIVE\n        self.active",
        "        flow.state, flow.deficit = ACTIVE, max(0, flow.deficit)\n        self.active",
        f"{RING}::test_debt_is_kept_on_leaving_and_delays_the_next_run",
        "tests/simulation/test_closed_loop.py::test_bursts_that_go_quiet_until_their_bills_are_in_gain_nothing",
    ),
    "keeping of debt: the idle owe nothing once a round has passed": one(
        "ledger",
        "        return min(0, balance + tokens)",
        "        return 0",
        f"{RING}::test_debt_fades_by_a_quantum_for_each_round_that_passes",
        "tests/simulation/test_closed_loop.py::test_bursts_that_go_quiet_until_their_bills_are_in_gain_nothing",
    ),
    "refunds: none while nothing is queued": one(
        "ledger",
        "    flow.deficit -= difference\n    flow.charged += difference\n    flow.actual += actual",
        "    flow.deficit = min(flow.deficit - difference, max(flow.deficit, 0))\n    flow.charged += difference\n"
        "    flow.actual += actual",
        "tests/simulation/test_closed_loop.py::test_one_run_at_a_time_that_is_always_guessed_too_high_is_not_starved",
    ),
    "decay of refund credit: it lasts for ever": one(
        "ledger",
        "    return max(0, balance - tokens)",
        "    return balance",
        f"{RING}::test_credit_of_a_refund_made_while_nothing_is_queued_fades_too",
    ),
    "settle once: a late report is charged each time": one(
        "outcomes",
        "run.lost.pop(number)",
        "run.lost[number]",
        f"{OUTCOMES}::test_a_late_report_is_charged_once",
    ),
    "settle once: a report on a run that has ended is charged each time": one(
        "outcomes",
        "        state.lost.close(attempt)\n",
        "",
        f"{LOST}::test_a_dead_lettered_run_is_billed_once",
    ),
    "settle once: the estimate is not taken back": one(
        "ledger",
        "    difference = actual - charged\n",
        "    difference = actual\n",
        f"{OUTCOMES}::test_success_settles_learns_and_ends",
    ),
    "a heartbeat is charged again and again": one(
        "ledger",
        "    flight.charged = tokens\n",
        "",
        f"{OUTCOMES}::test_a_heartbeat_charges_what_exceeds_the_estimate_at_once",
    ),
    "minimum charge: a run that spends nothing is free": one(
        "outcomes",
        "return tokens if tokens > least else least, True",
        "return tokens, True",
        f"{OUTCOMES}::test_a_run_that_spent_nothing_is_charged_the_minimum",
        f"{SHARES}[0-no-usage]",
    ),
    # The memory of costs.
    "histories: those in use are forgotten as the others are": one(
        "estimator",
        "            self.histories.move_to_end(history.key)\n",
        "",
        f"{HISTORIES}::test_the_least_recently_used_of_the_shard_goes_first",
    ),
    "histories: who invents workflows pushes out those of others": one(
        "estimator",
        "len(history.of_tenant.histories) > memory.tenant_histories",
        "len(history.of_tenant.histories) > memory.histories",
        f"{HISTORIES}::test_who_invents_workflows_forgets_only_its_own",
    ),
    "histories: the forgotten still count in the means": one(
        "estimator",
        "            history.leave()\n",
        "",
        f"{HISTORIES}::test_what_is_forgotten_no_longer_counts_in_any_mean",
    ),
    "histories: rows of the forgotten stay": one(
        "estimator",
        "            changed[history.key] = None\n",
        "            changed.pop(history.key, None)\n",
        f"{HISTORIES}::test_the_rows_of_the_forgotten_go_in_the_same_step",
    ),
    # The gap finds out by itself that somebody is favoured: no deficit is looked at, and nothing doubts the shard.
    "the gap: a half-done visit earns a second quantum": one(
        "ring",
        "        if self.current is not None:\n            return self.current",
        "        if self.current is not None:\n            self.current.deficit += self.current.rate\n"
        "            return self.current",
        GAP,
    ),
    "the gap: dispatches are not paid for": one(
        "ledger",
        "    flow.deficit -= tokens\n    flow.charged += tokens",
        "    flow.charged += tokens",
        GAP,
    ),
    "the gap: after the cap a visit earns again": one(
        "ring",
        "flow.half_visit = flow.deficit >= head.estimate",
        "flow.half_visit = False",
        GAP,
    ),
    "the bound: errors are not counted": one(
        "gap",
        "    record.max_under = max(record.max_under, under)\n",
        "",
        "tests/unit/core/test_gap.py::test_errors_widen_the_bound_while_there_is_work",
    ),
    "the bound: a dear head that is taken back is not counted": one(
        "ring",
        "        if cost > record.max_estimate:\n            record.max_estimate = cost\n",
        "",
        "tests/unit/core/test_gap.py::test_a_dear_head_that_is_taken_back_has_let_credit_grow",
    ),
    # Between classes.
    "of classes that are equally far the last goes first": one(
        "classes",
        "first = min(self._with_work(),",
        "first = min(reversed(list(self._with_work())),",
        f"{CLASSES}::test_classes_share_by_weight_and_of_equals_the_first_listed_goes_first",
        HISTORY,
    ),
    "a class that comes back brings its credit along": one(
        "classes",
        "                if ring.record.tag < clock:\n",
        "                if ring.record.tag < 0:\n",
        f"{CLASSES}::test_who_leaves_with_credit_has_none_when_it_returns",
        f"{CLASSES}::test_a_minimum_that_is_not_wanted_is_not_saved_up",
        HISTORY,
    ),
    "a class that comes back is forgiven its debt": one(
        "classes",
        "                if ring.record.tag < clock:\n",
        "                if ring.record.tag != clock:\n",
        f"{CLASSES}::test_debt_outlasts_leaving_until_the_clock_has_passed_it",
    ),
    "a class whose flows are all blocked earns and repays": one(
        "classes",
        "            if ring.blocked and not ring.active and ring is not served:\n",
        "            if not ring.flows:\n",
        f"{CLASSES}::test_a_class_whose_flows_are_all_blocked_neither_earns_nor_repays",
        f"{CLASSES}::test_a_minimum_that_is_blocked_waits_as_it_is",
        HISTORY,
    ),
    "what nobody else wants is held against a class": one(
        "classes",
        "(share if pays or self.by_weight else PERCENT)",
        "share",
        f"{CLASSES}::test_what_nobody_else_wanted_is_not_held_against_a_class",
        f"{CLASSES}::test_a_class_with_a_minimum_does_not_pay_for_the_mistakes_of_surplus_runs",
    ),
    "a minimum is served ahead of time": one(
        "classes",
        "cost * UNIT // share - cost * UNIT // PERCENT <= credit",
        "credit > 0",
        f"{CLASSES}::test_in_order_a_class_with_a_minimum_is_served_as_soon_as_it_would_not_be_ahead_of_it",
        f"{CLASSES}::test_a_dear_run_waits_until_it_is_due",
    ),
    "a class pays for its estimates alone": one(
        "outcomes",
        "    if state.turns is not None and tokens:\n",
        "    if state.turns is not None and not flow:\n",
        f"{CLASSES}::test_a_minimum_is_of_what_runs_really_cost",
        f"{CLASSES}::test_a_class_is_given_back_what_it_was_charged_too_much",
        "tests/simulation/test_between_classes.py::test_a_minimum_is_kept_under_a_flood_from_above[1000-a_quarter]",
    ),
    "the clock of the classes leaves its row": one(
        "classes",
        "        if not -REBASE <= self._record.clock <= REBASE:\n",
        "        if tokens == 0:\n",
        f"{CLASSES}::test_the_clock_is_set_back_before_it_leaves_a_row_and_no_turn_changes",
    ),
    "the tags of the classes leave their rows": one(
        "classes",
        "    return min(max(tag, clock - FURTHEST), clock + FURTHEST)\n",
        "    return tag\n",
        f"{CLASSES}::test_whatever_runs_cost_clock_and_tags_fit_their_rows[1-1000000000000-shares]",
    ),
    # Attempts, policies, takeovers.
    "an outage expires leases": one(
        "shard",
        "        state.record.outage_ms += state.elapsed_ms\n",
        "",
        "tests/unit/core/test_expiry.py::test_the_time_without_an_owner_expires_nobody",
    ),
    "a silent attempt counts": one(
        "outcomes",
        "        if not flight.heard:\n",
        "        if flight.heard:\n",
        f"{OUTCOMES}::test_a_silent_attempt_is_lost_and_costs_nothing_and_counts_for_nothing",
    ),
    "a run may come back while its revoked attempt is in flight": one(
        "admission",
        " or identity in state.revoked",
        "",
        "tests/unit/core/test_admission.py::"
        "test_a_run_whose_revoked_attempt_is_still_in_flight_is_a_duplicate_even_if_forgotten",
    ),
    "rounds that have passed are booked at the new weight": one(
        "policy_change",
        "        flow.ring.catch_up(flow)\n",
        "",
        "tests/unit/core/test_policy_change.py::test_rounds_that_have_passed_are_booked_at_the_old_weight",
    ),
    "the order of a policy change depends on the hash seed": one(
        "policy_change",
        "    for tenant in state.tenants.values():\n",
        "    for tenant in map(state.tenants.__getitem__, set(state.tenants)):\n",
        "tests/property/test_determinism.py::test_effects_do_not_depend_on_the_process",
    ),
    "the longest backlog is taken without its weight": one(
        "overload",
        " // tenant.rules.weight",
        "",
        "tests/unit/core/test_overload.py::test_backlogs_are_compared_by_tokens_per_weight",
    ),
    # Memory.
    "keeping of debt: it is forgotten with its flow": one(
        "forgetting",
        "        if not balance:\n",
        "        if balance <= 0:\n",
        f"{FORGETTING}::test_a_debt_is_never_forgotten_and_the_newcomer_is_refused",
    ),
    "a run that was dispatched gives way and may be numbered from 1 again": one(
        "endings",
        "    if run.attempt:  # its attempts",
        "    if not run.attempt:  # its attempts",
        "tests/unit/core/test_overload.py::test_a_run_that_was_dispatched_and_gave_way_is_remembered",
    ),
    "who was removed is served on what comes back": one(
        "outcomes",
        "    if state.policy.policy.removes(run.tenant):\n",
        "    if not state.policy.policy.removes(run.tenant):\n",
        "tests/unit/core/test_removal.py::test_what_comes_back_is_rejected",
    ),
    # Bounds of a step.
    "a step hands out any number of bytes": one(
        "dispatching",
        " or state.dispatched_bytes >= MAX_DISPATCHED_BYTES",
        "",
        "tests/unit/core/test_dispatching.py::test_a_step_hands_out_so_many_bytes_of_payloads_and_names",
    ),
    "reports give up any number of bytes": one(
        "state",
        'body = body if self.given_up_bytes < MAX_GIVEN_UP_BYTES else b""',
        "body = body",
        f"{UNDELIVERABLE}::test_reports_that_give_up_too_much_at_once_leave_payloads_out",
    ),
    # What no topic takes.
    "an attempt in flight goes on though its run is undeliverable": one(
        "outcomes",
        '    if run.state is RunState.IN_FLIGHT:\n        _stop(state, run, "too large',
        '    if run.state is RunState.IN_FLIGHT:\n        return\n        _stop(state, run, "too large',
        f"{UNDELIVERABLE}::test_an_attempt_in_flight_is_revoked_and_pays_what_it_spent",
    ),
    "an undeliverable run that came back is forgotten": one(
        "outcomes",
        "        endings.drop(state, run)\n    state.refresh(tenant)\n\n\ndef _extend",
        "        state.dequeue(run, RunState.ENDED)\n        state.forget_run(run)\n    state.refresh(tenant)\n\n\n"
        "def _extend",
        f"{UNDELIVERABLE}::test_one_that_came_back_is_remembered",
    ),
    # What is written.
    "a visit that begins in a full step is not written": one(
        "dispatching",
        "    if flow is not under_way:",
        "    if flow is not under_way and len(out.dispatches) < MAX_DISPATCHES:",
        "tests/unit/core/test_dispatching.py::test_a_visit_that_has_begun_when_the_step_is_full_is_written",
    ),
    "the cursor is not written": one(
        "dispatching",
        "    changed[ring.key] = ring.record\n",
        "",
        f"{RING}::test_a_visit_serves_while_the_deficit_covers_the_head",
    ),
    "a heartbeat is not written": one(
        "outcomes",
        "    state.out.changed[flight.key] = flight\n    if tokens",
        "    if tokens",
        f"{OUTCOMES}::test_a_sign_of_life_extends_the_lease",
    ),
    # Another number of shards.
    "resharding: of two visits under way that meet, the second earns again": one(
        "rejoining",
        "flow.half_visit, flow.accrued = True, _ROUND - 1",
        "flow.accrued = _ROUND - 1",
        f"{RESHARDING}::test_visits_under_way_that_meet_go_on_one_after_the_other_in_the_same_round",
    ),
    "resharding: an outage takes something of a lease": one(
        "resharding",
        "expires_ms=record.expires_ms + state.record.outage_ms",
        "expires_ms=record.expires_ms",
        f"{RESHARDING}::test_a_lease_goes_on_with_what_was_left_of_it",
    ),
    "resharding: what a class is ahead is forgotten": one(
        "rejoining",
        "        if lead:",
        "        if lead < 0:",
        f"{RESHARDING}::test_a_class_takes_along_what_it_is_ahead",
    ),
}
