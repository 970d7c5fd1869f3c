"""How near replays come to recorded runs: ``python agreement.py DIRECTORY…`` prints a row for each trace below.

Each trace is replayed with its recorded times, and calibrated on half of its pieces to predict the other half.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.extension import host
from advisor.model.errors import AdvisorError
from advisor_simulation.replay import calibration, conversion, outcome
from advisor_simulation.replay.network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor_simulation.replay.program import Program


def programs(folder: Path) -> Iterator[tuple[str, Program]]:
    """Yield the program of each trace in the directories of ``folder``, or in itself, with its name."""
    readers = host.load_plugins()
    for each in sorted(path for path in folder.iterdir() if path.is_dir()) or [folder]:
        try:
            found = [one for one in readers.find_profiles(each) if readers.is_trace(one)]
        except AdvisorError:
            continue
        for one in found:
            try:
                yield each.name, conversion.convert_trace(readers.read_trace(one))
            except AdvisorError as error:
                print(f"{each.name} is left out: {error}", file=sys.stderr)


def row(name: str, program: Program) -> str:
    """Return what is said about a trace: its size, the error of both replays, and what is missing in it."""
    if program.end_s is None or outcome.recorded_time_s(program) is None:
        return f"| {name} | {program.ranks} | {len(program.op)} | no times of calls | | |"
    recorded = outcome.replay_recorded(program, Network())
    back = float(np.abs(recorded.end_s - program.end_s).max())
    missing = "; ".join(program.left_out)
    try:
        found = calibration.calibrate_network(program, Network())
    except AdvisorError as error:
        return f"| {name} | {program.ranks} | {len(program.op)} | {back:.0e} | {error} | {missing} |"
    error = f"{100 * found.prediction_error:.2f} %"
    return f"| {name} | {program.ranks} | {len(program.op)} | {back:.0e} | {error} | {missing} |"


def main(folders: list[str]) -> None:
    """Print the table."""
    print("| trace | ranks | operations | own times, off by s | other half, error | left out |")
    print("|---|--:|--:|--:|--:|---|")
    for folder in folders:
        for name, program in programs(Path(folder)):
            print(row(name, program))


if __name__ == "__main__":
    main(sys.argv[1:])
