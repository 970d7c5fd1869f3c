"""What can be done from the screen beside looking: say something of an item, explain it, open the page of a run."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import AdvisorError
from advisor.support.atomic_write import atomic_write
from advisor.support.child_process import run_child
from advisor.support.disk_cache import system_folder

if TYPE_CHECKING:
    from advisor.history.items import ItemState
    from advisor.history.location import HistoryLocation
    from advisor.history.program_views import ProgramView

#: An explanation may take so long: it reads the profile again (seconds).
_EXPLAINING_S: Final = 600.0
_PAGES: Final = "pages"


@dataclass(frozen=True, slots=True)
class ScreenActions:
    """Actions on the history at ``place``; each may take a while, and raises ``AdvisorError``."""

    place: HistoryLocation

    def mark_item(self, program: str, fingerprint: str, state: ItemState, until: str | None, reason: str | None) -> str:
        """Note in the history what the user says of an item; return a line on what was noted."""
        from advisor.cli import lifecycle

        command = {"acknowledged": lifecycle.ack, "suppressed": lifecycle.suppress, "applied": lifecycle.applied}[state]
        return command.mark_stored_item(self.place, fingerprint, program, reason=reason, until=until)

    def explain_run(self, number: int, what: str | None, width: int) -> str:
        """Return how the numbers of a run, or of one action on it, came about: the text of ``gapwatch explain``."""
        asked = [str(number)] if what is None else [str(number), what]
        command = [sys.executable, "-m", "gapwatch", "explain", *asked]
        command += ["--state", str(self.place), "--width", str(max(20, min(500, width)))]
        made = run_child(command, _EXPLAINING_S, extra={"PYTHONIOENCODING": "utf-8"})
        if made.status != 0 or not made.text:
            raise AdvisorError(made.failure or made.error_text.strip().removeprefix("gapwatch: "))
        return made.text

    def write_page(self, view: ProgramView) -> Path:
        """Write the page of a run into the user's cache, readable by the user alone; return its file."""
        from advisor.output.html.advice_page import render_advice_page

        text = render_advice_page(view.advice, view.earlier)
        folder = system_folder("cache") / _PAGES
        file = folder / f"run-{view.number}.html"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_write(file) as partial:
                partial.touch(mode=0o600)
                partial.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise AdvisorError(f"{file}: {error.strerror}") from error
        return file


def open_file(file: Path) -> bool:
    """Open a page with the browser of the desktop, or what ``BROWSER`` names; return whether there is one.

    Browsers of the terminal are left alone: the screen is on it.
    """
    command = _find_browser()
    if command is None:
        return False
    with suppress(OSError):
        subprocess.Popen(
            [*command, str(file)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        return True
    return False


def _find_browser() -> list[str] | None:
    said = shlex.split(os.environ.get("BROWSER", "").partition(os.pathsep)[0])
    if said and "%s" not in said and shutil.which(said[0]):
        return said
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None
    opener = shutil.which("xdg-open")
    return [opener] if opener else None
