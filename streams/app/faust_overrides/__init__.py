"""All that this project changes inside Faust 0.15: each change with its reason, and with a pin.

Faust loses or doubles records in a rebalance, a restart and a crash (each seen on a real broker): it commits offsets
before its changelog is written, seeks before it clears what was fetched in between, and fences nobody. The shard
transactions make the positions part of the state, so what is left to change is the way records get here:

`consumer`  one event per partition's batch, delivered under a lock that a takeover can hold; read_committed.
`batches`   reads what is in a fetch without ever failing at it; `salvage` and `unpacking` do it for `batches`.
`coordination` hears what the group's coordination waits with, which Faust never asks for.
`recovery`  hands a rebalance to our own takeover, then seeks and resumes under that lock.
`wiring`    the subclasses that put the two in place.
`pins`      names the stock source that each override replaces, so that an upgrade says what it touched.

Nothing here knows what a shard is; nothing outside this folder touches a name of Faust's that begins with `_`.
"""

import logging

from streams.app.faust_overrides.consumer import Fetched, RecordBatch
from streams.app.faust_overrides.recovery import Handover
from streams.app.faust_overrides.wiring import SchedulerApp, SchedulerWorker

__all__ = ["Fetched", "Handover", "RecordBatch", "SchedulerApp", "SchedulerWorker"]

# Mode names a service's logger after the module of its class, so stock chatter would pass for ours.
logging.getLogger(__name__).setLevel(logging.WARNING)
