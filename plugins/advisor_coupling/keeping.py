"""Where finished experiments lie, and which of them belong to a program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from advisor.errors import InputError
from advisor_coupling import results

#: The folder inside the user's data directory of gapwatch.
FOLDER: Final = "coupling"
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]")


def file_name(program: str) -> str:
    """Return the name of the file that keeps the experiment of a program."""
    return f"{_ODD.sub('_', program).lstrip('.')[:100] or 'program'}{results.SUFFIX}"


def of_program(program: str) -> results.Document | None:
    """Return the newest experiment with a program of that name that was kept for advice; None if there is none.

    Looks in the user's data directory; a profile does not say where it lay, so what lies beside it is looked for in
    the directory where gapwatch was started. A file that can't be read is as good as none.
    """
    import platformdirs

    folders = (Path.cwd(), platformdirs.user_data_path("gapwatch") / FOLDER)
    wanted = Path(program).name
    found = []
    for folder in folders:
        for path in sorted(folder.glob(f"*{results.SUFFIX}"))[:100]:
            try:
                document = results.read(path)
            except InputError:
                continue
            if document.program == wanted and document.runs:
                found.append((max(run.started for run in document.runs), document))
    return max(found, key=lambda one: one[0])[1] if found else None
