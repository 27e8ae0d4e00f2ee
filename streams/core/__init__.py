"""The scheduling core: who is served next, and who pays what. Pure: no clock, no I/O, no logging, no randomness.

Rules of this package, enforced by import contracts and tests: the standard library and `streams.errors` only;
integers only; time is an argument (`now_ms` of a step); one door (`Shard.step`): the same inputs and times
give the same effects, byte for byte, on any machine. Input that can't be taken is refused before anything is changed.

Theory
------
Deficit round robin (M. Shreedhar, G. Varghese, "Efficient Fair Queueing using Deficit Round Robin", SIGCOMM 1995)
over one queue per tenant, metered in tokens. A visit of flow i adds Q x f_i to its deficit and serves while the
deficit covers the head's cost. We differ from the paper in six ways:

1. The cost of a run is not known when it is served. It is guessed at admission (`estimator`), charged at dispatch,
   and corrected by actual - estimate when the run ends (`ledger`). So the deficit may become negative: debt.
2. A flow that leaves the ring loses its credit, as in the paper, but keeps its debt, which fades by one quantum for
   each round that passes its place. Credit that a refund makes while nothing is queued fades in the same way.
3. The served order is that of the plain sweep, but nothing is swept: the round in which a head becomes affordable
   is computed, and a heap over (round, place) yields the visits that serve something: O(log n) each for n active
   flows, whatever cost / quantum is (`ring`).
4. Service is bounded by a window of runs and tokens in flight, not by a link's rate: if it fills in the middle
   of a visit, that visit goes on when there is room again.
5. A flow's place in the ring is given once. A newcomer's is behind all others, and its first visit is in the next
   round: in the one under way, new names, one after the other, would keep that from ending. Who returns keeps its
   place, and is visited in the round under way if the cursor has yet to reach it: that is once a round at most.
6. Flows can share one weight: the members of a group divide its quantum among those of them that are in the ring
   (`groups`), so who owns many tenant ids gets no more than who owns one.

Bound
-----
For two flows i, j of a class that have work all the time and are never at a cap of their tenant, over any interval:

    |S_i / f_i - S_j / f_j|  <=  Q + (E + K_i D) / f_i + (E + K_j D) / f_j

S   tokens served, at their true cost               f   weight
Q   quantum: tokens a flow of weight 1 earns a round   E   largest estimate
K   most attempts of that flow whose account is open   D   largest under-estimate plus largest over-estimate

From the first visit of each on: a newcomer's is in the round after the one in which it came (5.), and everybody else
may be visited in both, so to an interval that begins before it another Q is to be added.

It does not grow with time. The first terms are the paper's: whole quanta, and a head that doesn't fit yet. The
last ones are what the estimates of the attempts still open (in flight, or lost and yet to be heard of) may be wrong
by. `gap` derives it flow by flow, and measures both sides.

groups      For a member f is its part of the group's weight, as long as nobody of the group comes or goes. All of
            them together never earn more than the group's weight, whoever comes and goes: see `groups`.
classes     What holds between them, and why it is not deficit round robin again, stands in `classes`.

Rooms
-----
data         `inputs`, `effects`, `records`, and their living forms `runs` and `flows`; the words `reasons` and `counts`
policy       `policy`; documents of it: `policy_check` over `policy_fields`, `policy_sense`, `policy_problems`
a step       `shard`: the door. `state`: what a shard knows. The rules, by occasion: `admission`, `outcomes`,
             `endings`, `expiry`, `removal`, `policy_change`, `dispatching`
whose turn   `ring`, `groups`, `classes`; `fifo` inside a flow, `window` around all
cost         `estimator` over `ratios`, `ledger`; `lost`: accounts that stay open
memory       `overload`, `forgetting`; `timers`
elsewhere    `resharding` over `rejoining`: another number of shards. `stock`: nothing is lost by it
to look at   `snapshot`, `run_view`, `waiting`; `gap`: the bound, measured while it works
to rely on   `loading`: rows. `invariants` and `memory_checks`: all of it worked out again
"""

from streams.core.version import VERSION

__all__ = ["VERSION"]
