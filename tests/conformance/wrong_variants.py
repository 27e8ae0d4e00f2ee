"""Schedulers that are wrong in a known way: an order that they too would produce tells nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Item = tuple[str, str, int]  # tenant, run id, cost
Order = Callable[[list[Item], dict[str, int]], list[str]]


def _queues(items: list[Item]) -> dict[str, deque[tuple[str, int]]]:
    queues: dict[str, deque[tuple[str, int]]] = {}
    for tenant, run_id, cost in items:
        queues.setdefault(tenant, deque()).append((run_id, cost))
    return queues


def fifo(items: list[Item], _quanta: dict[str, int]) -> list[str]:
    return [run_id for _, run_id, _ in items]


def round_robin(items: list[Item], _quanta: dict[str, int]) -> list[str]:
    """One run of each in turn, whatever it costs."""
    queues, order = _queues(items), []
    while any(queues.values()):
        order += [queue.popleft()[0] for queue in queues.values() if queue]
    return order


def _drr(items: list[Item], quanta: dict[str, int], *, carry: bool = True, most: int | None = None) -> list[str]:
    queues, order = _queues(items), []
    deficits = dict.fromkeys(queues, 0)
    for _ in range(100 + sum(cost for _, _, cost in items)):  # rounds; without carry some never come
        for tenant, queue in queues.items():
            deficits[tenant] = quanta[tenant] + (deficits[tenant] if carry else 0)
            served = 0
            while queue and queue[0][1] <= deficits[tenant] and (most is None or served < most):
                run_id, cost = queue.popleft()
                deficits[tenant] -= cost
                order.append(run_id)
                served += 1
            if not queue:
                deficits[tenant] = 0
    return order


def one_per_visit(items: list[Item], quanta: dict[str, int]) -> list[str]:
    return _drr(items, quanta, most=1)


def no_carry(items: list[Item], quanta: dict[str, int]) -> list[str]:
    """What is left of a quantum is lost."""
    return _drr(items, quanta, carry=False)


def no_weight(items: list[Item], quanta: dict[str, int]) -> list[str]:
    return _drr(items, dict.fromkeys(quanta, min(quanta.values())))


def classic(items: list[Item], quanta: dict[str, int]) -> list[str]:
    """The right one, to check the family by."""
    return _drr(items, quanta)


VARIANTS: dict[str, Order] = {
    "fifo": fifo,
    "rr": round_robin,
    "one_per_visit": one_per_visit,
    "no_carry": no_carry,
    "no_weight": no_weight,
}
