"""Site directories with plugins in them, and hosts that load nothing else."""

from __future__ import annotations

import textwrap
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from advisor.extension import host
from advisor.extension.hookspecs import GROUP

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
from advisor.extension.commands import Argument
from advisor.model.reports import Column, Report, Table, Text
from advisor.model.errors import InputError, UsageError
from advisor.extension.hookspecs import hookimpl
from advisor.model.records import Finding
"""


def plugin(folder: Path, name: str, body: str) -> Path:
    """Write the plugin ``name`` into a directory that nobody else can write to."""
    folder.chmod(0o755)
    path = folder / f"{name}.py"
    path.write_text(HEAD + textwrap.dedent(body), encoding="utf-8")
    path.chmod(0o644)
    return path


def load(folder: Path, **bodies: str) -> host.PluginHost:
    """Return a host with only the plugins of these names and bodies."""
    for name, body in bodies.items():
        plugin(folder, name, body)
    return host.load_plugins([folder], entry_points=False)


def beside_readers(folder: Path) -> host.PluginHost:
    """Return a host with the plugins of a directory and all readers: no other plugin answers before them."""
    points = entry_points(group=GROUP)
    return host.load_plugins(
        [folder], [point.name for point in points if not point.module.startswith("advisor.formats")]
    )


def problem(loaded: host.PluginHost, name: str) -> str | None:
    """Return what is wrong with a plugin."""
    return next(one.problem for one in loaded.plugins if one.name == name)
