"""What the figures rest on, in sentences: part of the JSON, and of what people read."""

from __future__ import annotations

from typing import Final

RULES: Final[dict[str, str]] = {
    "arrival": "A run arrives at the timestamp of its request record, never before the request ahead of it in its "
    "partition, and never after the step that took it in.",
    "cost": "A run costs the tokens that were settled for all of its attempts in all; at least 1.",
    "duration": "A run holds a slot from the started report of an attempt to the report that ended it (timestamps of "
    "the records); without a started report from the dispatch; of an attempt that was lost, until the step that gave "
    "it up. At least 1 ms.",
    "retried": "All attempts of a run are one in the model: they hold one slot, one after the other, without the "
    "pauses between them. As it happened, the run waited until the first started report.",
    "failed": "A run that failed, was dead-lettered, cancelled or expired after an attempt of it had ended is played "
    "like one that succeeded, with what it cost and held until then: it used the pool just so.",
    "never_began": "A run of which no attempt has ended is left out, and counted by what became of it: what it would "
    "have cost is not known. That is so of refused, expired, cancelled and dropped runs, of those still waiting or in "
    "flight at the end of the record, and of runs whose request is not in the topics.",
    "interval": "The model begins empty, without debts and without a history of costs, at the first arrival of the "
    "interval; runs that arrived outside of it are left out and counted.",
    "policies": "What is not changed follows the recorded policies, each from the step at which the lowest shard took "
    "it.",
    "shards": "Each shard has its tenants and its part of the window, as live. FIFO has one queue for the whole "
    "window.",
    "fifo": "FIFO serves in the order of the arrivals; a run that is not to begin before a moment joins the queue "
    "then. It knows no classes, deadlines, caps and limits, and refuses nobody. A window in tokens counts true costs.",
    "handover": "From its dispatch to its start a run takes as long as --handover says (0 ms if it says nothing), and "
    "holds its slot meanwhile.",
    "not_modelled": "Nothing fails, is lost or is cancelled in the model, and no owner changes.",
    "shares": "Of the tokens of the runs handed out in the longest interval in which the same two tenants or more "
    "were backlogged all the time, as it happened; where weights were changed meanwhile, in the longest part of it "
    "between two changes. The stated share is max-min by weight; it is not given where classes, groups, caps or pauses "
    "have a say, too. "
    "Who was backlogged in all of it in that play could have used any amount, everybody else what it asked for: with "
    "fewer than two backlogged all got what they asked for, so tables and pictures state nothing.",
}
