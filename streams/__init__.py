"""Tenant-fair run scheduling on Kafka: deficit round robin, metered in tokens.

The rooms, from the outside in: `cli` calls `demo`, `bench`, `app`, `simulate`, `admin`, `client` and
`local`; those use `kafka`, `rows` and `wire`; and everything rests on `core`, which is pure.
`errors`, `clock` and `resources` may be used from anywhere but the core.
"""

__version__ = "0.1.0"
