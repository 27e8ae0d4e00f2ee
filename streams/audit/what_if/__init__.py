"""What if: the recorded arrivals, at their actual costs, under other rules, beside what happened.

The recorded runs are played in the simulated pool (`streams.simulate`) against the real core under the changed policy,
or against FIFO. The same model is played under the rules that were in force, too: how far that is from what happened is
how far the rest may be trusted.

What may not happen here: a run of the record that is in no figure and in no count of what was left out.

Rooms: `reading` makes `runs` of a record; `traffic` states what of them is played; `change` says which other rules;
`model` plays, with `fifo` for the oldest of them; `comparison` makes figures of it; `rules` says all of that to people;
`show`, `document` and `picture` print and draw.
"""

from streams.audit.what_if.change import Change
from streams.audit.what_if.comparison import WhatIf, compare
from streams.audit.what_if.document import to_json
from streams.audit.what_if.reading import read_record
from streams.audit.what_if.show import WIDTH, show
from streams.audit.what_if.traffic import Traffic, make_traffic

__all__ = ["WIDTH", "Change", "Traffic", "WhatIf", "compare", "make_traffic", "read_record", "show", "to_json"]
