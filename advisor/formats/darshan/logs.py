"""A log as arrays: read in a process of its own (``child``), and every number looked at before it is used."""

from __future__ import annotations

import importlib.util
import marshal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.darshan import container
from advisor.model.errors import InputError
from advisor.support.child_process import name_signal
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from advisor.formats.darshan.child import LogContents, RawTable
    from advisor.model.records import FloatArray, IntArray

#: Takes this very package, even where another one of its name comes first on the path.
_START: Final = (
    "import marshal, sys; arguments = marshal.load(sys.stdin.buffer); sys.path[:] = arguments['root']; import advisor; "
    "sys.path[:] = arguments['path']; from advisor.formats.darshan.child import main; main(arguments)"
)
#: Seconds after which the reading process is given up.
PATIENCE_S: Final = 120.0
PROCESS_LIMIT: Final = 1 << 22
LONGEST_S: Final = 1e9
#: Bytes of a record in the file, by the version of the module's format; the library makes the newest of all of them.
RECORD_BYTES: Final = {"POSIX": {3: 664, 4: 704}, "MPI-IO": {2: 544, 3: 560}, "STDIO": {1: 240, 2: 248}}
#: Stands in a counter that Darshan could not observe.
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class ModuleTable:
    """The records of one module: ``ids`` and ``ranks`` (n,), rank -1 for a file that all ranks share.

    ``counters`` and ``times`` map the module's own names, without its prefix, to a column (n,).
    """

    ids: IntArray
    ranks: IntArray
    counters: dict[str, IntArray]
    times: dict[str, FloatArray]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class TracedFile:
    """What DXT recorded of one file on one rank: operations and the seconds in them."""

    reads: int
    writes: int
    reading_s: float
    writing_s: float


@dataclass(frozen=True, slots=True)
class DarshanLog:
    """One log; ``heat`` maps module and rank to bytes read and written, ``names`` record ids to paths.

    ``bursts`` maps module and rank to how often the rank moves bytes with a pause before, ``timelines`` a module to the
    bytes in each hundredth of the run, ``stripes`` record ids of files on Lustre to the number of their servers.
    """

    version: str
    command: str
    job: int
    processes: int
    start: int
    seconds: float
    names: dict[int, str]
    tables: dict[str, ModuleTable]
    heat: dict[tuple[str, int], tuple[int, int]]
    traced_files: dict[tuple[int, int], TracedFile]
    hosts: dict[int, str]
    modules: tuple[str, ...]
    partial_modules: tuple[str, ...]
    negative_s: float
    bursts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    timelines: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    stripes: Mapping[int, int] = field(default_factory=dict)


def _explain_missing_package() -> str:
    """Return what is said where the package that reads logs is missing: there is none for newer versions of Python."""
    exists = sys.version_info < (3, 13)
    if not exists:
        return "the package darshan, which reads such logs, exists up to Python 3.12 only: install gapwatch there"
    return f"the package darshan reads such logs: {install_line('cluster')}"


