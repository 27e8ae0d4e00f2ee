"""Rows: the state of a shard as bytes, one Kafka record for each of the core's records, and back. Pure.

Frozen and versioned: what was written once can be read for ever, what a newer version wrote is refused.
"""

from streams.rows.codec import canonical, decode, encode
from streams.rows.keys import decode_key, encode_key
from streams.rows.migration import FILLING, MOVED, FillingRecord, MovedRecord
from streams.rows.positions import POSITIONS, PositionsRecord, Row, RuntimeRow, row_key
from streams.rows.state_hash import StateHash

__all__ = [
    "FILLING",
    "MOVED",
    "POSITIONS",
    "FillingRecord",
    "MovedRecord",
    "PositionsRecord",
    "Row",
    "RuntimeRow",
    "StateHash",
    "canonical",
    "decode",
    "decode_key",
    "encode",
    "encode_key",
    "row_key",
]
