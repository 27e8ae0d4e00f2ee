import pytest

from tests.integration.faults.coordinators import partition_of


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("fairstream-0", None),
        ("polygenelubricants", 0),  # Java's hash of it is the smallest number there is, whose absolute value is not one
        ("é", 233),
    ],
)
def test_a_name_is_hashed_as_java_does(name: str, hashed: int | None) -> None:
    by_hand = 0
    for char in name:
        by_hand = (31 * by_hand + ord(char)) % (1 << 32)
    signed = by_hand - (1 << 32) if by_hand >= 1 << 31 else by_hand
    expected = abs(signed) if hashed is None else hashed
    assert [partition_of(name, partitions) for partitions in (4, 50)] == [expected % 4, expected % 50]
