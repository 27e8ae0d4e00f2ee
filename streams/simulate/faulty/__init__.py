"""A whole deployment on a virtual clock, and everything that can go wrong with it: seeded, without Kafka.

Topics are logs in memory that keep Kafka's promises and no more (`log`): transactions that are open, committed or
aborted, readers that see what is committed, writers that are fenced. On them work producers (`traffic`), workers
(`workers`) and processes that own shards (`owner`); who owns what, and what becomes of them, is in `world`. The shard
and its step are the real ones: `world` is given what loads and steps a shard (`shard`), and does not know how.

A fault may come between any two effects of a step: after each row, dispatch, rejection, forwarded record, the journal
record, the positions, before the commit, after it. Then the owner dies, or its step fails, or it sleeps while others
take over, and wakes up as a zombie. The kinds and how often each fired are in `chances`: a fault that never fires
proves nothing.

After every step `witness` works out again what must be true, from the log and from the owner's memory. A run is a
function of its seed: what was found is found again.

What may not happen here: a clock, a thread, a draw from anything but the run's own `random.Random`, an order that
depends on hashes of texts.
"""
