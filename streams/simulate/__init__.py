"""What a scheduler would do, on a virtual clock: workloads, a pool of slots, schedulers to compare, and the fair share.

The pool is simulated; the scheduler in it is the real one (the core, in `deficit_round_robin`) or a baseline behind the
same protocol. Everything is a function of its arguments: a workload's seed gives the same run on every machine.

What may not happen here: a clock, Kafka, the module-level functions of `random`, floats in what is compared.
Times are milliseconds from the beginning of the workload, costs are tokens; both are integers.

Rooms: `workload` and `traces` make arrivals; `pool` plays them against a `scheduler`: `deficit_round_robin` is ours,
`schedulers` are the others; `oracle` says what would have been fair; `backlog`, `bound`, `waits` and `report` say what
happened.
"""