def read_log(path: Path) -> DarshanLog:
    """Return the log at ``path``; raises ``InputError`` where it is damaged or the package is not installed."""
    sizes = container.read_unpacked_sizes(path)
    if importlib.util.find_spec("darshan") is None:
        raise InputError(path, _explain_missing_package())
    contents = _run_child(path)
    for name, raw in contents["tables"].items():
        each = RECORD_BYTES[name].get(raw["version"])
        if each is not None and each * (len(raw["ids"]) // 8) not in sizes:
            reason = f"no part holds its {len(raw['ids']) // 8:,} records of version {raw['version']}"
            raise InputError(path, f"{reason}: the log is damaged", name)
    return _check_contents(path, contents)


def _run_child(path: Path) -> LogContents:
    """Return what the reading process says; whatever goes wrong in there becomes an ``InputError``."""
    arguments = {"root": [str(Path(__file__).parents[3])], "path": sys.path, "log": str(path)}
    command = [sys.executable, "-I", "-S", "-c", _START]
    try:
        done = subprocess.run(command, input=marshal.dumps(arguments), capture_output=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise InputError(path, f"libdarshan-util did not end in {PATIENCE_S:.0f} s: the log is damaged") from error
    if done.returncode < 0:
        died = name_signal(-done.returncode)
        raise InputError(path, f"libdarshan-util crashed ({died}): the log is damaged")
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise InputError(path, f"the reading process failed: {lines[-1][:200]}")
    answer: LogContents | str = marshal.loads(done.stdout)
    if isinstance(answer, str):
        raise InputError(path, f"{answer}: the log is damaged")
    return answer


def _check_contents(path: Path, found: LogContents) -> DarshanLog:
    """Return the log with types, after a look at what no run can have."""
    if not 1 <= found["processes"] <= PROCESS_LIMIT:
        raise InputError(path, f"{found['processes']} processes are impossible", "the job")
    if not 0.0 < found["seconds"] < LONGEST_S:
        raise InputError(path, f"a run time of {found['seconds']:g} s is impossible", "the job")
    names = {_to_signed(key): text.decode("utf-8", "surrogateescape") for key, text in found["names"].items()}
    tables = {name: _convert_table(path, name, raw, found["processes"]) for name, raw in found["tables"].items()}
    traced = {(_to_signed(row[0]), row[1]): TracedFile(row[3], row[4], row[5], row[6]) for row in found["traced"]}
    hosts = {rank: host.decode("utf-8", "replace") for _, rank, host, *_ in found["traced"] if rank >= 0}
    heat: dict[tuple[str, int], tuple[int, int]] = {}
    modules = {key: _find_heat_module(names.get(_to_signed(key), "")) for key in found["timelines"]}
    for key, rank, read, written, _ in found["heat"]:
        heat[modules[key], rank] = (read, written)
    return DarshanLog(
        version=found["version"],
        command=found["command"].decode("utf-8", "surrogateescape"),
        job=found["job"],
        processes=found["processes"],
        start=found["start"],
        seconds=found["seconds"],
        names=names,
        tables=tables,
        heat=heat,
        traced_files=traced,
        hosts=hosts,
        modules=tuple(found["modules"]),
        partial_modules=tuple(name for name, left_out in found["modules"].items() if left_out),
        negative_s=-sum(
            float(np.minimum(each, 0.0).sum()) for t in tables.values() for each in _seconds_columns(t).values()
        ),
        bursts={(modules[key], rank): bursts for key, rank, *_, bursts in found["heat"]},
        timelines={modules[key]: tuple(line) for key, line in found["timelines"].items()},
        stripes={_to_signed(key): servers for key, servers in found["stripes"].items() if servers > 0},
    )


def _find_heat_module(name: str) -> str:
    return name.removeprefix("heatmap:").replace("MPIIO", "MPI-IO")


def _to_signed(number: int) -> int:
    """Return the id of a file as the same 64 bits with a sign, as arrays hold it."""
    return number - (1 << 64) if number >> 63 else number


def _convert_table(path: Path, module: str, raw: RawTable, processes: int) -> ModuleTable:
    """Return the records of a module; raises ``InputError`` for a rank, time or count that cannot be."""
    prefix = f"{module.replace('-', '')}_"
    ids = np.frombuffer(raw["ids"], np.uint64).astype(np.int64)  # the same 64 bits
    ranks = np.frombuffer(raw["ranks"], np.int64)
    counters = np.frombuffer(raw["counters"], np.int64).reshape(len(ids), len(raw["counter_names"]))
    times = np.frombuffer(raw["times"], np.float64).reshape(len(ids), len(raw["time_names"]))
    if len(ids) and not (ranks.min() >= -1 and ranks.max() < processes):
        raise InputError(path, f"a file of rank {ranks.max()} in a run of {processes} processes", module)
    table = ModuleTable(
        ids,
        ranks,
        {name.removeprefix(prefix): counters[:, i] for i, name in enumerate(raw["counter_names"])},
        {name.removeprefix(prefix + "F_"): times[:, i] for i, name in enumerate(raw["time_names"])},
    )
    for name, column in _seconds_columns(table).items():
        if not (np.abs(column) < LONGEST_S).all():
            raise InputError(path, f"{prefix}F_{name} holds impossible seconds", module)
    for name, values in table.counters.items():
        if name.endswith(("READS", "WRITES", "OPENS", "BYTES_READ", "BYTES_WRITTEN")) and (values < UNKNOWN).any():
            raise InputError(path, f"{prefix}{name} is negative", module)
    return table


def _seconds_columns(table: ModuleTable) -> dict[str, FloatArray]:
    """Return the columns that add up calls; Darshan before 3.2 wrote negative ones where times overlapped."""
    return {name: table.times[name] for name in ("READ_TIME", "WRITE_TIME", "META_TIME")}
