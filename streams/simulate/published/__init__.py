"""Published figures, reproduced: 27 tenants of a chat arena at one engine, FIFO against fair schedulers.

Y. Sheng, S. Cao, D. Li, B. Zhu, Z. Li, D. Zhuo, J. E. Gonzalez, I. Stoica, "Fairness in Serving Large Language
Models", OSDI 2024 (arXiv 2401.00588), measured them on a real engine, with output priced twice input. We play the same
trace (`streams.simulate.traces.ARENA`) at a model of that engine.

What is theirs     the trace; the measure (`difference`); how the engine takes requests and goes round (`engine`); the
                   time that its steps take, from the profile in their artifact; who is compared with whom (`queues`)
What is ours       the model; `deficit`, our scheduler before that engine, with windows of several sizes
What is fitted     one number: what the server adds to a step, so that FIFO takes as long as it took them (`figures`)

Held against the recordings in the artifact, request by request: half of the requests end within 2 s of when they ended
on the engine under FIFO and the virtual token counter (where half took more than 51 and 21 s), within 4 s with
predicted lengths (`tests/unit/simulate/published`).

The largest difference of a run is that of one minute, and which requests fall into one minute depends on the smallest
things: a pool that is one percent slower may give half as much again. So the figures of pools nearby are shown, too.
"""
