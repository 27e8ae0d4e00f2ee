"""The headers of a consumed record, whatever bytes their names are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import Message

    Headers = Sequence[tuple[str, bytes | None]]


def headers_of(message: Message) -> Headers | None:
    """Return them; None if a name is not UTF-8, which the client can neither tell nor write.

    confluent-kafka fails on such a name: by the first of these errors as it is now ("returned a result with an
    exception set"), by the second if that is put right.
    """
    try:
        found: Any = message.headers()  # as they come out of a message: bytes, and no dictionary
    except (SystemError, UnicodeDecodeError):
        return None
    return found or ()
