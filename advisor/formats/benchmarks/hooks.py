"""Suites of benchmarks in the documents of many tools (see ``docs/formats/benchmarks.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.hookspecs import hookimpl
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import Profile


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a document of a tool that measures benchmarks, else None."""
    from advisor.formats.benchmarks.tool_marks import find_tool
    from advisor.formats.plain_text import read_ends

    return 1.0 if find_tool(read_ends(path)) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the suite in the document at ``path``; raises ``InputError`` with the place of what is wrong."""
    from dataclasses import replace

    from advisor.formats.benchmarks.call_path_builder import build_call_paths
    from advisor.formats.benchmarks.measured_suite import read_suite
    from advisor.formats.benchmarks.tool_marks import find_tool
    from advisor.formats.plain_text import read_ends
    from advisor.trace.callpaths.profile import from_call_paths

    tool = find_tool(read_ends(path))
    if tool is None:
        raise InputError(path, "holds no benchmarks of a tool that is known here")
    suite = read_suite(path, tool)
    return replace(from_call_paths(build_call_paths(suite, path), path), build=suite.build)
