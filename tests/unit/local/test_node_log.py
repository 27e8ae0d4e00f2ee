"""Which lines of a broker's log are shown when it has failed."""

from streams.local.node import telling_lines


def test_errors_are_shown_however_much_follows() -> None:
    lines = [
        "INFO starting",
        "2026-01-01 00:00:00.000 [main] ERROR kafka.Kafka$ - Exiting due to fatal exception",
        "Caused by: java.net.BindException: Address already in use",
        *["INFO stopping"] * 200,
    ]
    assert telling_lines(lines) == lines[1:3]


def test_without_an_error_the_end_is_shown() -> None:
    lines = [f"INFO {n}" for n in range(100)]
    assert telling_lines(lines) == lines[-12:]
    assert telling_lines([]) == []
