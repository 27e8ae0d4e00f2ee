"""Between classes: whose turn it is, when classes share by weight or lower ones have a minimum.

Tenants of a class share by deficit round robin (`ring`). One level up, classes go by start-time fair queueing
(P. Goyal, H. Vin, H. Cheng, "Start-time Fair Queueing: A Scheduling Algorithm for Integrated Services Packet Switching
Networks", SIGCOMM 1996): it needs no second quantum, no known rate of service (ours is whatever the window allows),
books one number a dispatch and looks at each class once: O(classes), of which there are at most 64.

The shard has a *clock* V and each class a *tag* T, both virtual times: tokens / share, in units of 1 / `UNIT`.

shares      Next is the class with work whose T is smallest, of equals the one listed first. V becomes that T (it
            never goes back), and T grows by x / r: x tokens charged, r its weight.
strict      V grows by x / 100 for x tokens charged in any class. A class whose policy guarantees it r percent is *due*
            if after its next run, which costs x, it would still not be ahead: T + x / r <= V + x / 100. Next is the
            first listed class that is due, and T grows by x / r; if none is, the first listed that has work. What
            that one takes is held against nobody: its T, if it has a guarantee, moves with V.

With work is a class with a flow that may go. One with nothing queued comes back at max(T, V): its credit is dropped,
while debt lasts until V has passed it, as for flows. One whose flows are all `BLOCKED` neither earns nor repays: its T
moves with V. When an attempt turns out to have cost more or less than it was charged, the difference is booked as the
attempt was (`FlightRecord.class_pays`): who estimates a quarter gets no fourfold minimum.
How an attempt was booked that was given up as lost is not remembered: its share pays a late bill, and no refund raises
what it may claim.

Bound
-----
E: largest estimate; D_c: the most by which the estimates of what is in flight in class c are too small, plus the most
by which they are too large; C: classes.

shares      For two classes with work all the time, over any interval: |S_i / r_i - S_j / r_j| is at most
            (E + D_i) / r_i + (E + D_j) / r_j (the paper's theorem on fairness), so a class lags its share of all that
            is served by at most (C - 1) E, and the D's. S is tokens served, at their true cost. Rounding adds less than
            r / `UNIT` of a token a run.
strict      A class with work all the time lags its minimum by at most one run of its own, one of another class and one
            of each class with a minimum that is listed before it, and the D's. Minimums add up to 99 at most.

Kin: the guarantee is that of an unsatisfied class in link sharing, which goes before all that are satisfied
(S. Floyd, V. Jacobson, "Link-sharing and Resource Management Models for Packet Networks", 1995), as in CBQ and HTB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streams.core.policy import Policy
    from streams.core.records import Key, Record, ShardRecord
    from streams.core.ring import Ring

# Virtual time of one token at a share of 1. Divisible by 1 to 12, by 100 and by what people give as weights; for other
# shares the error is below share / UNIT of a token a run. The dearest run there may be (10^12 tokens) fits the 64 bits
# of a row thirty times over. A class that is further from the clock than eight of those is taken to be no further.
UNIT: Final = 277_200
PERCENT: Final = 100
MILLION: Final = 1_000_000
REBASE: Final = 1 << 61  # the clock is set to 0 before it leaves those 64 bits
FURTHEST: Final = 1 << 61  # the most by which a tag differs from the clock when it is booked


class Turns:
    """Whose turn it is among the classes. Only where there is something to decide: else a shard has no `Turns`."""

    __slots__ = ("_record", "_rings", "_sharing", "by_weight", "shares")

    def __init__(self, policy: Policy, rings: Mapping[str, Ring], record: ShardRecord) -> None:
        """Work out the shares. `rings` are in order of priority; `record` holds the clock."""
        self.by_weight = policy.between_classes == "shares"
        self._record = record
        self._rings = tuple(rings.values())
        if self.by_weight:  # a class that the policy no longer names has the least share until it is empty
            self.shares = dict.fromkeys(rings, 1) | {each.name: each.weight for each in policy.classes}
        else:
            self.shares = {each.name: each.min_share for each in policy.classes if each.min_share}
        self._sharing = tuple(ring for name, ring in rings.items() if name in self.shares)

    def next(self) -> tuple[Ring, bool] | None:
        """Return the class whose turn it is, and whether it pays for it with its share; None if no class has work."""
        if self.by_weight:
            first = min(self._with_work(), key=lambda ring: ring.record.tag, default=None)
            return None if first is None else (first, True)
        for ring in self._sharing:
            if self._is_due(ring):
                return ring, True
        for ring in self._with_work():
            return ring, False
        return None

    def charge(self, ring: Ring, tokens: int, changed: dict[Key, Record | None], *, pays: bool) -> None:
        """Book the estimate of a run that starts in the class that `next` returned."""
        if self.by_weight:
            ahead = ring.record.tag - self._record.clock
            if ahead > 0:  # not if a refund has set the tag back behind the clock
                self._advance(ahead, ring, changed)
        self.correct(ring, tokens, changed, pays=pays)

    def correct(self, ring: Ring, tokens: int, changed: dict[Key, Record | None], *, pays: bool) -> None:
        """Book tokens of an attempt of the class beyond what it was charged before; negative: it was charged more."""
        if not -REBASE <= self._record.clock <= REBASE:
            self._rebase(changed)
        if not self.by_weight:
            self._advance(tokens * UNIT // PERCENT, ring, changed)
        share = self.shares.get(ring.record.class_)
        if share is not None:
            time = tokens * UNIT // (share if pays or self.by_weight else PERCENT)
            ring.record.tag = _near(ring.record.tag + time, self._record.clock)
            changed[ring.key] = ring.record

    def welcome(self, changed: dict[Key, Record | None]) -> None:
        """Let the classes that have come back begin at the clock. To be called in each step, before `next`."""
        clock = self._record.clock
        for ring in self._sharing:
            if ring.came_back:
                ring.came_back = False
                if ring.record.tag < clock:
                    ring.record.tag = clock
                    changed[ring.key] = ring.record

    def take_over(self, before: Turns | None, changed: dict[Key, Record | None]) -> None:
        """Take over from the turns under another policy: who had no share of this kind till now begins at the clock."""
        known = before.shares if before is not None and before.by_weight == self.by_weight else {}
        for ring in self._sharing:
            ring.came_back = ring.came_back and ring.record.class_ in known
            if ring.record.class_ not in known and ring.record.next_place:  # without any flow it has no row
                ring.record.tag = self._record.clock
                changed[ring.key] = ring.record

    def share_ppm(self, ring: Ring) -> int:
        """Return the part of the tokens the class has a claim to now, in ppm; 0 if it has no work or no share."""
        share = self.shares.get(ring.record.class_, 0)
        whole = sum(self.shares[each.record.class_] for each in self._with_work()) if self.by_weight else PERCENT
        return share * MILLION // whole if ring.active else 0

    def behind(self, ring: Ring) -> int:
        """Return the tokens by which a class with work is behind its share; negative: ahead. 0 without work or share.

        By weight, that is measured from where all classes with work are on average; else from the clock.
        """
        share = self.shares.get(ring.record.class_)
        if share is None or not ring.active:
            return 0
        if not self.by_weight:
            return (self._record.clock - ring.record.tag) * share // UNIT
        weights = [(self.shares[each.record.class_], each.record.tag) for each in self._with_work()]
        average = sum(weight * tag for weight, tag in weights) // sum(weight for weight, _ in weights)
        return (average - ring.record.tag) * share // UNIT

    def _with_work(self) -> Iterator[Ring]:
        return (ring for ring in self._rings if ring.active)

    def _is_due(self, ring: Ring) -> bool:
        credit = self._record.clock - ring.record.tag
        if credit <= 0:  # the usual case: nothing to look up
            return False
        cost = ring.peek()
        share = self.shares[ring.record.class_]
        return cost is not None and cost * UNIT // share - cost * UNIT // PERCENT <= credit

    def _advance(self, time: int, served: Ring, changed: dict[Key, Record | None]) -> None:
        """Move the clock, and with it the classes for which time stands still."""
        self._record.clock += time
        for ring in self._sharing:
            if ring.blocked and not ring.active and ring is not served:
                ring.record.tag += time
                changed[ring.key] = ring.record

    def _rebase(self, changed: dict[Key, Record | None]) -> None:
        """Set the clock to 0 and the tags back by as much. What has nothing queued loses only credit it won't get."""
        clock, self._record.clock = self._record.clock, 0
        for ring in self._sharing:
            if ring.record.next_place:
                idle = not ring.active and not ring.blocked
                tag = _near(ring.record.tag - clock, 0)
                ring.record.tag = max(tag, 0) if idle else tag
                changed[ring.key] = ring.record


def _near(tag: int, clock: int) -> int:
    return min(max(tag, clock - FURTHEST), clock + FURTHEST)


def turns_of(policy: Policy, rings: Mapping[str, Ring], record: ShardRecord) -> Turns | None:
    """Return the turns of the classes under a policy; None if they go in order and nobody is guaranteed anything."""
    shared = policy.between_classes == "shares" or any(each.min_share for each in policy.classes)
    return Turns(policy, rings, record) if shared and len(rings) > 1 else None
