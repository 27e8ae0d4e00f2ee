"""Finds the data that lives in the repository's root folders.

A wheel carries `schemas/` and `config/` inside the package (see `force-include` in
pyproject.toml); a checkout, also an editable install, has them beside it.
"""

from pathlib import Path
from typing import Final

from streams.errors import ConfigError

_PACKAGE: Final = Path(__file__).resolve().parent
_ROOTS: Final = (_PACKAGE / "_data", _PACKAGE.parent)


def schema_path(name: str) -> Path:
    """The file `schemas/<name>`, for example `schema_path("request.avsc")`."""
    return _find("schemas", name)


def config_path(name: str) -> Path:
    """The file `config/<name>`, for example `config_path("policy.toml")`."""
    return _find("config", name)


def _find(folder: str, name: str) -> Path:
    for root in _ROOTS:
        path = root / folder / name
        if path.exists():
            return path
    raise ConfigError(
        "no such file comes with fairstream; give the path of your own, or reinstall",
        field=folder,
        value=name,
    )
