from pathlib import Path

import pytest

from streams.app.settings import Settings
from streams.errors import ConfigError


def test_defaults_are_valid() -> None:
    settings = Settings.load({})
    assert settings.kafka == "127.0.0.1:9092"
    assert settings.shards == 1


def test_an_argument_wins_over_the_environment_and_that_over_the_default() -> None:
    environment = {"FAIRSTREAM_SHARDS": "4", "FAIRSTREAM_PREFIX": "a.", "FAIRSTREAM_CREATE_TOPICS": "yes"}
    settings = Settings.load(environment, shards=8, prefix=None)
    assert (settings.shards, settings.prefix, settings.create_topics) == (8, "a.", True)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("STEP_PAUSE_MS", "25", 25),
        ("SESSION_TIMEOUT_S", "7.5", 7.5),
        ("DATA_DIR", "some/folder", Path("some/folder")),
        ("WEB_PORT", "8080", 8080),
        ("CREATE_TOPICS", "0", False),
        ("GROUP", "mine", "mine"),
    ],
)
def test_every_kind_of_field_is_read_from_the_environment(name: str, text: str, value: object) -> None:
    assert getattr(Settings.load({f"FAIRSTREAM_{name}": text}), name.lower()) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shards", 0),
        ("shards", -1),
        ("dispatch_partitions", 0),
        ("step_pause_ms", -1),
        ("step_pause_ms", 10_001),
        ("max_step_inputs", 0),
        ("max_step_bytes", 0),
        ("inbox_records", 1_999),  # less than one step
        ("inbox_bytes", 0),
        ("session_timeout_s", 0.5),
        ("session_timeout_s", 1_801),
        ("transaction_timeout_s", 901),
        ("lost_shard_grace_s", 0),
        ("refused_retry_s", 0),
        ("stop_timeout_s", 0),
        ("status_interval_ms", 0),
        ("checkpoint_interval_s", -1),
        ("checkpoint_interval_s", 8 * 86_400),  # the inputs after it would be gone
        ("web_port", 0),
        ("web_port", 65_536),
        ("kafka", " "),
        ("prefix", "no spaces"),
        ("faults", "nonsense"),
    ],
)
def test_what_cannot_work_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.load({}, **{field: value})
    assert caught.value.field == field


def test_a_value_of_the_wrong_type_names_its_variable() -> None:
    with pytest.raises(ConfigError, match="FAIRSTREAM_SHARDS: shards: is not a value of type int \\(got 'many'\\)"):
        Settings.load({"FAIRSTREAM_SHARDS": "many"})


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="shard_count"):
        Settings.load({}, shard_count=4)


@pytest.mark.parametrize(
    ("prefix", "group", "expected"),
    [
        ("runs.", "", "fairstream"),
        ("staging.", "", "fairstream-staging"),
        ("", "", "fairstream-bare"),
        ("staging.", "mine", "mine"),
    ],
)
def test_two_deployments_on_one_cluster_have_two_groups(prefix: str, group: str, expected: str) -> None:
    settings = Settings(prefix=prefix, group=group)
    assert settings.group_id == expected
    assert settings.transactional_id(3) == f"{expected}-3"


def test_kafka_options_come_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("security.protocol = SASL_SSL\n")
    assert Settings(kafka_config=file).kafka_settings.options == {"security.protocol": "SASL_SSL"}
    file.write_text("acks = 0\n")
    with pytest.raises(ConfigError, match="acks"):
        Settings(kafka_config=file)
