"""Outputs of programs that compute on devices: timers run on the host, and waiting for a device looks like work.

Each program says in its own words that it found devices and uses them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import DEVICES_UNSEEN
from advisor.model.records import SHARED_CORES, Note

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_MARKS: Final = re.compile(
    "|".join(
        (
            r"^ *will use up to [1-9]\d* GPU\(s\) per node",  # LAMMPS with Kokkos
            r"^-  with +\d+ proc\(s\) per device",  # LAMMPS, package GPU
            r"^\d+ GPUs? (?:auto-|user-)?selected for this run",  # GROMACS
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
_TEXT: Final = (
    "the program computed on GPUs, and what they did is not in its table: time in which the host waits for them counts"
    " as computation"
)


def note_unseen_devices(text: PlainText, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """Return ``notes`` with the doubt of an output that says that devices were used.

    A process that waits for its device needs no core: that it had none for long is then no doubt of its own.
    """
    if not any(_MARKS.search(line) for line in text.lines):
        return notes
    others = (note for note in notes if note.name != SHARED_CORES)
    return (*others, Note(DEVICES_UNSEEN, _TEXT, 0.3, "nsys profile, rocprofv3"))
