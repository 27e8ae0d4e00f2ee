import ssl
from pathlib import Path

import pytest
from faust.auth import SASLCredentials, SSLCredentials

from streams.app.security import credentials
from streams.errors import ConfigError

SASL = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "me", "sasl.password": "secret"}


def test_without_options_the_connection_is_plain() -> None:
    assert credentials({}) is None
    assert credentials({"security.protocol": "plaintext"}) is None


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_without_tls(name: str, mechanism: str) -> None:
    options = {name: mechanism, "sasl.username": "me", "sasl.password": "secret"}
    found = credentials({"security.protocol": "SASL_PLAINTEXT", **options})
    assert isinstance(found, SASLCredentials)
    assert (found.protocol.value, found.mechanism.value) == ("SASL_PLAINTEXT", mechanism)
    assert (found.username, found.password, found.ssl_context) == ("me", "secret", None)


def test_sasl_over_tls() -> None:
    found = credentials({"security.protocol": "SASL_SSL", **SASL})
    assert isinstance(found, SASLCredentials)
    assert found.protocol.value == "SASL_SSL"
    assert found.ssl_context is not None
    assert found.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert found.ssl_context.check_hostname


def test_tls_alone() -> None:
    found = credentials({"security.protocol": "SSL"})
    assert isinstance(found, SSLCredentials)
    assert found.context.check_hostname


def test_the_host_name_may_go_unchecked() -> None:
    found = credentials({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"})
    assert isinstance(found, SSLCredentials)
    assert not found.context.check_hostname
    assert found.context.verify_mode is ssl.CERT_REQUIRED


def test_the_certificate_may_go_unchecked() -> None:
    found = credentials({"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"})
    assert isinstance(found, SSLCredentials)
    assert found.context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "sasl.username"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"},
            "sasl.password",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.location": "x.p12"}, "ssl.keystore.location"),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/no/such/file"},
            "ssl.certificate.location or ssl.ca.location",
        ),
    ],
)
def test_what_the_consumer_cannot_do_is_refused_by_name(options: dict[str, str], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        credentials(options)
    assert caught.value.field == field


def test_a_certificate_file_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "client.pem"
    file.write_text("no certificate")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        credentials({"security.protocol": "SSL", "ssl.certificate.location": str(file)})
