"""Where the data that come with the program are: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def folder(name: Literal["rules", "machine_models"]) -> Traversable:
    """The folder of that name: in ``advisor/_data`` of an installed package, else beside ``advisor`` in a checkout."""
    installed = files("advisor") / "_data" / name
    return installed if installed.is_dir() else Path(__file__).resolve().parents[1] / name


def documents(name: Literal["rules", "machine_models"]) -> tuple[Traversable, ...]:
    """The YAML files of that folder, in the order of their names."""
    found = (entry for entry in folder(name).iterdir() if entry.name.endswith(".yaml") and entry.is_file())
    return tuple(sorted(found, key=lambda entry: entry.name))
