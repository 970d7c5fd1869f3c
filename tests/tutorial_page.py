"""The tutorial's commands, run in order in one shell as they stand in ``docs/tutorial.md``.

``python tests/tutorial_page.py`` records the program itself, with mpicc, mpirun and eztrace, instead of taking the
recordings that come along, and says what was promised and what came of it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from command_line import ROOT, environment
from patience import PATIENCE_S

PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
SOURCES = "src/gapwatch"


@dataclass(frozen=True, slots=True)
class Step:
    """A command, its output as the page has it, whether it needs the tools, and where its block stands."""

    command: str
    output: str
    recording: bool
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command printed, standard error as well, and its exit status."""

    output: str
    status: int


def steps(text: str) -> tuple[Step, ...]:
    """All commands of the page, in order."""
    return tuple(step for block in BLOCK.finditer(text) for step in _of(block))


def _of(block: re.Match[str]) -> list[Step]:
    if block[1] == "sh":
        return [Step(line, "", True, block.span()) for line in block[2].splitlines()]
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[2], re.MULTILINE)
    return [Step(command, output, False, block.span()) for command, output in found]


def run(commands: list[str], folder: Path, home: Path, **more: str) -> list[Result]:
    """Run the commands one after the other in one shell, in ``folder``, for a user whose home is ``home``."""
    (home / SOURCES).parent.mkdir(parents=True)
    (home / SOURCES).symlink_to(ROOT)
    script = "".join(f"{command}\nprintf '\\0%d\\0' $?\n" for command in commands)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, encoding="utf-8", cwd=folder, env=environment(home, PATH=path, **more), timeout=PATIENCE_S,
        check=True,
    )  # fmt: skip
    parts = done.stdout.split("\0")
    return [Result(output, int(status)) for output, status in zip(parts[::2], parts[1::2], strict=False)]


def rewritten(text: str, results: dict[Step, Result]) -> str:
    """The page with what the commands printed now. Moments that the history tells stay as they are on the page."""
    for span in sorted({step.span for step in results}, reverse=True):
        moments = iter(MOMENT.findall(text[slice(*span)]))
        inside = "".join(f"$ {step.command}\n{results[step].output}" for step in results if step.span == span)
        inside = MOMENT.sub(lambda found, moments=moments: next(moments, found[0]), inside)
        text = f"{text[: span[0]]}```console\n{inside}```{text[span[1] :]}"
    return text


def main() -> int:
    """Go through the tutorial with recordings of one's own; 1 where the advice was not resolved or nothing was won."""
    everything = steps(PAGE.read_text(encoding="utf-8"))
    commands = [step.command for step in everything if not step.command.startswith("cp -r recorded/")]
    with tempfile.TemporaryDirectory() as folder:
        home, place = Path(folder, "home"), Path(folder, "work")
        place.mkdir()
        mpi = {name: value for name, value in os.environ.items() if name.startswith(("OMPI_", "PRTE_"))}
        results = run([*commands, "gapwatch history --format json"], place, home, **mpi)
    for command, result in zip(commands, results, strict=False):
        print(f"$ {command}\n{result.output}", end="")
    items = next(part for part in json.loads(results[-1].output)["parts"] if part["title"] == "Advice")
    names = [column["name"] for column in items["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in items["rows"]]
    won = [row for row in rows if row["action"] == "A-28" and row["state"] == "resolved" and (row["realised"] or 0) > 0]
    print("promised and realised: " + ", ".join(f"{row['promised']} and {row['realised']}" for row in won))
    return 0 if won else 1


if __name__ == "__main__":
    sys.exit(main())
