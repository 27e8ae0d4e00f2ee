"""Why did my run wait? One run, from its request to its end, told from a replay: what each millisecond went to.

Nothing is guessed: the shard is replayed (`streams.audit.replay`), and after every step the core itself says why the
run has not been dispatched (`streams.core.run_view`). So an explanation holds as far as the replay does, and says if it
does not.

Rooms: `requests` finds the run; `watching` follows it through the steps; `parts` says what its time is divided into;
`meanwhile` who was served, and `curve` how its tenant stood. `explanation` is the result, a `life` its middle; `story`
over `sentences`, `document` and `picture` show it.
"""

from streams.audit.explain.document import document
from streams.audit.explain.explanation import Explanation, explain
from streams.audit.explain.story import tell

__all__ = ["Explanation", "document", "explain", "tell"]
