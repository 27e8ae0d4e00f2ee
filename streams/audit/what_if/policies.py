"""The policies that a record was decided under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streams.core.policy import Policy
from streams.core.state import BUILT_IN
from streams.errors import BadRecord, ConfigError
from streams.wire import decode_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streams.audit.recording import Recording
    from streams.wire import AppliedPolicy


class PolicyBook:
    """Policies by their version: from the journal, and from the policy topic as far as that still has them."""

    def __init__(self, recording: Recording) -> None:
        self._recording: Final = recording
        self._known: dict[int, Policy] = {BUILT_IN: Policy()}
        self._looked = False

    def keep(self, applied: Sequence[AppliedPolicy]) -> None:
        """Take in what a step says of the changes that it applied."""
        for each in applied:
            self._known[each.offset] = each.policy

    def policy(self, version: int) -> Policy:
        """Return the policy of that version. Raises `ConfigError` if it is nowhere any more."""
        if version not in self._known and not self._looked:
            self._looked = True
            self._look()
        if version not in self._known:
            raise ConfigError(
                "the journal begins under a policy that is no longer in the policy topic", field="policy", value=version
            )
        return self._known[version]

    def _look(self) -> None:
        for record in self._recording.read("policy", 0):
            try:
                self._known.setdefault(record.offset, decode_policy(record.value).policy)
            except BadRecord:
                continue  # the shards passed over it, too
