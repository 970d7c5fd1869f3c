"""The configuration file of the daemon: TOML, every mistake named at once, flags of the command on top."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from advisor.history import location
from advisor.history.location import HistoryLocation, HistoryServer
from advisor.model import units
from advisor.model.errors import DocumentError, Problem, UsageError
from advisor.support.documents.scalars import suggest_word

NAME: Final = "gapwatch.toml"


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """The daemon's settings with their defaults; times in seconds, memory in bytes.

    A file is read when nobody changed it for ``quiet_s``; one that can't be read by then is tried again until it has
    been unchanged for ``patience_s``, and then set aside. Directories are scanned every ``scan_s``, or every ``poll_s``
    where the file system announces no changes. A run that names no build is of the one that ``source`` holds when its
    profile has settled. Reading one may take ``task_s``, each answer of a plugin of others ``plugin_s``. A backlog is
    read slowly where more than ``max_load`` processes of others want each core. ``target`` is the run that programs are
    meant for, where their profiles name none.
    """

    roots: tuple[Path, ...] = ()
    state: HistoryLocation | None = None
    scan_s: float = 60.0
    poll_s: float = 10.0
    quiet_s: float = 1.5
    patience_s: float = 120.0
    jobs: int = 1
    task_s: float = 300.0
    plugin_s: float = 10.0
    memory_B: int = 2 << 30
    nice: int = 19
    max_load: float = 1.5
    keep_runs: int = 100_000
    keep_B: int | None = None
    machine: str | None = None
    target: str | None = None
    rules: tuple[Path, ...] = ()
    cores: int | None = None
    source: Path | None = None
    plugins: tuple[Path, ...] = ()


def read_config(path: Path) -> DaemonConfig:
    """Return the configuration in the file at ``path``.

    Raises ``DocumentError`` with all mistakes in it, ``UsageError`` where it cannot be read as TOML at all.
    """
    try:
        text = path.read_text(encoding="utf-8")
        entries = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    found: dict[str, Any] = {}
    problems = []
    for name, value in entries.items():
        try:
            if name not in _READ:
                raise ValueError(f"{name!r} is not a setting{suggest_word(name, _READ)}")
            field, convert = _READ[name]
            found[field] = convert(value, path.parent)
        except (ValueError, UsageError) as error:
            problems.append(Problem(str(path), _find_line(text, name), 1, str(error)))
    if problems:
        raise DocumentError(problems)
    return DaemonConfig(**found)


def _find_line(text: str, name: str) -> int:
    """Return the line in which a setting begins."""
    begin = re.search(rf"^\s*[\"']?{re.escape(name)}[\"']?\s*[=.\]]|^\s*\[+\s*{re.escape(name)}", text, re.MULTILINE)
    return text.count("\n", 0, begin.start()) + 1 if begin else 1


def with_flags(config: DaemonConfig, flags: Mapping[str, Any]) -> DaemonConfig:
    """Return ``config`` with what the command line says; None says nothing."""
    return replace(config, **{name: value for name, value in flags.items() if value is not None})


def format_settings(config: DaemonConfig) -> dict[str, str]:
    """Return every setting with its value, as the file would state it."""
    return {name: _format_value(getattr(config, field), field) for name, (field, _) in _READ.items()}


def _format_value(value: object, field: str) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    if isinstance(value, str | Path | HistoryServer):
        return f'"{value}"'
    if field.endswith("_s"):
        return f'"{value:g} s"'
    return _format_size(value) if field.endswith("_B") and isinstance(value, int) else str(value)


def _format_size(value: int) -> str:
    """Return bytes in the largest unit in which they are a whole number."""
    sizes = ((value // factor, unit) for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)))
    count, unit = next(
        (count, unit) for count, unit in sizes if count * units.parse_quantity(f"1 {unit}", "size") == value
    )
    return f'"{count} {unit}"'


def _parse_paths(value: object, folder: Path) -> tuple[Path, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f"expected a list of paths, found {value!r}")
    return tuple(folder / Path(item).expanduser() for item in value)


def _parse_path(value: object, folder: Path) -> Path:
    return _parse_paths([value], folder)[0]


def _parse_history(value: object, folder: Path) -> HistoryLocation:
    found = location.parse_location(value) if isinstance(value, str) else None
    return found if isinstance(found, HistoryServer) else _parse_path(value, folder)


def _parse_name(value: object, folder: Path) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected a name, found {value!r}")
    return value


def _parse_seconds(value: object, folder: Path) -> float:
    found = units.parse_quantity(value, "time") if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0.05 <= found <= 1e6:
        raise ValueError(f'expected a time such as "2 s" (0.05 s to 1e6 s), found {value!r}')
    return float(found)


def _make_size_parser(least: int, words: str) -> Callable[[object, Path], int]:
    def parse_size(value: object, folder: Path) -> int:
        found = units.parse_quantity(value, "size") if isinstance(value, str) else value
        if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= 2**50:
            raise ValueError(f'expected a size such as "2 GiB" ({words} at least), found {value!r}')
        return int(found)

    return parse_size


def _make_number_parser(least: int, most: int) -> Callable[[object, Path], int]:
    def parse_number(value: object, folder: Path) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"expected a whole number from {least} to {most:,}, found {value!r}")
        return value

    return parse_number


def _parse_load(value: object, folder: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"expected processes per core, above zero (inf: never rest), found {value!r}")
    return float(value)


#: The settings of the file: the field of ``DaemonConfig`` that each fills, and how its value is read.
_READ: Final[dict[str, tuple[str, Callable[[object, Path], object]]]] = {
    "roots": ("roots", _parse_paths),
    "state": ("state", _parse_history),
    "scan": ("scan_s", _parse_seconds),
    "poll": ("poll_s", _parse_seconds),
    "quiet": ("quiet_s", _parse_seconds),
    "patience": ("patience_s", _parse_seconds),
    "jobs": ("jobs", _make_number_parser(1, 1024)),
    "task": ("task_s", _parse_seconds),
    "plugin": ("plugin_s", _parse_seconds),
    "memory": ("memory_B", _make_size_parser(2**28, "256 MiB")),
    "nice": ("nice", _make_number_parser(0, 19)),
    "max_load": ("max_load", _parse_load),
    "keep_runs": ("keep_runs", _make_number_parser(1, 10**9)),
    "keep_size": ("keep_B", _make_size_parser(2**20, "1 MiB")),
    "machine": ("machine", _parse_name),
    "target": ("target", _parse_name),
    "rules": ("rules", _parse_paths),
    "cores": ("cores", _make_number_parser(1, 10**9)),
    "source": ("source", _parse_path),
    "plugins": ("plugins", _parse_paths),
}
assert {field for field, _ in _READ.values()} == {field.name for field in fields(DaemonConfig)}
