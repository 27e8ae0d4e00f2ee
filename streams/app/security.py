"""One set of security options for both Kafka clients in this process: librdkafka's names, turned into Faust's objects.

The producers and loaders use librdkafka, which reads the options as they are; Faust consumes with aiokafka, which wants
an SSL context and credentials. What aiokafka cannot do is refused by name, rather than connecting without it.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from faust.auth import SASLCredentials, SSLCredentials
from faust.types.auth import CredentialsT, SASLMechanism

from streams.errors import ConfigError

_PLAIN: Final = "PLAINTEXT"
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def credentials(options: Mapping[str, str]) -> CredentialsT | None:
    """Return what Faust's `broker_credentials` wants for these librdkafka properties; None: plain text.

    Raises `ConfigError` for a protocol, mechanism or file that cannot be used.
    """
    protocol = options.get("security.protocol", _PLAIN).upper()
    match protocol:
        case "PLAINTEXT":
            return None
        case "SSL":
            return SSLCredentials(_context(options))
        case "SASL_PLAINTEXT":
            return _sasl(options, None)
        case "SASL_SSL":
            return _sasl(options, _context(options))
    raise ConfigError("must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", field="security.protocol", value=protocol)


def _sasl(options: Mapping[str, str], context: ssl.SSLContext | None) -> SASLCredentials:
    # librdkafka knows both names.
    mechanism = options.get("sasl.mechanism") or options.get("sasl.mechanisms") or ""
    if mechanism not in _MECHANISMS:
        raise ConfigError(f"the scheduler supports {', '.join(_MECHANISMS)}", field="sasl.mechanism", value=mechanism)
    for name in ("sasl.username", "sasl.password"):
        if not options.get(name):
            raise ConfigError(f"is needed for {mechanism}", field=name)
    return SASLCredentials(
        username=options["sasl.username"],
        password=options["sasl.password"],
        ssl_context=context,
        mechanism=SASLMechanism(mechanism),
    )


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    for name in ("ssl.keystore.location", "ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem"):
        if name in options:
            raise ConfigError(
                "the scheduler reads PEM files: set ssl.ca.location, ssl.certificate.location and ssl.key.location",
                field=name,
            )
    authority = options.get("ssl.ca.location")
    certificate = options.get("ssl.certificate.location")
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=authority)
        if certificate:
            context.load_cert_chain(certificate, options.get("ssl.key.location"), options.get("ssl.key.password"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"the certificates cannot be loaded: {error}", field="ssl.certificate.location or ssl.ca.location"
        ) from error
    if options.get("ssl.endpoint.identification.algorithm", "https") == "none":
        context.check_hostname = False
    if options.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
