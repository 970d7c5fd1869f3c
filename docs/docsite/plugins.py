"""What the code says of each plugin and each reader, added to the pages their authors wrote."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import GROUP
from docsite import markdown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.extension.commands import Command
    from advisor.extension.host import LoadedPlugin

#: Readers whose format is told on another reader's page.
TOLD_ON = {"perf_stat": "perf"}


@cache
def modules() -> Mapping[str, str]:
    """Return the module of each plugin that comes along."""
    return {one.name: one.value for one in entry_points(group=GROUP) if one.dist and one.dist.name == "gapwatch"}


def readers(plugins: Sequence[LoadedPlugin]) -> tuple[LoadedPlugin, ...]:
    """Return the readers that come along."""
    return tuple(one for one in plugins if modules().get(one.name, "").startswith("advisor.formats."))


def others(plugins: Sequence[LoadedPlugin]) -> tuple[LoadedPlugin, ...]:
    """Return the other plugins that come along."""
    return tuple(one for one in plugins if one.name in modules() and one not in readers(plugins))


def page_of(plugin: LoadedPlugin) -> str:
    """Return the page of a plugin that comes along, by its path below ``docs/``."""
    folder = "formats" if modules()[plugin.name].startswith("advisor.formats.") else "plugins"
    return f"{folder}/{TOLD_ON.get(plugin.name, plugin.name)}.md"


def additions(
    plugins: Sequence[LoadedPlugin], commands: Sequence[Command], origins: Mapping[str, str]
) -> Mapping[str, str]:
    """Return what is added to each of these pages; ``origins`` names the plugins of facts."""
    found: dict[str, str] = {}
    for one in (*readers(plugins), *others(plugins)):
        page = page_of(one)
        found[page] = found.get(page, "\n## In gapwatch\n\n") + _said(one, commands, origins)
    return found


def _said(plugin: LoadedPlugin, commands: Sequence[Command], origins: Mapping[str, str]) -> str:
    brought = [
        ("hooks", ", ".join(map(markdown.code, plugin.hooks))),
        ("commands", ", ".join(f"`gapwatch {one.name}`" for one in commands if one.plugin == plugin.name)),
        ("facts", ", ".join(f"`{fact}`" for fact, origin in origins.items() if origin == plugin.name)),
    ]
    rows = [("plugin", f"`{plugin.name}`"), ("module", f"`{modules()[plugin.name]}`"), *brought]
    return markdown.table(("", ""), [row for row in rows if row[1]]) + "\n"
