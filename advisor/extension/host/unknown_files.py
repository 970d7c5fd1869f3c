"""What a file looks like that no reader takes, and the command that makes of it what a reader takes."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Final, Literal, NamedTuple

from advisor.model.lists import join_clauses

#: Bytes that are looked at.
_HEAD: Final = 4096
#: Entries of a directory that are looked at, and kinds that are told.
_ENTRIES: Final = 50
_TOLD: Final = 2
_UNPACK: Final = "unpack it first: {tool} {{path}}"
_DARSHAN: Final = re.compile(rb"[12]\.\d\d\x00{4}")
_MACHINE: Final = "gapwatch machines import {path}"
_ELF_TYPES: Final = {1: "an ELF object file", 2: "an ELF program", 3: "an ELF program or library", 4: "a core dump"}
_XML_ROOT: Final = re.compile(
    rb"\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<([A-Za-z_][\w.:-]{0,60})", re.DOTALL
)
#: Not what MPI libraries print in front of their lines, ``[0] MPI startup``.
_JSON: Final = re.compile(rb'\{|\[\s*(?:[\[{"\]]|-?\d[\d.eE+-]*\s*(?:,|\]\s*\Z)|true|false|null)')
_JSON_KEY: Final = re.compile(rb'"([\w$.: -]{1,40})"\s*:')
_APPLICATION: Final = re.compile(rb"^ *application +([A-Za-z][A-Za-z0-9_]{0,60}) *;", re.MULTILINE)
_WORD: Final = re.compile(r"[^\W\d_]{3}")
_SHOWN: Final = 60


class FileKind(NamedTuple):
    """A kind of file in words, and the command that converts ``{path}``, None where there is none."""

    name: str
    command: str | None = None


#: How files begin.
_MAGIC: Final = (
    (b"BZh", FileKind("packed by bzip2", _UNPACK.format(tool="bunzip2"))),
    (b"\xfd7zXZ\x00", FileKind("packed by xz", _UNPACK.format(tool="unxz"))),
    (b"\x28\xb5\x2f\xfd", FileKind("packed by zstd", _UNPACK.format(tool="unzstd"))),
    (b"\x04\x22\x4d\x18", FileKind("packed by lz4", _UNPACK.format(tool="unlz4"))),
    (b"\x1f\x9d", FileKind("packed by compress", _UNPACK.format(tool="uncompress"))),
    (b"7z\xbc\xaf\x27\x1c", FileKind("a 7z archive", _UNPACK.format(tool="7z x"))),
    (b"PK\x03\x04", FileKind("a zip archive", _UNPACK.format(tool="unzip"))),
    (b"PERFILE2", FileKind("a recording of perf", "perf script -i {path} > perf.txt")),
    (
        b"gmon\x00\x00\x00",
        FileKind(
            "raw data of gprof from a big-endian machine, for a gprof that knows its programs",
            "gprof -b ./PROGRAM {path} > gprof.txt",
        ),
    ),
    (b"gmon", FileKind("raw data of gprof", "gprof -b ./PROGRAM {path} > gprof.txt")),
    (b"HPCRUN-profile", FileKind("raw data of hpcrun", "hpcprof FOLDER_OF_THESE_FILES")),
    (b"SQLite format 3\x00", FileKind("a SQLite database")),
    (b"\x89HDF\r\n\x1a\n", FileKind("HDF5")),
    (b"CLOG-", FileKind("a trace of MPE")),
    (b"memray", FileKind("a recording of memray, which holds memory and no times")),
    (b"SIMPLEPERF", FileKind("a recording of simpleperf", "report_sample.py -i {path} > perf.txt")),
    (b"PAR1", FileKind("Parquet")),
    (b"ARROW1", FileKind("Arrow")),
    (b"\x93NUMPY", FileKind("an array of NumPy")),
    (b"CDF\x01", FileKind("NetCDF")),
    (b"CDF\x02", FileKind("NetCDF")),
    (b"CDF\x05", FileKind("NetCDF")),
    (
        bytes(8) + b"\x03" + bytes(7),
        FileKind("raw data of gperftools", "pprof -proto ./PROGRAM {path} > profile.pb.gz"),
    ),
    (b"\xcf\xfa\xed\xfe", FileKind("a Mach-O program or library")),
    (b"MZ", FileKind("a program for Windows")),
    (b"version https://git-lfs.", FileKind("a pointer of Git LFS to the file", "git lfs pull --include {path}")),
    (b"%PDF-", FileKind("PDF")),
    (b"\x89PNG", FileKind("a picture (PNG)")),
    (b"\xc1\x1f\xfc\xc1", FileKind("a trace in CTF")),
)
#: Formats that nothing converts any more, and what is left to do.
_OLD_DARSHAN: Final = FileKind("a log of Darshan 1 or 2, which Darshan 3 no longer reads: record the program again")
#: Files that tools name, and nothing in which is documented.
_SUFFIXES: Final = {
    ".nsys-rep": FileKind("a report of Nsight Systems", "nsys export --type sqlite {path}"),
    ".qdrep": FileKind("a report of Nsight Systems", "nsys export --type sqlite {path}"),
    ".ncu-rep": FileKind("a report of Nsight Compute", "ncu --import {path} --csv --page raw > ncu.csv"),
    ".ap2": FileKind("data of CrayPat", "pat_report {path} > craypat.txt"),
    ".xf": FileKind("raw data of CrayPat", "pat_report {path} > craypat.txt"),
    ".vtune": FileKind(
        "a result of VTune", "vtune -report summary -r {path} -format csv -csv-delimiter comma > vtune.csv"
    ),
    ".advixe": FileKind("a result of Intel Advisor"),
    ".pftrace": FileKind("a trace of Perfetto"),
    ".perfetto-trace": FileKind("a trace of Perfetto"),
    ".slog2": FileKind("a trace of Jumpshot"),
    ".sts": FileKind("a trace of Charm++'s Projections"),
    ".mpit": FileKind("raw data of Extrae", "mpi2prv -f TRACE.mpits -o trace.prv"),
    ".mpits": FileKind("raw data of Extrae", "mpi2prv -f {path} -o trace.prv"),
    ".edf": FileKind("a trace of TAU", "tau_treemerge.pl && tau2otf2 tau.trc tau.edf app"),
}
#: How scripts begin, which are also named after the tool that they start.
_SCRIPT: Final = b"#!"
#: Names that other tools give to texts as well.
_BINARY_SUFFIXES: Final = {".map": FileKind("a recording of Linaro MAP", "perf-report {path}")}
_RUN: Final = "gapwatch run -- ./PROGRAM"
_NVPROF: Final = "nvprof -f -o run.nvvp ./PROGRAM"
#: Texts by what stands in them, not only at their beginning.
_TEXTS: Final = (
    (
        re.compile(rb'^\s*\{\s*"dhatFileVersion"\s*:'),
        FileKind("a profile of DHAT: what is allocated and used of the heap, without seconds", _RUN),
    ),
    (
        re.compile(
            "^ *(?:Overhead ╎ \\[\\+additional indent\\] Count|Count +(?:Overhead +)?File +Line Function)".encode(),
            re.M,
        ),
        FileKind(
            "samples that Profile.print() of Julia prints, which says no seconds", "gapwatch run -- julia SCRIPT.jl"
        ),
    ),
    (
        re.compile(rb"# OSU MPI\S* (?:Latency|Bandwidth) Test v|# Benchmarking +PingPong"),
        FileKind("a benchmark of MPI, which measures the machine and no program", _MACHINE),
    ),
    (
        re.compile(rb"STREAM version \$Revision"),
        FileKind("STREAM, which measures the machine and no program", _MACHINE),
    ),
    (
        re.compile(rb'"Domain","Function","Process_Id"|"Kind","(?:Direction|Operation)",.*"(?:Source_Agent|Agent)_Id"'),
        FileKind("a table of rocprofv3 without kernels: name its folder", "rocprofv3 --kernel-trace -- ./PROGRAM"),
    ),
    (
        re.compile(
            rb'"?Dispatch_I[Dd]"?,"?(?:Kernel_Name|GPU_ID|Agent_Id)"?,|"Correlation_Id","Dispatch_Id","Agent_Id"'
        ),
        FileKind("counters of AMD devices without times", "rocprofv3 --kernel-trace --hip-trace -- ./PROGRAM"),
    ),
    (
        re.compile(rb"# OSU (?:MPI|SHMEM|NCCL)\S* .{0,60}Test v|Intel\(R\) MPI Benchmarks"),
        FileKind("a benchmark of MPI, which measures the machine and no program"),
    ),
    (
        re.compile(rb"IOR-\d.*MPI Coordinated Test of Parallel I/O|mdtest-\d\S* was launched"),
        FileKind("a benchmark of the file system, which measures the machine and no program"),
    ),
    (
        re.compile(rb'"?ID"?,"?Process ID"?,"?Process Name"?,"?Host Name"?,"?Kernel Name"?,"?Kernel Time"?,'),
        FileKind(
            "metrics of Nsight Compute without the seconds of kernels",
            "ncu --set full --csv --page raw ./PROGRAM > kernels.csv",
        ),
    ),
    (
        re.compile(rb"^==\d+== (?:Metric|Event) result:", re.MULTILINE),
        FileKind("counters of nvprof without the seconds of kernels", _NVPROF),
    ),
    (
        re.compile(rb"^==\d+== NVPROF is profiling|^======== CPU profiling result", re.MULTILINE),
        FileKind("an output of nvprof without kernels and calls of CUDA", _NVPROF),
    ),
    (
        re.compile(rb"^Processing \[\S+\.sqlite\] with \[", re.MULTILINE),
        FileKind("statistics of nsys without kernels and calls of CUDA", _RUN),
    ),
    (
        re.compile(rb"<session version=\"\d+\" name=(?s:.)*<executable file="),
        FileKind("a session of NVIDIA's Visual Profiler without its data", _NVPROF),
    ),
    (
        re.compile(rb"startup\ttime=\d+\s+experiment\tselected="),
        FileKind("a causal profile of Coz, which holds no times of functions", "coz plot"),
    ),
    (
        re.compile(rb"\|\s+Subroutine\s+Total\s+Profiled\s+Time\s+\|"),
        FileKind("CASTEP's profile of its subroutines, which is not read: its output SEED.castep holds its times"),
    ),
    (re.compile(rb"PROJECTIONS-RECORD"), FileKind("a log of Charm++'s Projections, which is not read")),
    (
        re.compile(rb"<modeling>\s.*<i name=\"program\"[^>]*>vasp", re.DOTALL),
        FileKind("results of VASP without its times, which are in OUTCAR"),
    ),
)
#: Outputs of programs that print their times at their end, by how they begin, and what they are called.
_OUTPUTS: Final = (
    (re.compile(rb":-\) GROMACS - gmx mdrun"), "a log of GROMACS", "gmx mdrun -deffnm RUN"),
    (re.compile(rb"^ vasp\.\d", re.MULTILINE), "an output of VASP", "mpirun -n RANKS vasp_std"),
    (re.compile(rb"CCC   AA    SSS  TTTTT  EEEEE  PPPP"), "an output of CASTEP", "mpirun -n RANKS castep.mpi SEED"),
    (re.compile(rb"^LAMMPS \(\d", re.MULTILINE), "a log of LAMMPS", "mpirun -n RANKS lmp -in INPUT"),
    (re.compile(rb"^ *(?:CP2K\||DBCSR\|) ", re.MULTILINE), "an output of CP2K", "mpirun -n RANKS cp2k.psmp -i INPUT"),
    (re.compile(rb"^Exec +: +\S*Foam\b", re.MULTILINE), "a log of OpenFOAM", "mpirun -n RANKS SOLVER -parallel"),
)
#: What has to be known where the times are missing.
_WITHOUT_TIMES: Final = "{} without its times, as of a run that did not end, or cut off; to know them, record the run"
#: Kinds of which unpacking makes nothing that is read.
_REFUSED: Final = frozenset({_OLD_DARSHAN, *(kind for _, kind in _TEXTS if kind.command is None)})


def describe_unknown(path: Path) -> str:
    """Return what ``path`` looks like, for the message that lists the known formats; nothing if unclear."""
    try:
        kinds = _list_kinds(path)
    except OSError:
        return ""
    told = [f"{kind.name}{f': {command}' if (command := _fill_command(kind, file)) else ''}" for file, kind in kinds]
    if not told:
        return ""
    return f"; it {'holds' if path.is_dir() else 'looks like'} {join_clauses(told, _TOLD)}"


def _fill_command(kind: FileKind, file: Path) -> str:
    return kind.command.replace("{path}", quote(str(file))) if kind.command else ""


def _list_kinds(path: Path) -> list[tuple[Path, FileKind]]:
    """Return a file with its kind, of a directory one file of each kind that a command converts."""
    if not path.is_dir():
        kind = identify_file(path)
        return [(path, kind)] if kind else []
    found = dict(_list_cases(path))
    for entry in sorted(path.iterdir())[:_ENTRIES]:
        kind = identify_file(entry) if entry.is_file() else None
        if kind and kind.command:
            found.setdefault(kind.name, (entry, kind))
    return list(found.values())


def _list_cases(folder: Path) -> Iterator[tuple[str, tuple[Path, FileKind]]]:
    """Yield the kind of a folder by its files: a case of OpenFOAM, whose logs are elsewhere."""
    control = folder / "system" / "controlDict"
    if control.is_file():
        named = _APPLICATION.search(control.read_bytes()[:_HEAD])
        solver = named[1].decode() if named else "SOLVER"
        kind = FileKind("a case of OpenFOAM without a log", f"{solver} -case {{path}} > log.{solver}")
        yield kind.name, (folder, kind)


def identify_file(path: Path) -> FileKind | None:
    """Return the kind of the file at ``path`` by its content, or by its name if the content says nothing."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if not head:
        return FileKind("an empty file")
    if path.suffix in _SUFFIXES and not head.startswith(_SCRIPT):
        return _SUFFIXES[path.suffix]
    if path.suffix in _BINARY_SUFFIXES and _identify_text(head) is None:
        return _BINARY_SUFFIXES[path.suffix]
    if head.startswith(b"\x1f\x8b"):
        inner = _identify_content(_unpack_head(path))
        if inner in _REFUSED:
            return FileKind(f"{inner.name} (packed by gzip)")
        name = f"{inner.name}, packed by gzip" if inner else "packed by gzip"
        return FileKind(name, _UNPACK.format(tool="gunzip"))
    if head.startswith(b"\x7fELF") and len(head) > 17:
        order: Literal["little", "big"] = "little" if head[5] == 1 else "big"
        kind = int.from_bytes(head[16:18], order)
        return FileKind(_ELF_TYPES.get(kind, "an ELF file"), "gapwatch run -- {path}" if kind in (2, 3) else None)
    return _identify_content(head)


