"""Arithmetic over the topics: what must be true of them, whoever decided, and where it is not. No core is run.

`verify(recording)` reads every topic once, follows each shard's journal step by step, and keeps books of what is open.
Each thing found wrong is a `Problem` with its shard, its step or record, and both sides. What a module checks stands in
its docstring; `findings.CHECKS` lists it all.

What is left to a replay (`streams.audit.replay`), since no topic tells it: the estimate of a run before its first
dispatch, so limits in tokens; the order between tenants beyond the bound; in which rounds a tenant with a cap or in a
group earns, so the bound for it (`verify(..., replay=True)` has it, see `measured`); the deficit that a flow comes in
with; counts of how runs ended; all state hashes but the last one's, and the version of the core.

An insider who can write all topics can make the chain right again. Then the other topics tell, and the sums.

Memory: the runs that have not ended, the attempts in flight, the memory of ended runs that the policy states, a few
numbers a tenant, and of the state topic 200 bytes a row. Not the history.

Rooms: `verifying` merges shards and topics by time. `shard` follows one shard: `chain`, `inputs`, `policies`, `counts`,
then what happened in a step, `endings`, `door` with `limits`, `serving`, kept in `books` of `subjects` and in `memory`.
`stretch` holds deficits and the bound, `intervals` shares. `matching` pairs the journal with other topics:
`dispatches`, `refusals`, `forwards`. `rows` compares the end, `checkpoints` what was kept on the way.
"""

from streams.audit.verify.findings import CHECKS, MOST, Problem
from streams.audit.verify.verifying import INTERVAL_MS, Report, verify

__all__ = ["CHECKS", "INTERVAL_MS", "MOST", "Problem", "Report", "verify"]
