"""YAML files of the project as plain data, each read once and by libyaml, which is a tenth of the time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def read_yaml(path: Path) -> Any:  # noqa: ANN401 - as of yaml.load
    """Return what a file holds; nobody may change it."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
