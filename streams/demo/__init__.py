"""The demo: two stories on a real Kafka, with a real scheduler and a fleet of simulated workers, measured beside FIFO.

What is shown of the scheduler was read from the topics after it had happened; what is shown of FIFO is simulated
from the very arrivals, costs, durations and slots of that run, without any delay of its own.

What may not happen here: a figure that was not measured, or a claim that cannot fail.

Rooms: `entry` is the door; `story` says what happens; `run` plays it (`deployment`, `observer`, `player`); `records`
is what was read; `measure` and `claims` make figures of it; `show` and `progress` print.
"""

from streams.demo.entry import run_demo
from streams.demo.options import DemoOptions

__all__ = ["DemoOptions", "run_demo"]
