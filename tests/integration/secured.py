"""A real Kafka that lets in only whom it knows: TLS with certificates made here, SCRAM users, and rights (ACLs).

The plain listener stays for the node itself and for what a test arranges (its principal, ANONYMOUS, may do anything);
whatever is tested comes in by the secured one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trustme
from confluent_kafka.admin import (  # type: ignore[attr-defined] # the module names its exports nowhere
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import serialization

from streams import clock
from streams.admin.kafka import admin_client, look
from streams.errors import ConfigError
from streams.kafka import KafkaSettings
from streams.local import LocalKafka
from streams.local.ports import LOOPBACK

LISTENER: Final = "SECURED"
ADMIN: Final = "admin"  # a super user
_WAIT_S: Final = 30.0
_SCRAM_ITERATIONS: Final = 4096  # the least that Kafka takes


class SecuredKafka:
    """The cluster, its authority, and its users."""

    def __init__(self, kafka: LocalKafka, folder: Path, authority: trustme.CA) -> None:
        self.plain: Final = kafka.bootstrap
        self.servers: Final = kafka.bootstrap_of(LISTENER)
        self.folder: Final = folder
        self.log: Final = kafka.log_path()
        self.authority: Final = folder / "authority.pem"
        authority.cert_pem.write_to_path(self.authority)
        self._known: set[str] = set()

    @staticmethod
    def password(user: str) -> str:
        """Like nothing else that could stand in a log."""
        return f"hush-{user}-9rK2"

    def options(self, user: str, **changed: str) -> dict[str, str]:
        """What the user's `--kafka-config` file says. Underscores in names of `changed` stand for dots."""
        self._add(user)
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": self.password(user),
            **{name.replace("_", "."): value for name, value in changed.items()},
        }

    def config_file(self, user: str, **changed: str) -> Path:
        """The same as a file."""
        name = "-".join([user, *sorted(changed)])
        path = self.folder / f"{name}.properties"
        options = self.options(user, **changed)
        path.write_text("".join(f"{key} = {value}\n" for key, value in options.items()), encoding="utf-8")
        return path

    def settings(self, user: str, prefix: str) -> KafkaSettings:
        return KafkaSettings(servers=self.servers, prefix=prefix, options=self.options(user))

    def _add(self, user: str) -> None:
        """Make a user, and wait until the broker knows it."""
        if user in self._known:
            return
        self._known.add(user)
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _SCRAM_ITERATIONS)
        wanted = UserScramCredentialUpsertion(user, info, self.password(user).encode())
        admin = admin_client(KafkaSettings(servers=self.plain))
        for future in admin.alter_user_scram_credentials([wanted]).values():
            future.result(_WAIT_S)
        clock.wait_until(lambda: self._lets_in(user), _WAIT_S, what=f"the user {user}")

    def _lets_in(self, user: str) -> bool:
        try:
            look(admin_client(self.settings(user, "any.")))
        except ConfigError:
            return False
        return True


@contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """One node that is open to whom it knows; files go to `folder`."""
    authority = trustme.CA()
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        **{f"listener.name.{LISTENER.lower()}.{name}": value for name, value in _listener(folder, authority).items()},
    }
    with LocalKafka(settings=settings, listeners={LISTENER: "SASL_SSL"}) as kafka:
        yield SecuredKafka(kafka, folder, authority)


def _listener(folder: Path, authority: trustme.CA) -> dict[str, str]:
    """The settings of the secured listener: who we are, and how clients say who they are."""
    identity = authority.issue_cert(LOOPBACK)
    # Java reads keys in PKCS #8 only.
    key = serialization.load_pem_private_key(identity.private_key_pem.bytes(), password=None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    keystore = folder / "broker.pem"
    keystore.write_bytes(key + b"".join(blob.bytes() for blob in identity.cert_chain_pems))
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    }
