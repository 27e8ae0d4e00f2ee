"""The headers of a consumed record, whatever bytes their names are."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import Message

    Headers = Sequence[tuple[str, bytes | None]]


# Called as `message.headers()` it would return, once the interpreter has specialized that call to one without checks,
# and its error would come up at whatever is called next.
_HEADERS: Final = methodcaller("headers")


def headers_of(message: Message) -> Headers | None:
    """Return them; None if a name is not UTF-8, which the client can neither tell nor write.

    confluent-kafka fails on such a name: by the first of these errors as it is now ("returned a result with an
    exception set"), by the second if that is put right.
    """
    try:
        found: Any = _HEADERS(message)  # as they come out of a message: bytes, and no dictionary
    except (SystemError, UnicodeDecodeError):
        return None
    return found or ()
