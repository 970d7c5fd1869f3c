"""The dialects of timing tables that are known; what reads one is imported when a file is in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.timing_tables.known_forms import FORMS

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText
    from advisor.formats.timing_tables.table import TimingTable
    from advisor.formats.timing_tables.table_forms import TableForm

#: The first columns of PETSc's log of events in CSV.
PETSC_COLUMNS: Final = b"Stage Name,Event Name,Rank,Count,Time,Num Messages,Message Length,Num Reductions,FLOP,"


class Dialect(NamedTuple):
    """How one library prints its times: the name, a text that only its tables hold, and what reads them.

    That is a module of its own, or a form that describes the lines.
    """

    name: str
    marker: bytes
    module: str = ""
    form: TableForm | None = None

    def parse(self, text: PlainText) -> TimingTable:
        """Return the table in ``text``; raises ``InputError`` with the line of what is damaged."""
        if self.form is not None:
            from advisor.formats.timing_tables.table_reading import parse_table

            return parse_table(text, self.form)
        reader = import_module(f"advisor.formats.timing_tables.dialects.{self.module}")
        table: TimingTable = reader.parse(text)
        return table


DIALECTS: Final = (
    Dialect("CrayPat", b"CrayPat/X:  Version", "craypat"),
    Dialect("LAMMPS", b"MPI task timing breakdown:", "lammps"),
    Dialect("LAMMPS", b"\nComm  time (%) = ", "lammps"),
    Dialect("GROMACS", b"R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G", "gromacs"),
    Dialect("TinyProfiler", b"TinyProfiler total time across processes [min...avg...max]: ", "tiny_profiler"),
    Dialect("IPM", b"##IPMv", "ipm_banner"),
    Dialect("PyTorch", b"    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg ", "torch_table"),
    Dialect("Kokkos Tools", b"BEGIN KOKKOS PROFILING REPORT:", "kokkos"),
    Dialect("PETSc", b"<petscroot>", "petsc_xml"),
    Dialect("PETSc", PETSC_COLUMNS, "petsc_csv"),
    Dialect("PETSc", b"PETSc Performance Summary: ---", "petsc_text"),
    Dialect("OpenFOAM", b" s  ClockTime = ", "openfoam_log"),
    Dialect("OpenFOAM", b"\nprofiling\n{\n    trigger0\n", "openfoam_profiling"),
    Dialect("NWChem", b"Northwest Computational Chemistry Package (NWChem)", "nwchem"),
    Dialect("GPTL", b"***** GLOBAL STATISTICS (", "gptl"),
    Dialect("MITgcm", b'Seconds in section "ALL ', "mitgcm"),
    Dialect("VASP", b"General timing and accounting informations for this job:", "vasp"),
    Dialect("FHI-aims", b"Detailed time accounting                     :  max(cpu_time)", "fhi_aims"),
    Dialect("CASTEP", b"\nFinalisation time   = ", "castep"),
    Dialect("MPAS", b"    timer_name                                            total       calls ", "mpas"),
    Dialect("NEMO", b" Total timing (sum) :\n --------------------\n", "nemo"),
    Dialect("HPCG", b"Benchmark Time Summary::Total=", "hpcg"),
    Dialect("HPL", b"\nT/V                N    NB     P     Q               Time ", "hpl"),
    Dialect("SIESTA", b"\ntimer: Busiest calculating node was node = ", "siesta"),
    Dialect("SIESTA", b"\ntimer: CPU execution times (sec):", "siesta"),
    Dialect("NAMD", b"\nInfo: NAMD ", "namd"),
    Dialect("WRF", b"Timing for main: time ", "wrf"),
    Dialect("EZTrace", b"time spent in mpi: ", "eztrace_stats"),
    Dialect("Performance Reports", b"-bound in this configuration", "performance_reports"),
    Dialect("Quantum ESPRESSO", b"This program is part of the open-source Quantum ESPRESSO suite", "quantum_espresso"),
    *(Dialect(form.tool, form.marker, form=form) for form in FORMS),
    Dialect("GNU time", b"\tElapsed (wall clock) time (h:mm:ss or m:ss): ", "gnu_time"),  # behind any other output
)


def find_dialect(content: bytes) -> Dialect | None:
    """Return the dialect whose tables are in ``content``, None where there is none."""
    return next((dialect for dialect in DIALECTS if dialect.marker in content), None)
