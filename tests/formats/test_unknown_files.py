"""A file that no reader takes is named by what it looks like, with the command that converts it."""

from __future__ import annotations

import gzip
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.extension import host
from advisor.extension.host.unknown_files import describe_unknown, identify_file
from advisor.model.errors import UnknownFormatError

if TYPE_CHECKING:
    from collections.abc import Callable

UNENDED = "without its times, as of a run that did not end, or cut off; to know them, record the run"
CONTENTS: dict[str, tuple[bytes, str, str]] = {
    "app.gz": (gzip.compress(b'{"a": 1, "b": [2]}'), "JSON with a, b, packed by gzip", "gunzip"),
    "data.gz": (gzip.compress(b"\x00\x01"), "packed by gzip", "gunzip"),
    "perf.data": (b"PERFILE2" + bytes(100), "a recording of perf", "perf script -i"),
    "gmon.out": (b"gmon\x01\x00\x00\x00", "raw data of gprof", "gprof -b ./PROGRAM"),
    "gmon.rank0": (
        b"gmon\x00\x00\x00\x01",
        "raw data of gprof from a big-endian machine, for a gprof that knows its programs",
        "gprof -b ./PROGRAM",
    ),
    "dhat.out.1": (
        b'{"dhatFileVersion":2\n,"mode":"heap"}',
        "a profile of DHAT: what is allocated and used of the heap, without seconds",
        "gapwatch run -- ./PROGRAM",
    ),
    "julia.txt": (
        "Overhead ╎ [+additional indent] Count File:Line; Function\n====\n   ╎6576 @Base/client.jl:485; f()\n".encode(),
        "samples that Profile.print() of Julia prints, which says no seconds",
        "gapwatch run -- julia",
    ),
    "julia-flat.txt": (
        b" Count  Overhead File                    Line Function\n =====  ======== ====  ==== ========\n",
        "samples that Profile.print() of Julia prints, which says no seconds",
        "gapwatch run -- julia",
    ),
    "run.0001.profile": (
        b"+----+\n|     Subroutine          Total      Profiled   Time      |\n|        calls    calls   (incl.)   |\n",
        "CASTEP's profile of its subroutines, which is not read: its output SEED.castep holds its times",
        "",
    ),
    "a.h5": (b"\x89HDF\r\n\x1a\n" + bytes(8), "HDF5", ""),
    "r.nsys-rep": (b"\x01\x02\x03", "a report of Nsight Systems", "nsys export"),
    "a.lz4": (b"\x04\x22\x4d\x18" + bytes(20), "packed by lz4", "unlz4"),
    "app.ap2": (b"\x01\x02\x00", "data of CrayPat", "pat_report"),
    "r000hs.vtune": (b"\x01\x02\x00", "a result of VTune", "vtune -report summary -r"),
    "Allrun.vtune": (b"#!/bin/sh\nvtune -collect hotspots ./app\n", "a text that begins with '#!/bin/sh'", ""),
    "heat_4p.map": (b"\x01\x02\x00" + bytes(9), "a recording of Linaro MAP", "perf-report"),
    "app.js.map": (b'{"version": 3}\n', "JSON with version", ""),
    "out.prof": (bytes(8) + b"\x03" + bytes(23), "raw data of gperftools", "pprof -proto"),
    "trace.json": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:bee2\nsize 118\n",
        "a pointer of Git LFS to the file",
        "git lfs pull",
    ),
    "x.nc": (b"CDF\x02" + bytes(9), "NetCDF", ""),
    "a.xml": (b'<?xml version="1.0"?>\n<!-- x -->\n<sprites n="1"/>', "XML of sprites", ""),
    "tauprofile.xml": (b"<profile_xml>\n<definitions>", "merged profiles of TAU", "paraprof --pack"),
    "notes.txt": (b"the solver is slow\n", "a text that begins with 'the solver is slow'", ""),
    "banner.txt": (b"+----+\n|    |\n| ONETEP 3.5 |\n", "a text that begins with '| ONETEP 3.5 |'", ""),
    "impi.out": (
        b"[0] MPI startup(): using network\n",
        "a text that begins with '[0] MPI startup(): using network'",
        "",
    ),
    "numbers.json": (b"[1, 2, 3]", "JSON", ""),
    "osu.out": (
        b"[0] MPI startup()\n# OSU MPI Latency Test v5.6\n",
        "a benchmark of MPI, which measures the machine and no program",
        "gapwatch machines import",
    ),
    "allreduce.out": (
        b"# OSU MPI Allreduce Latency Test v7.1\n",
        "a benchmark of MPI, which measures the machine and no program",
        "",
    ),
    "stream.txt": (
        b"-----\nSTREAM version $Revision: 5.10 $\n",
        "STREAM, which measures the machine and no program",
        "gapwatch machines import",
    ),
    "ior.txt": (
        b"IOR-3.3.0: MPI Coordinated Test of Parallel I/O\n",
        "a benchmark of the file system, which measures the machine and no program",
        "",
    ),
    "vasprun.xml": (
        b'<?xml version="1.0"?>\n<modeling>\n <generator>\n  <i name="program" type="string">vasp </i>\n',
        "results of VASP without its times, which are in OUTCAR",
        "",
    ),
    "hip_api_trace.csv": (
        b'"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n',
        "a table of rocprofv3 without kernels: name its folder",
        "rocprofv3 --kernel-trace",
    ),
    "pmc_perf.csv": (b"Dispatch_ID,Kernel_Name,GPU_ID\n", "counters of AMD devices without times", "rocprofv3"),
    "metrics.csv": (
        b"ID,Process ID,Process Name,Host Name,Kernel Name,Kernel Time,Context,Stream,Metric Name\n0,7,a,h,k,t,1,7,x\n",
        "metrics of Nsight Compute without the seconds of kernels",
        "ncu --set full --csv --page raw ./PROGRAM > kernels.csv",
    ),
    "metrics.txt": (
        b"==7== NVPROF is profiling process 7, command: ./a\n==7== Metric result:\n",
        "counters of nvprof without the seconds of kernels",
        "nvprof -f -o run.nvvp ./PROGRAM",
    ),
    "nvprof.txt": (
        b"==7== NVPROF is profiling process 7, command: ./a\n==7== Profiling result:\nNo kernels were profiled.\n",
        "an output of nvprof without kernels and calls of CUDA",
        "nvprof -f -o run.nvvp ./PROGRAM",
    ),
    "session.nvvp": (
        b'<?xml version="1.0"?>\n<session version="1" name="a">\n<executable file="/a/b" timestamp="1"/>\n',
        "a session of NVIDIA's Visual Profiler without its data",
        "nvprof -f -o run.nvvp ./PROGRAM",
    ),
    "stats.csv": (
        b"Generating SQLite file a.sqlite\nProcessing [a.sqlite] with [/opt/nvtx_sum.py]...\nSKIPPED: a.sqlite\n",
        "statistics of nsys without kernels and calls of CUDA",
        "gapwatch run -- ./PROGRAM",
    ),
    "vasprun.xml.gz": (
        gzip.compress(b'<modeling>\n <generator>\n  <i name="program" type="string">vasp </i>\n'),
        "results of VASP without its times, which are in OUTCAR (packed by gzip)",
        "",
    ),
    "md.log": (
        b"               :-) GROMACS - gmx mdrun, 2021.1 (-:\n\n   Step   Time\n",
        f"a log of GROMACS {UNENDED}",
        "gapwatch run -- gmx mdrun",
    ),
    "OUTCAR": (b" vasp.6.3.2 27Jun22 complex\n  executed on LinuxIFC\n", f"an output of VASP {UNENDED}", "vasp_std"),
    "log.lammps": (b"LAMMPS (2 Aug 2023)\nunits lj\n", f"a log of LAMMPS {UNENDED}", "lmp -in INPUT"),
    "si.castep": (
        b" |      CCC   AA    SSS  TTTTT  EEEEE  PPPP        |\n",
        f"an output of CASTEP {UNENDED}",
        "castep.mpi",
    ),
    "cp2k.out": (b" DBCSR| CPU Multiplication driver  XSMM\n", f"an output of CP2K {UNENDED}", "cp2k.psmp"),
    "log.interFoam": (b"Build  : 10\nExec   : interFoam -parallel\n", f"a log of OpenFOAM {UNENDED}", "-parallel"),
    "interFoam.H": (
        b"/* | OpenFOAM: The Open Source CFD Toolbox */\n",
        "a text that begins with '/* | OpenFOAM: The Open Source CFD Toolbox */'",
        "",
    ),
    "profile.coz": (
        b"startup\ttime=1769153427854150876\nexperiment\tselected=a.cpp:3\tspeedup=0.5\n",
        "a causal profile of Coz, which holds no times of functions",
        "coz plot",
    ),
    "hello.0.log": (b"PROJECTIONS-RECORD 12\n", "a log of Charm++'s Projections, which is not read", ""),
    "app.bin": (b"memray\x00" + bytes(9), "a recording of memray, which holds memory and no times", ""),
    "app.trace": (b"SIMPLEPERF\x01\x00" + bytes(8), "a recording of simpleperf", "report_sample.py -i"),
    "core": (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00" + bytes(40), "a core dump", ""),
    "nothing": (b"", "an empty file", ""),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_files_by_content(tmp_path: Path, name: str) -> None:
    content, kind, command = CONTENTS[name]
    (tmp_path / name).write_bytes(content)
    found = identify_file(tmp_path / name)
    assert found is not None
    assert found.name == kind
    assert command in (found.command or "")
    assert (found.command is not None) == bool(command)


def test_programs_and_databases(tmp_path: Path) -> None:
    assert "gapwatch run -- " in describe_unknown(Path(sys.executable).resolve())
    sqlite3.connect(tmp_path / "a.db").execute("create table t (x)").connection.close()
    assert describe_unknown(tmp_path / "a.db") == "; it looks like a SQLite database"


def test_the_message_names_it(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    path = tmp_path / "a b" / "gmon.out"
    path.write_bytes(b"gmon\x01\x00\x00\x00" + bytes(100))
    loaded = host.load_plugins()
    for place in (path, tmp_path / "a b"):
        with pytest.raises(UnknownFormatError, match=r"raw data of gprof: gprof -b ./PROGRAM '.*a b/gmon.out'"):
            loaded.find_profiles(place)


def test_folders_of_tools_are_named_by_what_they_hold(tmp_path: Path) -> None:
    for folder, file, words in (
        ("r000hs", "r000hs.vtune", "a result of VTune: vtune -report summary -r"),
        ("app+pat+1-2s", "index.ap2", "data of CrayPat: pat_report"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_bytes(b"\x01\x02\x00")
        assert words in describe_unknown(tmp_path / folder)


def test_what_is_nobodys_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\x00\x01\x02\xff" * 10)
    assert describe_unknown(tmp_path / "noise") == ""
    assert describe_unknown(tmp_path / "absent") == ""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_logs_of_old_darshan(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "app.darshan.gz").write_bytes(pack(b"2.06" + bytes(400)))
    told = describe_unknown(tmp_path / "app.darshan.gz")
    assert "a log of Darshan 1 or 2" in told
    assert "gunzip" not in told


def test_a_case_of_openfoam_without_a_log_names_its_solver(tmp_path: Path) -> None:
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "controlDict").write_text("FoamFile { }\napplication     simpleFoam;\n")
    told = describe_unknown(tmp_path)
    assert f"a case of OpenFOAM without a log: simpleFoam -case {tmp_path} > log.simpleFoam" in told
