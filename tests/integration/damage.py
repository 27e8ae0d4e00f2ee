"""Records as the world may write them: good ones, and good ones damaged in every way we could think of. Seeded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple

import orjson

from streams.core.policy import Policy
from streams.errors import BadRecord
from streams.wire import FORWARDED, PolicyChange, decode_policy, encode_completion, encode_policy, encode_request

REQUESTS: Final = "requests"
COMPLETIONS: Final = "completions"
POLICY: Final = "policy"

Headers = list[tuple[str, str | bytes | None]]


class Damaged(NamedTuple):
    """A record to be written."""

    topic: str  # without its prefix
    key: bytes | None
    value: bytes | None
    headers: Headers
    anywhere: bool  # on any partition, not on the one of its key


NAMES: Final = (
    "a" * 255,
    "a" * 256,
    "\U0001f600" * 255,
    "\x1b[2J\x1b]0;owned\x07",
    "line\nfeed\r\ttab",
    "\x00",
    "",
    " ",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "'; DROP TABLE runs; --",
    "\u202egnp.exe",
    "\ufeffbom",
    "{{7*7}}",
)
NUMBERS: Final = ("-1", "1e400", "-0.0", "1.5", "NaN", "Infinity", "1" * 400, str(1 << 63), str(1 << 70), "1e2", "true")
OTHERS: Final = ("null", "true", '"text"', "[]", "{}", '[{"a":[1]}]', '"\\ud800"', '"\\u0000"')
FIELDS: Final = {
    REQUESTS: (
        "action",
        "tenant",
        "run_id",
        "workflow",
        "class",
        "estimate",
        "max_tokens",
        "not_before_ms",
        "deadline_ms",
        "max_attempts",
        "lease_ms",
        "payload",
        "headers",
    ),
    COMPLETIONS: ("tenant", "run_id", "attempt", "status", "tokens", "retryable", "error", "worker", "shard"),
    POLICY: ("author", "applied_ms", "policy"),
}


def good_request(number: int) -> tuple[str, bytes]:
    """A run that must be served, and its tenant."""
    tenant = f"good-{number % 20}"
    return tenant, encode_request(tenant=tenant, run_id=f"good-{number}", workflow="w", payload=number)


def damaged_records(seed: int, number: int, *, good_every: int = 10) -> Iterator[Damaged]:
    """Yield records for all inputs; one of `good_every` is a request that must be served."""
    draw = Random(seed)
    for count in range(number):
        if count % good_every == 0:
            tenant, value = good_request(count)
            yield Damaged(REQUESTS, tenant.encode(), value, [], anywhere=False)
        elif count % 1_000 == 1:
            yield _bad_policy(draw)
        else:
            yield _damaged(draw, REQUESTS if draw.random() < 0.7 else COMPLETIONS, count)


def _damaged(draw: Random, topic: str, count: int) -> Damaged:
    tenant = f"odd-{draw.randrange(30)}"
    if topic == REQUESTS:
        whole = encode_request(tenant=tenant, run_id=f"odd-{count}", workflow="w", payload={"n": [1, "x"]})
    else:
        whole = encode_completion(tenant=tenant, run_id=f"odd-{count}", attempt=1, status="succeeded", tokens=5)
    value: bytes | None = whole
    key: bytes | None = tenant.encode()
    headers: Headers = []
    anywhere = False
    kind = draw.randrange(14)
    if kind < len(DAMAGES):
        value = DAMAGES[kind](draw, topic, whole)
    elif kind == len(DAMAGES):
        value = None
    elif kind == len(DAMAGES) + 1:
        key = draw.choice((None, b"", b"\xff\xfe\xa2", b"\x00", b"another", draw.randbytes(300)))
    else:  # it may be right: then it is forwarded, or refused if it says that it has been
        anywhere = True
        if draw.random() < 0.5:
            headers = [(FORWARDED, draw.choice((b"", b"here", b"x:0:1", draw.randbytes(20))))]
    return Damaged(topic, key, value, headers, anywhere)


def _cut(draw: Random, _topic: str, value: bytes) -> bytes:
    return value[: draw.randrange(len(value))]


def _flip(draw: Random, _topic: str, value: bytes) -> bytes:
    changed = bytearray(value)
    for _ in range(draw.randint(1, 4)):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _odd_field(draw: Random, topic: str, value: bytes) -> bytes:
    """Put something odd in the place of a field's value, or a field where there was none."""
    name = draw.choice(FIELDS[topic])
    odd = draw.choice((*NUMBERS, *OTHERS, json.dumps(draw.choice(NAMES))))
    if name == "not_before_ms" and odd == "null":
        odd = "-5"
    fields = {key: orjson.dumps(each).decode() for key, each in orjson.loads(value).items()} | {name: odd}
    return ("{" + ",".join(f'"{key}":{each}' for key, each in fields.items()) + "}").encode()


def _twice(draw: Random, topic: str, value: bytes) -> bytes:
    """Let a field stand there twice, or one that nobody knows."""
    name = draw.choice((*FIELDS[topic], "unknown", "__proto__", "$schema"))
    return value[:-1] + f',"{name}":{draw.choice((*OTHERS, *NUMBERS))}}}'.encode()


def _deep(draw: Random, _topic: str, value: bytes) -> bytes:
    """Nest deeper than anybody should, or just as deep as they may."""
    depth = draw.choice((200, 253, 254, 300, 5_000))
    end = b"]" * draw.choice((0, depth, depth, depth))
    return value[:-1] + b',"deep":' + b"[" * depth + end + b"}"


def _avro(draw: Random, _topic: str, value: bytes) -> bytes:
    return b"\x00" + draw.randbytes(4) + value


def _not_utf8(draw: Random, _topic: str, value: bytes) -> bytes:
    place = draw.randrange(len(value))
    return value[:place] + draw.choice((b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80")) + value[place:]


def _noise(draw: Random, _topic: str, _value: bytes) -> bytes:
    return draw.randbytes(draw.randrange(400))


def _long(draw: Random, _topic: str, value: bytes) -> bytes:
    """Many times too long for its topic's usual record; rarely, or a million of them would not fit a disk."""
    return value[:-1] + b',"pad":"' + b"x" * draw.choice((100, 1_000, 1_000, 20_000)) + b'"}'


def _other_json(draw: Random, _topic: str, _value: bytes) -> bytes:
    return draw.choice((*OTHERS, *NUMBERS, "[1,2,3]", "  ", "", "{}x", '{"a":}')).encode()


Damage = Callable[[Random, str, bytes], bytes]
DAMAGES: Final[tuple[Damage, ...]] = (
    _cut,
    _flip,
    _odd_field,
    _twice,
    _deep,
    _avro,
    _not_utf8,
    _noise,
    _long,
    _other_json,
)


def _bad_policy(draw: Random) -> Damaged:
    """A policy that no shard may take: one that is right would change the rules of the game."""
    good = encode_policy(PolicyChange(Policy(), "nobody", 1))
    while True:
        value: bytes | None = draw.choice(DAMAGES)(draw, POLICY, good) if draw.random() < 0.9 else None
        try:
            decode_policy(value)
        except BadRecord:
            key = draw.choice((b"default", b"\xff", b"other"))  # a compacted topic takes no record without one
            return Damaged(POLICY, key, value, [], anywhere=False)
