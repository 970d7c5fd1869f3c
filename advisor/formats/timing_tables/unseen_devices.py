"""Outputs of programs that compute on devices: timers run on the host, and waiting for a device looks like work.

Each program says in its own words that it found devices and uses them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import RECORD_DEVICES
from advisor.model.records import DEVICES_UNSEEN, SHARED_CORES, Note
from advisor.model.units import format_share

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText
    from advisor.formats.timing_tables.table import TimingTable

_MARKS: Final = re.compile(
    "|".join(
        (
            r"^ *will use up to [1-9]\d* GPU\(s\) per node",  # LAMMPS with Kokkos
            r"^-  with +\d+ proc\(s\) per device",  # LAMMPS, package GPU
            r"^(?:On host \S+ )?\d+ GPUs? (?:auto-|user-)?selected for this run",  # GROMACS
            r"^(?:CUDA|HIP|SYCL) initialized(?: with [1-9])?",  # AMReX
            r"^ *GPU acceleration is ACTIVE",  # Quantum ESPRESSO
            r"^ *OpenACC runtime initialized \.\.\. +[1-9]\d* GPUs detected",  # VASP
            r"^ *DBCSR\| ACC: Number of devices/node +[1-9]",  # CP2K
            r"binding to (?:CUDA|HIP) device \d",  # NAMD
            r"^ *active occa mode: (?:CUDA|HIP|dpcpp|OPENCL)",  # nekRS
            r"^\|-+ GPU DEVICE INFO -+",  # Amber
            r"^ *(?:HPL|HPCG)-NVIDIA ",
        )
    )
)
_UNSEEN: Final = "the program computed on GPUs, and what they did is not in its table: "
_TEXT: Final = f"{_UNSEEN}time in which the host waits for them counts as computation"
_PARTLY: Final = f"{_UNSEEN}it times its waiting for them for {{share}} of the run, and more counts as computation"


def note_unseen_devices(text: PlainText, table: TimingTable) -> tuple[Note, ...]:
    """Return the notes of ``table`` with the doubt of an output that says that devices were used.

    A process that waits for its device needs no core: that it had none for long is then no doubt of its own.
    """
    if not any(_MARKS.search(line) for line in text.lines):
        return table.notes
    waits_s = sum(row.mean_s for row in table.rows if row.for_device)
    timed = table.ranks == 1 and waits_s > 0  # of several ranks it is communication
    words = _PARTLY.format(share=format_share(waits_s / table.wall_s)) if timed else _TEXT
    others = (note for note in table.notes if note.name != SHARED_CORES)
    return (*others, Note(DEVICES_UNSEEN, words, 0.3, RECORD_DEVICES))
