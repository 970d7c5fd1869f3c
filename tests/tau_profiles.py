"""Recorded profiles of TAU, copies with changes, and profiles written by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.formats.tau import function_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model.records import Profile
    from advisor.trace.callpaths.records import CallPaths


PROFILES = Path(__file__).parent / "profiles"
RUNS = sorted(path for path in (PROFILES / "tau").iterdir() if path.is_dir() and path.name != "trace")
IMBALANCE = PROFILES / "tau" / "faultlab-imbalance30"
CALL_PATHS = PROFILES / "tau" / "npb-lu.S.2-callpath"
SAMPLES = PROFILES / "tau" / "npb-bt.S.4-tau_exec-ebs"
MATRIX = PROFILES / "tau" / "npb-lu.S.2"


def chain_names(paths: CallPaths) -> list[tuple[tuple[str, str | None], ...]]:
    """The path of names and files of each node."""
    found: list[tuple[tuple[str, str | None], ...]] = []
    for node in paths.nodes:
        above = found[node.parent] if node.parent >= 0 else ()
        found.append((*above, (node.name, node.file)))
    return found


def processor_key(part: str) -> tuple[str, str | None]:
    node = function_names.build_node(part, ("MPI",) if part.startswith("MPI_") else (), -1)
    return node.name, node.file


def note_names(found: Profile | CallPaths) -> dict[str, float]:
    return {note.name: note.penalty for note in found.notes}


def copy_run(path: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(path, tmp_path / path.name))


def edit_copy(path: Path, change: Callable[[str], str]) -> None:
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))


def write_profile(folder: Path, rank: int, *lines: str, events: tuple[str, ...] = (), metric: str = "TIME") -> Path:
    """A profile with these functions and user events, and the metadata that TAU writes."""
    folder.mkdir(exist_ok=True)
    head = [f"{len(lines)} templated_functions_MULTI_{metric}", "# Name Calls Subrs Excl Incl ProfileCalls # "]
    tail = ["0 aggregates", f"{len(events)} userevents", "# eventname numevents max min mean sumsqr", *events, ""]
    target = folder / f"profile.{rank}.0.0"
    target.write_bytes("\n".join([*head, *lines, *tail]).encode("utf-8", "surrogateescape"))
    return target


def metrics_of(path: Path) -> list[str]:
    return sorted(child.name.removeprefix("MULTI__") for child in path.glob("MULTI__*")) or [""]
