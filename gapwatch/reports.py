"""The commands of plugins from Python: ``gapwatch.report("whatif", path, "--action", "A-29")``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from advisor.cli import user_folders
from advisor.cli.plugin_commands import build_plugin_report
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.model.reports import Report


def report(command: str, *arguments: str | os.PathLike[str]) -> Report:
    """Run the command of a plugin with its arguments and return its report: tables, bars, series and text.

    ``advisor.output.report_text.build_report_document`` makes plain data of it. Raises ``UsageError`` where no plugin
    brings the command or its arguments are wrong, and what the command raises.
    """
    try:
        return build_plugin_report(user_folders.load_host(), command, [os.fspath(word) for word in arguments])
    except SystemExit as error:  # of an option that shows something instead
        raise UsageError(f"{command} {' '.join(map(str, arguments))}: makes no report") from error
