"""The sentences: what a person is told, and that it is true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.audit.explain.document import document
from streams.audit.explain.story import tell
from streams.audit.explain.words import moment
from streams.core.inputs import FAILED, RETURNED, STARTED, SUCCEEDED, Takeover
from streams.core.policy import Estimates, Leases, Limits, TenantRules
from tests.builders import make_cancel, make_policy, make_report
from tests.unit.audit.explain.watched import Watched

LEASES = Leases(lease_ms=1_000, min_lease_ms=1, max_lease_ms=9_000, max_attempts=2, backoff_ms=50, max_backoff_ms=50)
DEFAULT = "from the default of its class (1,000), its tenant having no history of that workflow"


def story(shard: Watched) -> list[str]:
    return tell(shard.explained())


def said(shard: Watched, beginning: str) -> str:
    (found,) = [sentence for sentence in story(shard) if sentence.startswith(beginning)]
    return found


def test_a_run_that_waited_and_succeeded() -> None:
    shard = Watched(make_policy(runs=1, quantum=100, weights={"z": 3}))
    shard.submit("z", "z1", "z2", "z3", cost=100)
    shard.submit("a", "first", "r", cost=100)
    for number in range(4):
        shard.finish(shard.dispatches[number], after_ms=1_000)
    shard.report(STARTED, after_ms=10)
    shard.report(SUCCEEDED, after_ms=3_000, tokens=150)
    first, came, went, meanwhile, rounds, cost = story(shard)
    assert first == "Run r of tenant a waited 4.0 s, ran 3.0 s and succeeded."
    assert came == (
        "It came at 1970-01-01 00:16:40.000Z (requests/0 offset 6, taken in by step 4) and found 1 run of its own "
        "tenant and class (100 tokens) and 2 runs of other tenants in its class (200 tokens) waiting."
    )
    assert went == (
        "Of the wait, it spent 3.0 s (75%) behind earlier runs of its own tenant, 1.0 s (25%) for a place in the "
        "window, being next and 10 ms (0%) for a worker to take it up, once dispatched. It was dispatched by step 8, "
        "when a place in the window came free."
    )
    assert meanwhile == (
        "Meanwhile 3 runs went before it; of their tokens z got 66.7 % (weight 3, stated share 75.0 %) and its own "
        "tenant got 33.3 % (weight 1, stated share 25.0 %)."
    )
    assert rounds == (
        "A round then gave its tenant 100 tokens (quantum 100 times weight 1), and before it stood 100 tokens of its "
        "own: it went 2 rounds after it came."
    )
    assert cost == "It was estimated at 100 tokens, as its request said; it cost 150, 1.5 times that."


def test_a_run_that_went_at_once() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.report(SUCCEEDED, after_ms=5)
    first, came, cost = story(shard)
    assert first == "Run r of tenant a waited 0 ms, ran 5 ms and succeeded."
    assert came.endswith("and was dispatched by that step: nothing stood before it that could go.")
    assert cost.endswith("it cost 100 (no usage was reported).")


def test_a_refusal_says_why_and_whether_to_try_again() -> None:
    shard = Watched(make_policy(runs=1, rules={"a": TenantRules(max_queued_runs=1)}))
    shard.submit("a", "first")
    shard.submit("a", "second")
    shard.submit("a", "r")
    first, second = story(shard)
    assert first == (
        "Run r of tenant a was refused at 1970-01-01 00:16:40.000Z (step 5, requests/0 offset 4): tenant 'a' has 1 "
        "runs queued, its limit is 1."
    )
    assert second == "The reason is queue_full; another try made sense after 1.0 s."
    paused = Watched(make_policy(rules={"a": TenantRules(paused=True)}))
    paused.submit("a", "r")
    assert story(paused)[1] == "The reason is tenant_paused; another try would not have helped."


def test_a_request_that_no_step_has_taken_in() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard._steps.pop()
    (only,) = story(shard)
    assert only == (
        "Run r of tenant a was asked for (requests/0 offset 2), and no step of the record has taken that in: it ends "
        "with step 2."
    )
    shard._steps.clear()
    assert story(shard)[0].endswith("it ends with the beginning.")


def test_a_request_that_was_taken_back_at_once() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    entry, inputs = shard._steps.pop()
    shard._steps.append((entry, [*inputs, make_cancel("a", "r")]))
    (only,) = story(shard)
    assert only.startswith("Run r of tenant a was taken in and taken back by the same step: 4, at ")


def test_duplicates_and_a_second_life_are_told_apart() -> None:
    policy = make_policy(runs=1, limits=Limits(max_queued_runs=1))
    shard = Watched(policy)
    shard.submit("z", "z1")
    shard.submit("z", "z2")
    shard.submit("a", "r")  # overloaded
    shard.finish(shard.dispatches[0])
    shard.submit("a", "r")
    shard.submit("a", "r")  # a duplicate
    assert [answer.refusal.reason if answer.refusal else None for answer in shard.answers()] == [
        "overloaded",
        None,
        "duplicate",
    ]
    assert story(shard)[-1] == (
        "It was asked for 3 times; the other requests: offset 4 (overloaded) and offset 5 (another run, which has not "
        "ended)."
    )


def test_a_run_that_still_waits() -> None:
    shard = Watched(make_policy(runs=1, quantum=100))
    shard.submit("z", "z1")
    shard.submit("a", "first", "r", cost=200)
    shard.step(after_ms=7_200_000)
    assert story(shard)[0] == "Run r of tenant a is still waiting at the end of the record; it has waited 2.0 h so far."
    assert story(shard)[-1] == (
        "1 run of its own tenant and class stands before it; if nothing else comes, it goes in about 4 rounds."
    )
    shard.state_policy(make_policy(runs=1, rules={"a": TenantRules(paused=True)}))
    assert story(shard)[-1].endswith("its tenant earns nothing now, so nobody can say when it goes.")


def test_a_run_that_waits_for_its_time_is_not_told_that_nobody_knows_it() -> None:
    """Its tenant may earn, or not: it does not go for that."""
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "first")
    at_ms = shard.now_ms + 60_000
    shard.submit("a", "r", not_before_ms=at_ms)
    assert story(shard)[-1] == (
        f"1 run of its own tenant and class stands before it, and it may not go before {moment(at_ms)}."
    )
    told = document(shard.explained())["run"]
    assert (told["state"], told["ready_ms"]) == ("delayed", at_ms)


def test_a_run_whose_round_is_under_way() -> None:
    shard = Watched(make_policy(runs=1, quantum=1_000))
    shard.submit("a", "first", "r", cost=200)
    assert story(shard)[-1].endswith("if nothing else comes, it goes in the round under way.")


def test_a_run_in_flight() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.step(after_ms=90_000)
    assert story(shard)[0] == "Run r of tenant a is in flight at the end of the record; it has waited 1.5 min so far."


def test_a_run_past_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.core.expiry.MAX_ENDED", 1)
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "first", "r", deadline_ms=shard.now_ms + 10)
    shard.step(after_ms=10)
    assert story(shard)[0].startswith("Run r of tenant a is past its deadline at the end of the record")
    shard.step()
    assert story(shard)[0].startswith(
        "Run r of tenant a waited 10 ms, ran 0 ms and was rejected (expired): still queued at its deadline"
    )
    assert story(shard)[1] == "Its deadline was 1970-01-01 00:16:40.010Z."


def test_a_deadline_that_had_passed_is_told_as_a_time() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("a", "r", deadline_ms=shard.now_ms - 1)
    assert said(shard, "Its deadline") == "Its deadline was 1970-01-01 00:16:39.999Z."


def test_why_it_failed_at_its_second_attempt() -> None:
    shard = Watched(make_policy(leases=LEASES))
    shard.submit("a", "r")
    shard.report(FAILED, retryable=True, after_ms=10)
    shard.step(after_ms=50)
    shard.report(FAILED, attempt=2, after_ms=10, tokens=30)
    assert (
        story(shard)[0] == "Run r of tenant a waited 50 ms, ran 20 ms and failed at attempt 2, not to be tried again."
    )
    assert story(shard)[-1] == (
        "It was estimated at 100 tokens, as its request said; it cost 130 over 2 attempts, 1.3 times that (no usage "
        "was reported for 1 of them)."
    )


def test_each_attempt_that_came_to_nothing_is_told() -> None:
    shard = Watched(make_policy(leases=replace(LEASES, max_attempts=5)))
    shard.submit("a", "r")
    shard.report(FAILED, retryable=True, after_ms=10)
    shard.step(after_ms=50)
    shard.report(RETURNED, attempt=2, after_ms=10)  # and it goes again by the same step
    shard.step(after_ms=1_000)  # nobody takes it up
    shard.step(after_ms=50)
    shard.report(STARTED, attempt=4, after_ms=10)
    assert said(shard, "It was dispatched") == (
        "It was dispatched 4 times: attempt 1 failed at w1 (boom), attempt 2 was returned by w1 and attempt 3 was "
        "taken up by no worker."
    )
    assert shard.life().attempts[2].waited_last == ""
    shard.step(after_ms=1_000)
    shard.step(after_ms=50)
    assert said(shard, "It was dispatched").endswith("attempt 3 was taken up by no worker and 1 more came to nothing.")


def test_an_attempt_that_fell_silent_is_told_with_its_worker() -> None:
    shard = Watched(make_policy(leases=LEASES))
    shard.submit("a", "r")
    shard.report(STARTED, after_ms=10)
    shard.step(after_ms=1_000)
    shard.step(after_ms=50)
    assert said(shard, "It was dispatched") == (
        "It was dispatched 2 times: attempt 1 was taken up by w1, and its lease ran out."
    )
    shard.report(SUCCEEDED, attempt=2, after_ms=500)
    assert story(shard)[0] == (
        "Run r of tenant a waited 60 ms, ran 500 ms, lost 1.0 s until a silent worker was given up and succeeded at "
        "attempt 2."
    )


def test_what_its_worker_said_when_it_failed() -> None:
    shard = Watched(make_policy())
    shard.submit("a", "r")
    shard.report(FAILED, after_ms=10)
    (*_, (_, (report,))) = shard._steps
    report.error = "no such\nmodel"  # type: ignore[union-attr]
    assert story(shard)[0].endswith(r"and failed (no such\nmodel), not to be tried again.")


def test_debt_is_told() -> None:
    shard = Watched(make_policy(runs=1, quantum=100), run_id="r")
    shard.submit("a", "first")
    shard.submit("z", *[f"z{number}" for number in range(9)], cost=100)
    shard.step(make_report(shard.dispatches[0], tokens=900), after_ms=10)
    shard.submit("a", "r", cost=100)
    assert said(shard, "When it came") == "When it came, a owed 700 tokens, which its rounds had to pay first."


def test_owners_and_policies_that_changed() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z1")
    shard.submit("a", "r")
    shard.step(Takeover(2), after_ms=1_500)
    shard.state_policy(make_policy(runs=1))
    assert said(shard, "The shard") == "The shard changed hands 1 time meanwhile, and had no scheduler for 1.5 s."
    assert said(shard, "The policy") == "The policy was changed meanwhile: test v4 (step 6)."


@pytest.mark.parametrize(
    ("source", "hint", "max_tokens", "told"),
    [
        ("hint", 90, None, "as its request said"),
        ("hint", 90, 50, "as its request said, within its max_tokens 50"),
        (
            "history",
            90,
            None,
            DEFAULT,
        ),
        (
            "max",
            90,
            None,
            f"{DEFAULT} or the 90 of its request, if that is more",
        ),
    ],
)
def test_where_an_estimate_comes_from(source: str, hint: int, max_tokens: int | None, told: str) -> None:
    shard = Watched(replace(make_policy(), estimates=Estimates(source=source)))  # type: ignore[arg-type]
    shard.submit("a", "r", cost=hint, max_tokens=max_tokens)
    assert said(shard, "It was estimated").split("tokens, ")[1] == f"{told}."


def test_an_estimate_from_history() -> None:
    shard = Watched(replace(make_policy(), estimates=Estimates(prior_runs=1)))
    shard.submit("a", "first", workflow="sum")
    shard.step(make_report(shard.dispatches[0], tokens=80))
    shard.submit("a", "r", workflow="sum", cost=None)
    assert said(shard, "It was estimated") == (
        "It was estimated at 80 tokens, from 1 run of that workflow of its tenant (mean 80) and, as 1 run more, the "
        "mean of its workflow over all tenants (80)."
    )
    other = Watched(replace(make_policy(), estimates=Estimates(prior_runs=1)))
    other.submit("a", "first", workflow="sum")
    other.step(make_report(other.dispatches[0], tokens=80))
    other.submit("a", "r", workflow="draw", cost=None)
    assert "from the mean of its tenant's other workflows (80)" in said(other, "It was estimated")


def test_other_classes_are_named_by_their_name() -> None:
    shard = Watched(make_policy(runs=1, classes=("high", "low")))
    shard.submit("z", "z1", "z2", class_="high")
    shard.submit("a", "r", class_="low")
    shard.finish(shard.dispatches[0], after_ms=10)
    assert said(shard, "Meanwhile") == (
        "Meanwhile 1 run went before it; of their tokens z got 100.0 % (class high) and its own tenant got 0.0 % "
        "(weight 1, stated share 100.0 % of its class)."
    )
    assert "1 run of classes listed before its own (100 tokens)" in said(shard, "It came")


def test_many_tenants_are_summed_up() -> None:
    shard = Watched(make_policy(runs=1))
    shard.submit("z", "z0")
    for number in range(5):
        shard.submit(f"o{number}", "o", cost=100)
    shard.submit("a", "r")
    for number in range(5):
        shard.finish(shard.dispatches[number], after_ms=10)
    assert "2 other tenants 40.0 %" in said(shard, "Meanwhile")


def test_the_rounds_of_a_group_are_told_without_what_it_earned() -> None:
    policy = replace(make_policy(runs=1, rules={name: TenantRules(group="g") for name in ("a", "b")}), groups={"g": 2})
    shard = Watched(policy)
    shard.submit("z", "z1", cost=100)
    shard.submit("a", "r", cost=300)
    shard.finish(shard.dispatches[0], after_ms=10)
    assert said(shard, "It went").startswith("It went 2 rounds after it came")


def test_what_others_chose_cannot_write_on_the_terminal() -> None:
    shard = Watched(make_policy(), tenant="a\x1b[2J", run_id="r\n")
    shard.submit("a\x1b[2J", "r\n")
    assert story(shard)[0].startswith(r"Run r\n of tenant a\x1b[2J is in flight")
