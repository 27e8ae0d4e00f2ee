"""`fairstream policy apply | show | check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streams.cli import options
from streams.cli.output import say, say_json
from streams.errors import visible

if TYPE_CHECKING:
    from streams.core.policy import Policy

app = typer.Typer(help="The stated rules: who gets how much, and what is too much.", no_args_is_help=True)

_BETWEEN: Final = {"strict": "in strict order", "shares": "by weight"}

File = Annotated[
    Path | None,
    typer.Argument(help="A TOML file; without it config/policy.toml here, else the one that comes with fairstream."),
]


@app.command()
def apply(
    file: File = None,
    *,
    author: Annotated[str | None, typer.Option(help="Who states it; without it the user's name.")] = None,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Check a policy as a whole and, if nothing is wrong with it, put it in force in every shard."""
    import getpass

    from streams import clock
    from streams.admin.policy import load_policy, publish_policy
    from streams.wire import PolicyChange

    policy = load_policy(_chosen(file))
    change = PolicyChange(policy, author or getpass.getuser(), clock.now_ms())
    version = publish_policy(options.kafka_settings(kafka, prefix, kafka_config), change)
    if json:
        say_json({"version": version, "name": policy.name, "author": change.author, "applied_ms": change.applied_ms})
    else:
        say(f"policy {policy.name!r} is in force as version {version}: {_summary(policy)}")


@app.command()
def check(file: File = None, *, json: options.Json = False) -> None:
    """Check a policy; every problem is shown with its line. Needs no Kafka."""
    from streams.admin.policy import load_policy

    path = _chosen(file)
    policy = load_policy(path)
    if json:
        say_json({"valid": True, "name": policy.name, "tenants": len(policy.tenants)})
    else:
        say(f"{path}: nothing is wrong with it: {_summary(policy)}")


@app.command()
def show(
    *,
    kafka: options.Kafka = options.DEFAULT_KAFKA,
    prefix: options.Prefix = options.DEFAULT_PREFIX,
    kafka_config: options.KafkaConfig = None,
    json: options.Json = False,
) -> None:
    """Show the policy in force, with everything that its file left out."""
    from streams.admin.policy import read_policy
    from streams.core.policy import Policy
    from streams.core.policy_check import policy_document

    found = read_policy(options.kafka_settings(kafka, prefix, kafka_config))
    policy = found.change.policy if found else Policy()
    if json:
        about = {"author": found.change.author, "applied_ms": found.change.applied_ms} if found else {}
        say_json({"version": found.version if found else None, **about, "policy": policy_document(policy)})
    elif found is None:
        say(f"no policy was applied, so the built-in one holds: {_summary(policy)}")
        say_json(policy_document(policy))
    else:
        say(f"version {found.version} by {visible(found.change.author)}: {_summary(policy)}")
        say_json(policy_document(policy))


def _chosen(file: Path | None) -> Path:
    from streams.resources import config_path

    if file is not None:
        return file
    local = Path("config/policy.toml")
    return local if local.exists() else config_path("policy.toml")


def _summary(policy: Policy) -> str:
    window = policy.window
    limits = [
        f"{limit} {unit}" for limit, unit in ((window.runs, "runs"), (window.tokens, "tokens")) if limit is not None
    ]
    parts = [f"quantum {policy.quantum} tokens", f"at most {' and '.join(limits)} in flight"]
    if len(policy.classes) > 1:
        parts.append(f"{len(policy.classes)} classes {_BETWEEN[policy.between_classes]}")
    if policy.groups:
        parts.append(_counted(len(policy.groups), "group"))
    others = "refused" if policy.closed else "welcome"
    parts.append(f"{_counted(len(policy.tenants), 'tenant')} named, others {others}")
    return ", ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
