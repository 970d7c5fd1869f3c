"""The dialects of timing tables that are known."""

from __future__ import annotations

from typing import Final

from advisor.formats.timing_tables.dialects import (
    cp2k,
    dealii,
    gromacs,
    ipm_banner,
    kokkos,
    lammps,
    petsc_csv,
    petsc_text,
    petsc_xml,
    quantum_espresso,
    teuchos,
    tiny_profiler,
)
from advisor.formats.timing_tables.table import Dialect

DIALECTS: Final = (
    Dialect("LAMMPS", lammps.MARKER, lammps.parse),
    Dialect("GROMACS", gromacs.MARKER, gromacs.parse),
    Dialect("Teuchos", teuchos.MARKER, teuchos.parse),
    Dialect("TinyProfiler", tiny_profiler.MARKER, tiny_profiler.parse),
    Dialect("deal.II", dealii.MARKER, dealii.parse),
    Dialect("CP2K", cp2k.MARKER, cp2k.parse),
    Dialect("IPM", ipm_banner.MARKER, ipm_banner.parse),
    Dialect("Kokkos Tools", kokkos.MARKER, kokkos.parse),
    Dialect("PETSc", petsc_xml.MARKER, petsc_xml.parse),
    Dialect("PETSc", petsc_csv.MARKER, petsc_csv.parse),
    Dialect("PETSc", petsc_text.MARKER, petsc_text.parse),
    Dialect("Quantum ESPRESSO", quantum_espresso.MARKER, quantum_espresso.parse),
)


def find_dialect(content: bytes) -> Dialect | None:
    """Return the dialect whose tables are in ``content``, None where there is none."""
    return next((dialect for dialect in DIALECTS if dialect.marker in content), None)
