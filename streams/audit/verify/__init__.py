"""Arithmetic over the topics: what must be true of them, whoever decided, and where it is not. No core is run.

`verify(recording)` reads every topic once, follows each shard's journal step by step, and keeps books of what is open.
Each thing found wrong is a `Problem` with its shard, its step or record, and both sides. What a module checks stands in
its docstring; `findings.CHECKS` lists it all.

What is left to a replay (`streams.audit.replay`), since no topic tells it: the estimate of a run before its first
dispatch, so limits in tokens; the order between tenants beyond the bound; rounds that a tenant does not earn in, so the
bound for tenants with a cap or in a group; the bytes of a state hash other than the last one's.

An insider who can write all topics can make the chain right again. Then the other topics tell, and the sums.

Memory: the runs that have not ended, the attempts in flight, the memory of ended runs that the policy states, a few
numbers a tenant, and of the state topic 200 bytes a row. Not the history.

Rooms: `verifying` merges shards and topics by time. `shard` follows one shard: `chain`, `inputs`, `policies`, `counts`,
then what happened in a step, `endings`, `door` with `limits`, `serving`, kept in `books` of `subjects` and in `memory`.
`stretch` holds deficits and the bound, `intervals` shares. `matching` pairs the journal with other topics:
`dispatches`, `refusals`, `forwards`. `rows` compares the end.
"""

from streams.audit.verify.findings import CHECKS, MOST, Problem
from streams.audit.verify.verifying import INTERVAL_MS, Report, verify

__all__ = ["CHECKS", "INTERVAL_MS", "MOST", "Problem", "Report", "verify"]
