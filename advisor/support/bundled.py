"""Where the data that come with the program are: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

_INSTALLED: Final = Path(__file__).resolve().parents[1] / "_data"
_CHECKOUT: Final = Path(__file__).resolve().parents[2]


def find_data_folder(name: Literal["rules", "machine_models"]) -> Path:
    """The folder of that name: in ``advisor/_data`` of an installed package, else beside ``advisor`` in a checkout."""
    installed = _INSTALLED / name
    return installed if installed.is_dir() else _CHECKOUT / name


def find_example_trace() -> Path | None:
    """The directory with the trace of a real run that comes with the program; None where it was left out."""
    places = (_INSTALLED / "examples" / "demo", _CHECKOUT / "examples" / "demo")
    return next((place for place in places if place.is_dir()), None)


def list_documents(name: Literal["rules", "machine_models"]) -> tuple[Path, ...]:
    """The YAML files of that folder, in the order of their names."""
    return tuple(sorted(find_data_folder(name).glob("*.yaml")))
