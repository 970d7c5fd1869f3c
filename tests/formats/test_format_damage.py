"""Damaged files of the readers of text and JSON: refused, or read with a note, or the same as before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import damage
import pytest

from advisor.formats import benchmarks, call_stacks, ipm, kokkos_timer, ncu, nsys, slurm, timemory, timing_tables

if TYPE_CHECKING:
    from types import ModuleType

HERE = Path(__file__).parents[1] / "profiles"
#: A file of each kind, its reader, and how many of a hundred flips of a bit may change the profile without a word:
#: those in digits that stand there only once, and in names.
SAMPLES: tuple[tuple[str, ModuleType, int], ...] = (
    ("benchmarks/google.json", benchmarks, 60),
    ("benchmarks/pytest.json", benchmarks, 60),
    ("benchmarks/hyperfine.json", benchmarks, 60),
    ("benchmarks/jmh.json", benchmarks, 60),
    ("benchmarks/dotnet.json", benchmarks, 60),
    ("benchmarks/pyperf.json", benchmarks, 60),
    ("benchmarks/go.txt", benchmarks, 65),
    ("benchmarks/libtest.txt", benchmarks, 60),
    ("benchmarks/criterion.txt", benchmarks, 60),
    ("benchmarks/catch2.txt", benchmarks, 60),
    ("call_stacks/cprofile.txt", call_stacks, 55),
    ("call_stacks/cprofile.pstats", call_stacks, 60),
    ("call_stacks/pyinstrument.json", call_stacks, 60),
    ("call_stacks/speedscope.json", call_stacks, 60),
    ("call_stacks/raw.folded", call_stacks, 100),
    ("call_stacks/line_profiler.txt", call_stacks, 60),
    ("call_stacks/waves_profiled.py.lprof", call_stacks, 60),
    ("call_stacks/scalene.json", call_stacks, 60),
    ("call_stacks/go.prof", call_stacks, 5),
    ("call_stacks/threads.pb", call_stacks, 30),
    ("call_stacks/pprof-top.txt", call_stacks, 60),
    ("call_stacks/perf-annotate.txt", call_stacks, 60),
    ("device_sums/ncu-details.txt", ncu, 60),
    ("device_sums/nvprof.txt", nsys, 30),
    ("device_sums/nsys-stats.txt", nsys, 30),
    ("device_sums/nvprof-trace.txt", nsys, 60),
    ("device_sums/nsys-trace.csv", nsys, 60),
    ("ipm/heat.xml", ipm, 20),
    ("kokkos_timer/ranks/node-25027.json", kokkos_timer, 40),
    ("kokkos_timer/node-25024.dat", kokkos_timer, 60),
    ("slurm/sacct.txt", slurm, 60),
    ("slurm/seff.txt", slurm, 40),
    ("timemory/wall.tree.json", timemory, 60),
    ("timemory/wall_clock.json", timemory, 60),
    ("timing_tables/pytorch.txt", timing_tables, 60),
    ("timing_tables/craypat.txt", timing_tables, 30),
    ("timing_tables/nwchem.out", timing_tables, 20),
    ("timing_tables/openfoam.log", timing_tables, 30),
    ("timing_tables/openfoam-profiling.txt", timing_tables, 30),
    ("timing_tables/performance-report.txt", timing_tables, 20),
    ("timing_tables/fms.log", timing_tables, 30),
    ("timing_tables/ESMF_Profile.summary", timing_tables, 60),
    ("timing_tables/OUTCAR", timing_tables, 65),
    ("timing_tables/abinit.out", timing_tables, 40),
    ("timing_tables/siesta.times", timing_tables, 40),
    ("timing_tables/mpas.log", timing_tables, 40),
    ("timing_tables/rsl.error.0000", timing_tables, 60),
    ("timing_tables/namd.log", timing_tables, 60),
    ("timing_tables/fhi-aims.out", timing_tables, 40),
    ("timing_tables/al3x3.castep", timing_tables, 5),
    ("timing_tables/timing.output", timing_tables, 20),
    ("timing_tables/hpcg.txt", timing_tables, 5),
    ("timing_tables/hpl.out", timing_tables, 5),
    ("timing_tables/lammps.log", timing_tables, 5),
    ("timing_tables/sparta.log", timing_tables, 15),
    ("timing_tables/gptl/model_timing_stats", timing_tables, 10),
    ("timing_tables/time.txt", timing_tables, 10),
    ("timing_tables/STDOUT.0000", timing_tables, 30),
    ("timing_tables/gromacs-pme.log", timing_tables, 5),
    ("timing_tables/cp2k.out", timing_tables, 20),
    ("timing_tables/pwscf.out", timing_tables, 20),
    ("timing_tables/ipm-banner.txt", timing_tables, 20),
    ("timing_tables/kokkos.txt", timing_tables, 40),
    ("timing_tables/petsc.xml", timing_tables, 20),
    ("timing_tables/petsc.csv", timing_tables, 60),
    ("timing_tables/petsc.txt", timing_tables, 20),
    ("timing_tables/teuchos.txt", timing_tables, 40),
    ("timing_tables/tiny-profiler.txt", timing_tables, 30),
    ("timing_tables/dealii-statistics.txt", timing_tables, 40),
)
NAMES = [name for name, _, _ in SAMPLES]
#: Formats that have no end: a file that stops behind a line is a whole one.
ENDLESS = (
    "benchmarks/go.txt",
    "benchmarks/libtest.txt",
    "benchmarks/criterion.txt",
    "benchmarks/catch2.txt",
    "timing_tables/gptl/model_timing_stats",
    "timing_tables/ESMF_Profile.summary",
    "call_stacks/raw.folded",
    "call_stacks/line_profiler.txt",
    "call_stacks/perf-annotate.txt",
    "device_sums/nvprof-trace.txt",
    "device_sums/nsys-trace.csv",
    "kokkos_timer/node-25024.dat",
    "slurm/sacct.txt",
)


@pytest.mark.parametrize(("name", "reader", "silent"), SAMPLES, ids=NAMES)
def test_files_cut_off_anywhere(name: str, reader: ModuleType, silent: int, tmp_path: Path) -> None:
    if name in ENDLESS:
        pytest.skip("nothing in the format says where it ends")
    damage.every_prefix(HERE / name, tmp_path, reader.advisor_read)


@pytest.mark.parametrize(("name", "reader", "silent"), SAMPLES, ids=NAMES)
def test_bits_turned_over(name: str, reader: ModuleType, silent: int, tmp_path: Path) -> None:
    assert damage.bit_flips(HERE / name, tmp_path, reader.advisor_read) <= silent / 100 * damage.TRIED
