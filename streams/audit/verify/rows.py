"""The rows of the state topic against each other, and against what the journal adds up to.

The latter only where the state is that of the journal's last step, and the books are whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.core.records import (
    FLIGHT,
    FLOW,
    RING,
    RUN,
    SHARD,
    FlightRecord,
    FlowRecord,
    Key,
    RingRecord,
    RunRecord,
    ShardRecord,
)
from streams.errors import StateUnreadable, visible
from streams.rows import (
    FILLING,
    MOVED,
    POSITIONS,
    PositionsRecord,
    StateHash,
    canonical,
    decode,
    decode_key,
    encode_key,
)

if TYPE_CHECKING:
    from streams.audit.recording import Recording
    from streams.audit.verify.books import Books
    from streams.audit.verify.chain import Chain
    from streams.audit.verify.findings import Findings
    from streams.audit.verify.subjects import Run

_SHOWN: Final = 3
_COMPARED: Final = frozenset({FLIGHT, FLOW, RING, RUN, SHARD})
_HEAD_END: Final = b"\n"  # what follows it in a run's row is its body


@dataclass(frozen=True, slots=True)
class State:
    """What the state topic holds of one shard: the rows that are compared, without the bodies of runs."""

    rows: dict[bytes, tuple[Key, bytes]]
    positions: PositionsRecord | None
    hash: str  # of all rows of the core
    unreadable: list[str]
    there: bool = True  # False: an export that ends earlier than it was made has none

    def estimate_of(self, shard: int, run: Run) -> int | None:
        """Return what the row of a run says that it is charged, tokens; None: it has no row."""
        found = self.rows.get(encode_key(shard, (RUN, *run.identity)))
        row = None if found is None else decode(*found)
        return row.estimate if isinstance(row, RunRecord) else None


def read_state(recording: Recording, shard: int) -> State:
    """Read a state partition once. Holds 200 bytes a row for the hash, and the rows that are compared."""
    if shard >= recording.partitions("state"):
        return State({}, None, "", [], there=False)
    rows: dict[bytes, tuple[Key, bytes]] = {}
    hashes, positions, unreadable = StateHash(), None, []
    for record in recording.read("state", shard):
        key, value = record.key or b"", record.value
        try:
            _, parts = decode_key(key)
            if parts == (POSITIONS,):
                row = decode(parts, value) if value is not None else None
                positions = row if isinstance(row, PositionsRecord) else None
                continue
            if parts[0] in {MOVED, FILLING}:
                continue
            hashes.apply([(key, None if value is None else canonical(decode(parts, value), value))])
        except StateUnreadable as error:
            unreadable.append(f"offset {record.offset}: {error}")
            continue
        if value is None:
            rows.pop(key, None)
        elif parts[0] in _COMPARED:
            rows[key] = (parts, value.partition(_HEAD_END)[0])
    return State(rows, positions, hashes.value, unreadable)


def hold_accounts(state: State, shard: int, findings: Findings) -> None:
    """What each flow was charged is what its attempts have spent, and what those in flight hold.

    Of the rows alone: so it can be told wherever the journal begins, and whatever is still being written to it.
    """
    charged: Counter[tuple[str, str]] = Counter()
    spent: Counter[tuple[str, str]] = Counter()
    in_flight: Counter[tuple[str, str]] = Counter()
    for parts, value in state.rows.values():
        match decode(parts, value) if parts[0] in {FLOW, FLIGHT} else None:
            case FlowRecord() as flow:
                charged[flow.tenant, flow.class_] = flow.charged
                spent[flow.tenant, flow.class_] = flow.actual
            case FlightRecord() as flight:
                in_flight[flight.tenant, flight.class_] += flight.charged
    for place in sorted(charged.keys() | in_flight.keys()):
        findings.looked_at["accounts"] += 1
        if charged[place] != spent[place] + in_flight[place]:
            sums = f"{spent[place]} spent and {in_flight[place]} in flight"
            tenant, class_ = map(visible, place)
            sentence = f"{tenant} in class {class_}: {charged[place]} tokens were charged; {sums}"
            findings.add("accounts", shard, sentence, topic="state")


class Rows:
    """Holds the rows of one shard against its books."""

    def __init__(self, books: Books, findings: Findings, chain: Chain) -> None:
        self._books: Final = books
        self._findings: Final = findings
        self._chain: Final = chain
        self._past: Final[Counter[str]] = Counter()  # by class: tokens of flows that were forgotten
        self._seen: Final[set[tuple[str, str]]] = set()
        self._gone: Final[dict[tuple[str, str], int]] = {}  # by flow: tokens that its row has not

    def compare(self, state: State) -> None:
        """Hold the rows against the books."""
        books = self._books
        runs, flights = 0, 0
        for parts, value in state.rows.values():
            row = decode(parts, value)
            match row:
                case FlowRecord():
                    self._flow(row)
                case RingRecord():
                    self._past[row.class_] += row.past_charged
                case RunRecord():
                    runs += 1
                    self._run(row)
                case FlightRecord():
                    flights += 1
                    self._flight(row)
                case ShardRecord():
                    self._shard(row)
            self._findings.looked_at["rows"] += 1
        if (runs, flights) != (len(books.runs), len(books.flights)):
            mine = f"{len(books.runs)} runs that have not ended and {len(books.flights)} attempts in flight"
            self._wrong(f"the journal leaves {mine}; there are rows of {runs} and {flights}")
        self._forgotten()

    def _flow(self, row: FlowRecord) -> None:
        flow = self._books.flows.get((row.class_, row.tenant))
        self._seen.add((row.class_, row.tenant))
        mine = (flow.charged, flow.settled, flow.dispatched) if flow is not None else (0, 0, 0)
        theirs = (row.charged, row.actual, row.dispatched)
        # One that was forgotten and came back has a row of its latter part; the former stands in the sum of its ring.
        gone = [mine[number] - theirs[number] for number in range(3)]
        if min(gone) < 0 or gone[0] != gone[1] or (gone[2] > 0) != (gone != [0, 0, 0]):
            where = f"{visible(row.tenant)} in class {visible(row.class_)}"
            self._wrong(f"{where}: the journal adds up to {_words(mine)}; the row has {_words(theirs)}")
        elif gone[0]:
            self._gone[row.class_, row.tenant] = gone[0]

    def _forgotten(self) -> None:
        """What the shard has forgotten of its flows stands in the sums of their rings."""
        self._gone.update(
            (place, flow.settled)
            for place, flow in self._books.flows.items()
            if place not in self._seen and flow.settled
        )
        sums: Counter[str] = Counter()
        for (class_, _), tokens in self._gone.items():
            sums[class_] += tokens
        for class_ in sorted(sums.keys() | self._past.keys()):
            if sums[class_] != self._past[class_]:
                tenants = [visible(tenant) for place, tenant in self._gone if place == class_]
                named = f" ({', '.join(tenants[:_SHOWN])})" if tenants else ""
                sentence = (
                    f"{sums[class_]} tokens stand in no flow's row{named}, {self._past[class_]} in the ring's sum"
                )
                self._wrong(f"class {visible(class_)}: {sentence}")

    def _run(self, row: RunRecord) -> None:
        run = self._books.runs.get((row.tenant, row.run_id))
        name = f"{visible(row.tenant)}/{visible(row.run_id)}"
        if run is None:
            self._wrong(f"{name} has a row, and by the journal it has ended or never came")
        elif run.position != row.position:
            self._wrong(f"{name} came with offset {run.position}, its row says {row.position}")
        elif run.estimate not in {None, row.estimate}:
            self._wrong(f"{name} was dispatched at {run.estimate} tokens, its row says {row.estimate}")

    def _flight(self, row: FlightRecord) -> None:
        attempt = self._books.flights.get((row.tenant, row.run_id, row.attempt))
        name = f"{visible(row.tenant)}/{visible(row.run_id)} attempt {row.attempt}"
        if attempt is None:
            self._wrong(f"{name} has a row, and by the journal it is not in flight")
        elif (attempt.seq, attempt.charged) != (row.seq, row.charged):
            mine, theirs = f"seq {attempt.seq}, charged {attempt.charged}", f"seq {row.seq}, charged {row.charged}"
            self._wrong(f"{name}: {mine} by the journal, {theirs} in its row")

    def _shard(self, row: ShardRecord) -> None:
        last = self._chain.last
        if last is not None and (row.step, row.now_ms, row.epoch) != (last.step, last.now_ms, last.epoch):
            mine = f"step {last.step} at {last.now_ms}, epoch {last.epoch}"
            self._wrong(
                f"the journal ends with {mine}; the row says step {row.step} at {row.now_ms}, epoch {row.epoch}"
            )

    def _wrong(self, sentence: str) -> None:
        step = None if self._chain.last is None else self._chain.last.step
        self._findings.add("rows", self._books.shard, sentence, step=step, topic="state")


def _words(account: tuple[int, int, int]) -> str:
    charged, spent, attempts = account
    return f"{charged} tokens charged, {spent} spent, {attempts} attempts"
