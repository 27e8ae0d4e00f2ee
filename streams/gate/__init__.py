"""The gate: lets each tenant file requests in its own name only.

Kafka does not tell a reader who wrote a record. So where tenants have principals of their own, each writes to an
intake topic of its own, to which nobody else may write, and the gate alone writes to the requests topic:

    <prefix>requests.of.<tenant>  ->  the gate  ->  <prefix>requests    what the topic's tenant may ask for
                                                ->  <prefix>rejected    the rest, with the reason, its place, its bytes

Exactly once: a turn's records are written, and the group's offsets moved beyond them, in one transaction that holds
under the membership they were read by (KIP-447). Killed anywhere, frozen for longer than the group waits, or replaced,
a gate leaves nothing out and writes nothing twice. Any number of them share the topics; shards need not know of them.

Fair: a record that has been fetched waits for the turn under way and then for one share (`turns`) of each other tenant
at most, whatever they have written. In what order tenants come out here decides nothing else: that is the shards'.

This package judges requests by whose they are. It knows no policy, imports no Faust, and reads no state of a shard.
"""

from streams.gate.gate import run_gate
from streams.gate.settings import GateSettings

__all__ = ["GateSettings", "run_gate"]
