from __future__ import annotations

import asyncio

import pytest

from streams import clock
from streams.client.run import Run
from streams.client.simulated import simulated, tokens_of
from streams.client.verdicts import GiveUp
from streams.errors import ConfigError
from tests.unit.client.fakes import make_assignment


def make_run(body: bytes, estimate: int = 77) -> Run:
    return Run(make_assignment(body=body, estimate=estimate))


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (b'{"payload":{"tokens":12}}', 12),
        (b'{"payload":{"tokens":0}}', 0),
        (b'{"payload":{"other":1}}', 77),
        (b'{"payload":[1]}', 77),
        (b"", 77),
    ],
)
def test_the_payload_says_what_it_costs_else_the_estimate(body: bytes, tokens: int) -> None:
    assert tokens_of(make_run(body)) == tokens
    assert asyncio.run(simulated()(make_run(body))) == tokens


@pytest.mark.parametrize("tokens", [b"-1", b"1.5", b'"9"', b"true", b"null"])
def test_what_are_no_tokens_fails_for_good(tokens: bytes) -> None:
    with pytest.raises(GiveUp, match=r"payload\.tokens"):
        tokens_of(make_run(b'{"payload":{"tokens":%s}}' % tokens))


def test_tokens_take_time_at_the_stated_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.client.simulated._REPORT_EVERY_S", 0.02)
    run = make_run(b'{"payload":{"tokens":100}}')
    begin = clock.monotonic()
    assert asyncio.run(simulated(1_000)(run)) == 100
    assert 0.1 <= clock.monotonic() - begin < 5
    assert run.tokens == 100


def test_what_is_spent_so_far_can_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.client.simulated._REPORT_EVERY_S", 0.01)
    run = make_run(b'{"payload":{"tokens":1000000}}')

    async def watch() -> list[int]:
        work = asyncio.ensure_future(simulated(1_000)(run))
        seen: list[int] = []
        while len(set(seen)) < 4:
            await asyncio.sleep(0.01)
            seen.append(run.tokens or 0)
        work.cancel()
        return seen

    seen = asyncio.run(asyncio.wait_for(watch(), 30))
    assert seen == sorted(seen)
    assert 0 < seen[-1] < 1_000_000


@pytest.mark.parametrize("speed", [0, -1.0])
def test_a_speed_must_be_above_zero(speed: float) -> None:
    with pytest.raises(ConfigError, match="tokens_per_second"):
        simulated(speed)
