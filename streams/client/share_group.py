"""The settings of the share group, which are the broker's: a client cannot read committed records only by itself.

`share.isolation.level` (KIP-932) must be read_committed, else a worker would start runs of steps that were aborted; and
`share.auto.offset.reset` must be earliest, else what was dispatched before the first worker came is never seen.
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the module names its exports nowhere
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from streams import clock
from streams.errors import ConfigError, Unavailable
from streams.kafka import KafkaSettings, from_exception, mapped_errors

WANTED: Final = {"share.isolation.level": "read_committed", "share.auto.offset.reset": "earliest"}

_ANSWER_S: Final = 15.0  # a request to a broker that is up and busy
_SEEN_S: Final = 10.0  # from the controller's yes until every broker acts on it


def prepare(kafka: KafkaSettings, group: str) -> bool:
    """See to it that the group reads as it must; return whether it did not before.

    `fairstream topics` does it, so that workers need no right to alter a group's settings; where nobody minds, the
    first worker does. Raises `ConfigError` if they are not set and we may not set them, or if this broker has no share
    groups; `Unavailable` if it does not answer, or does not act on new settings for 10 s.
    """
    with mapped_errors(f"preparing the share group {group}"):
        admin = AdminClient(kafka.client())
    if _in_force(admin, group):
        return False
    _alter(admin, group)
    # Set is not yet in force: a worker that joins too early would start at the end, and skip.
    try:
        clock.wait_until(lambda: _in_force(admin, group), _SEEN_S, what=f"the new settings of share group {group}")
    except TimeoutError as error:
        raise Unavailable(f"{error}: Kafka took them, but does not read by them yet; start again") from error
    return True


def _in_force(admin: AdminClient, group: str) -> bool:
    found = _describe(admin, group)
    return all(found[name] == value for name, value in WANTED.items())


def _describe(admin: AdminClient, group: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.GROUP, group)
    with mapped_errors(f"reading the settings of share group {group}"):
        entries = admin.describe_configs([resource], request_timeout=_ANSWER_S)[resource].result()
    missing = [name for name in WANTED if name not in entries]
    if missing:
        raise ConfigError(
            f"this Kafka has no share groups with {missing[0]}: use Kafka 4.2 or later, "
            "or take dispatches through a classic group (intake 'classic')",
            field="intake",
            value="share",
        )
    return {name: str(entries[name].value) for name in WANTED}


def _alter(admin: AdminClient, group: str) -> None:
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in WANTED.items()]
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=entries)
    try:
        admin.incremental_alter_configs([resource], request_timeout=_ANSWER_S)[resource].result()
    except KafkaException as error:
        settings = ", ".join(f"{name}={value}" for name, value in WANTED.items())
        cause = from_exception(error, f"setting {settings} for share group {group}")
        raise ConfigError(
            f"{cause}; have it set (`fairstream topics` does), or take dispatches through a classic group"
        ) from error
