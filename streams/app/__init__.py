"""The scheduler process: takes records from Kafka, steps its shards, and writes what they decided, exactly once.

A shard is served by one thread of this process (`shard_task`) that takes what has arrived (`inbox`), reads it
(`intake`), lets the pure core advance (`step`), and commits everything the step decided in one Kafka transaction
(`transaction`). Which shards are served is decided by Kafka's group protocol through Faust; `takeover` fences the
former owner, loads the rows (`loading`) and sets the inputs to the positions found in them (`continuity`).

The one place where memory and log can part is a transaction that did not commit: then the shard's memory is thrown
away and loaded again. What cannot be known, or belongs to somebody else, ends the shard; it is taken again when that
may help (`unserved`, `retaking`), and what no other try can mend ends the process.

The only room that imports Faust, Mode and aiokafka, and all changes to their internals stand in `faust_overrides`.
What may not happen here: a rule about who is served next, a record written outside a step's transaction (but for
`status`, which is a view), work per record on the event loop, an error that is logged and passed over.
"""