def _identify_content(head: bytes) -> FileKind | None:
    """Return the kind of a file that begins with ``head``."""
    if head[257:262] == b"ustar":
        return FileKind("a tar archive", _UNPACK.format(tool="tar xf"))
    if _DARSHAN.match(head):
        return _OLD_DARSHAN
    return next((kind for begin, kind in _MAGIC if head.startswith(begin)), None) or _identify_text(head)


def _unpack_head(path: Path) -> bytes:
    try:
        with gzip.open(path) as stream:
            return stream.read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return b""


def _identify_text(head: bytes) -> FileKind | None:
    """Return the kind of a text by what it begins with; None of what is no text."""
    bare = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not bare or b"\x00" in head:
        return None
    told = next((kind for pattern, kind in _TEXTS if pattern.search(bare)), None)
    if told:
        return told
    for pattern, name, command in _OUTPUTS:
        if pattern.search(head):
            return FileKind(_WITHOUT_TIMES.format(name), f"gapwatch run -- {command}")
    if _JSON.match(bare):
        keys = list(dict.fromkeys(key.decode("ascii", "replace") for key in _JSON_KEY.findall(bare)))
        return FileKind(f"JSON with {', '.join(keys[:3])}" if keys else "JSON")
    root = _XML_ROOT.match(bare) if bare[:1] == b"<" else None
    if root and root[1] == b"profile_xml":
        return FileKind("merged profiles of TAU", "paraprof --pack app.ppk {path}")
    if root:
        return FileKind(f"XML of {root[1].decode('ascii', 'replace')}")
    lines = [line.decode("utf-8", "replace").strip() for line in bare.split(b"\n")]
    first = next((line for line in lines if _WORD.search(line)), lines[0])  # not the frame around a name
    shown = first if len(first) <= _SHOWN else f"{first[:_SHOWN]}…"
    return FileKind(f"a text that begins with {shown!r}") if first.isprintable() else None
