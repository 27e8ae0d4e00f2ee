"""What a scheduler would do, on a virtual clock: workloads, a pool of slots, schedulers to compare, and the fair share.

The pool is simulated; the scheduler in it is the real one (the core, in `deficit_round_robin`) or a baseline behind the
same protocol. Everything is a function of its arguments: a workload's seed gives the same run on every machine.

What may not happen here: a clock, Kafka, the module-level functions of `random`, floats in what is compared.
Times are milliseconds from the beginning of the workload, costs are tokens; both are integers.

Rooms
-----
who comes    `workload` over `costs`, or `traces`; `story`: with rules and a pool; `scenarios`: stories by name
who goes     `scheduler`: the protocol; `deficit_round_robin`: ours; `baselines`: the others; `contestants`: by name
playing      `pool`
what is fair `oracle`: at an instant; `fluid`: over time
what was     `backlog`, `bound`, `progress`, `report`, `waits`; `comparison`: all of it, of one story
to look at   `show`, `document`, `picture`
elsewhere    `faulty`: whole deployments under faults. `published`: the figures of a paper
"""
