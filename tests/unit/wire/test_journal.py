"""The journal: a step read back is the step that was written."""

from __future__ import annotations

import orjson
import pytest

from streams.core.effects import Dispatch, Effects, Rejection, Revoke, Settlement
from streams.core.inputs import Undeliverable
from streams.core.policy import Policy, TenantRules
from streams.errors import BadRecord
from streams.wire import (
    AppliedPolicy,
    Decision,
    InputRange,
    JournalEntry,
    Proof,
    RefusedRun,
    decode_journal,
    encode_journal,
    journal_digest,
)
from streams.wire.topics import MAX_MESSAGE_BYTES
from tests.unit.wire.avro_values import assert_conforms

INPUTS = (InputRange("policy", 4, 4), InputRange("completions", 10, 30), InputRange("requests", 7, 90))


def dispatched(seq: int, run_id: str, tenant: str = "acme") -> Dispatch:
    return Dispatch(
        seq=seq,
        tenant=tenant,
        run_id=run_id,
        workflow="w",
        class_="default",
        attempt=1,
        estimate=1_000,
        lease_ms=60_000,
        deadline_ms=None,
        body=b'{"payload":"not in the journal"}',
        submitted_ms=5,
        round=3,
        deficit_before=250,
        deficit_after=-750,
    )


def busy_step() -> Effects:
    effects = Effects(step=12, now_ms=1_000)
    effects.dispatches += [dispatched(1, "r-1"), dispatched(3, "r-2")]
    effects.revokes.append(Revoke(2, "acme", "r-0", 1, "cancelled"))
    effects.settlements.append(Settlement("acme", "r-0", 1, "succeeded", 900, 1_100, reported=True))
    effects.rejections.append(Rejection("acme", "r-9", "queue_full", "full", 5, 5, 100, 88, b'{"payload":1}'))
    effects.counts["dispatched"] += 2
    return effects


def test_a_busy_step() -> None:
    value = encode_journal(busy_step(), shard=3, epoch=2, policy_version=4, inputs=INPUTS, takeover=True)
    assert_conforms(value, "journal")
    entry = decode_journal(value)
    assert entry == JournalEntry(
        shard=3,
        step=12,
        epoch=2,
        takeover=True,
        now_ms=1_000,
        policy_version=4,
        inputs=INPUTS,
        decisions=(
            Decision(1, "acme", "r-1", "default", 1, 1_000, 250, 3),
            Decision(3, "acme", "r-2", "default", 1, 1_000, 250, 3),
        ),
        revokes=(Revoke(2, "acme", "r-0", 1, "cancelled"),),
        settlements=(Settlement("acme", "r-0", 1, "succeeded", 900, 1_100, reported=True),),
        rejections=(RefusedRun("acme", "r-9", "queue_full", 88),),
        counts={"dispatched": 2},
    )
    assert [each.deficit_after for each in entry.decisions] == [-750, -750]


def test_a_step_in_which_nothing_happened() -> None:
    value = encode_journal(Effects(1, 5), shard=0, epoch=1, policy_version=-1, inputs=())
    assert_conforms(value, "journal")
    entry = decode_journal(value)
    assert (entry.step, entry.now_ms, entry.takeover, entry.policy_version) == (1, 5, False, -1)
    assert not any((entry.inputs, entry.decisions, entry.revokes, entry.settlements, entry.rejections, entry.counts))


def test_what_no_topic_takes_is_an_input_of_its_own() -> None:
    given = (Undeliverable("acme", "r-1", 2_000_000, 1_048_588), Undeliverable("acme", "r-2", 2_000_000, None))
    value = encode_journal(
        Effects(1, 5), shard=0, epoch=1, policy_version=-1, inputs=(), undeliverable=given, largest_body=1_000
    )
    assert_conforms(value, "journal")
    entry = decode_journal(value)
    assert (entry.undeliverable, entry.largest_body) == (given, 1_000)


def test_what_proves_a_step() -> None:
    policies = (AppliedPolicy(4, "ann", 900, Policy(name="live", tenants={"acme": TenantRules(weight=3)})),)
    unread = (InputRange("completions", 12, 12), InputRange("requests", 80, 90))
    proof = Proof(core=7, state="0f" * 16, previous="ab" * 32)
    value = encode_journal(
        busy_step(),
        shard=3,
        epoch=2,
        policy_version=4,
        inputs=INPUTS,
        policies=policies,
        unread=unread,
        proof=proof,
    )
    assert_conforms(value, "journal")
    entry = decode_journal(value)
    assert (entry.policies, entry.unread) == (policies, unread)
    assert (entry.core, entry.state, entry.previous) == proof


def test_a_record_of_before_there_was_a_proof_has_none() -> None:
    entry = decode_journal(encode_journal(busy_step(), shard=3, epoch=2, policy_version=4, inputs=INPUTS))
    assert (entry.core, entry.state, entry.previous, entry.policies, entry.unread) == (None, "", "", (), ())


def test_the_digest_of_a_record_is_one_that_anybody_can_work_out() -> None:
    assert journal_digest(b"test") == "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # sha256sum


@pytest.mark.parametrize("policy", [[], 5, {"quantum": 0}, {"quantums": 5}])
def test_what_is_no_policy_is_refused(policy: object) -> None:
    stated = [AppliedPolicy(4, "ann", 900, Policy())]
    value = encode_journal(Effects(1, 5), shard=0, epoch=1, policy_version=4, inputs=(), policies=stated)
    message = orjson.loads(value)
    message["policies"][0]["policy"] = policy
    with pytest.raises(BadRecord) as refused:
        decode_journal(orjson.dumps(message))
    assert (refused.value.field or "").startswith("policies")


def test_a_policy_that_only_half_a_json_reader_takes_is_refused() -> None:
    stated = [AppliedPolicy(4, "ann", 900, Policy(name="x"))]
    value = encode_journal(Effects(1, 5), shard=0, epoch=1, policy_version=4, inputs=(), policies=stated)
    with pytest.raises(BadRecord):
        decode_journal(value.replace(b'"policy":{"name":"x"}', b'"policy":{"name":"\xff"}'))


def test_payloads_stay_out_of_it() -> None:
    assert b"payload" not in encode_journal(busy_step(), shard=3, epoch=2, policy_version=4, inputs=INPUTS)


def test_the_largest_step_fits_its_topic() -> None:
    # Control characters are the longest in JSON: six bytes each.
    effects = Effects(1, 5)
    longest = "\x01" * 255
    for seq in range(4_000):
        effects.dispatches.append(dispatched(2**62 + seq, longest, tenant=longest))
    assert len(encode_journal(effects, shard=0, epoch=1, policy_version=-1, inputs=INPUTS)) < MAX_MESSAGE_BYTES


def test_columns_of_unequal_length_are_refused() -> None:
    message = orjson.loads(encode_journal(busy_step(), shard=3, epoch=2, policy_version=4, inputs=INPUTS))
    message["decisions"]["round"].pop()
    with pytest.raises(BadRecord) as refused:
        decode_journal(orjson.dumps(message))
    assert refused.value.field == "decisions"
