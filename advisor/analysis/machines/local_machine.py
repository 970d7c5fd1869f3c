"""The local machine as the operating system describes it; nothing is measured or guessed."""

from __future__ import annotations

import mmap
import re
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from advisor.analysis.machines.records import (
    Cache,
    CacheName,
    Count,
    Machine,
    Memory,
    Number,
    NumberSource,
    iterate_numbers,
)

_ROOT = Path("/")
_CPUS = Path("sys/devices/system/cpu")
_SOURCES = {
    "system topology": NumberSource("found here: /sys/devices/system/cpu/cpu*/topology, else psutil.cpu_count"),
    "system caches": NumberSource("found here: /sys/devices/system/cpu/cpu0/cache"),
    "system clock": NumberSource("found here: /sys/devices/system/cpu/cpu*/cpufreq, else the processor's name"),
    "system flags": NumberSource("found here: /proc/cpuinfo, /proc/sys/abi/sve_default_vector_length"),
    "system memory": NumberSource("found here: psutil.virtual_memory, the system's page size, NUMA nodes in /sys"),
}
_VECTOR_FLAGS = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("sse2", 128), ("asimd", 128))


def detect_machine(root: Path = _ROOT) -> Machine:
    """The machine as found in the file system below ``root``; what the system does not tell is absent."""
    info = _read_cpuinfo(root)
    sockets, cores_per_socket, threads_per_core = _detect_topology(root)
    files = (root / _CPUS).glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq")
    highest = max((_parse_whole(_read_text(file)) or 0 for file in files), default=0)
    frequency, boost = _nominal_clock(root, info), _make_number(highest * 1e3, "system clock")
    # the widest vector register in bits
    sve_bytes = _parse_whole(_read_text(root / "proc/sys/abi/sve_default_vector_length")) or 0
    flags = (info.get("flags") or info.get("Features") or "").split()
    widest = next((bits for flag, bits in _VECTOR_FLAGS if flag in flags), 0)
    width = _make_number(max(widest, sve_bytes * 8 if "sve" in flags else 0), "system flags")
    caches = _detect_caches(root, threads_per_core or 1)
    memory = _detect_memory(root)
    found = (sockets, cores_per_socket, threads_per_core, frequency, boost, width, caches, memory)
    named = {number.source for part in found for _, number in iterate_numbers(part)}
    return Machine(
        name="host",
        title=info.get("model name") or "the machine at hand",
        description="Detected on this machine.",
        sources={name: source for name, source in _SOURCES.items() if name in named},
        sockets=sockets,
        cores_per_socket=cores_per_socket,
        threads_per_core=threads_per_core,
        frequency=frequency,
        boost=boost,
        vector_width=width,
        caches=caches,
        memory=memory,
    )


def add_core_units(found: Machine, model: Machine | None) -> Machine:
    """``found`` with the functional units of ``model``, the model of its processor; these no system tells."""
    if model is None:
        return found
    core = (model.units, model.flops_per_cycle)
    named = {number.source for part in core for _, number in iterate_numbers(part)}
    return replace(
        found,
        description=f"{found.description} Functional units as in the model {model.name}.",
        sources=found.sources | {name: source for name, source in model.sources.items() if name in named},
        flops_per_cycle=model.flops_per_cycle,
        units=model.units,
    )


def identify_processor(root: Path = _ROOT) -> str | None:
    """The identity of the processor: ``GenuineIntel 6 143`` (vendor, family, model) or ``0x41 0xd4f`` on Arm."""
    info = _read_cpuinfo(root)
    for keys in (("vendor_id", "cpu family", "model"), ("CPU implementer", "CPU part")):
        if all(key in info for key in keys):
            return " ".join(info[key] for key in keys)
    return None


def _read_text(path: Path) -> str:
    """The file's text without surrounding space; nothing where there is no such file or it may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _read_cpuinfo(root: Path) -> dict[str, str]:
    """What /proc/cpuinfo says of the first processor."""
    first = _read_text(root / "proc/cpuinfo").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _make_count(value: int | None, source: str) -> Count | None:
    return Count(value, source) if value and value > 0 else None


def _make_number(value: float | None, source: str) -> Number | None:
    return Number(value, source) if value and value > 0 else None


def _parse_whole(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


def _detect_topology(root: Path) -> tuple[Count | None, Count | None, Count | None]:
    """Sockets, cores per socket, hardware threads per core."""
    import psutil

    folders = list((root / _CPUS).glob("cpu[0-9]*/topology"))
    sockets = len({_read_text(folder / "physical_package_id") for folder in folders})
    cores = len({_read_text(folder / "thread_siblings_list") for folder in folders})
    threads = len(folders)
    if not folders and root == _ROOT:
        sockets, cores, threads = 0, psutil.cpu_count(logical=False) or 0, psutil.cpu_count() or 0
    source = "system topology"
    return (
        _make_count(sockets, source),
        _make_count(cores // sockets if sockets else None, source),
        _make_count(threads // cores if cores else None, source),
    )


def _nominal_clock(root: Path, info: dict[str, str]) -> Number | None:
    """The base frequency in hertz: from the driver, else from a name such as ``… CPU @ 2.10GHz``."""
    if kilohertz := _parse_whole(_read_text(root / _CPUS / "cpu0/cpufreq/base_frequency")):
        return _make_number(kilohertz * 1e3, "system clock")
    named = re.search(r"@ ([0-9]{1,2}\.[0-9]{1,3}) ?GHz", info.get("model name", ""))
    return _make_number(float(named[1]) * 1e9, "system clock") if named else None


def _detect_caches(root: Path, threads_per_core: int) -> dict[CacheName, Cache]:
    """Data and unified caches by level."""
    found: dict[CacheName, Cache] = {}
    for folder in sorted((root / _CPUS / "cpu0/cache").glob("index[0-9]*")):
        name = f"L{_read_text(folder / 'level')}"
        if _read_text(folder / "type") != "Instruction" and name in get_args(CacheName):
            source = "system caches"
            sharing = _count_listed_cpus(_read_text(folder / "shared_cpu_list"))
            found[cast("CacheName", name)] = Cache(
                size=_make_number(_parse_size(_read_text(folder / "size")), source),
                line=_make_number(_parse_whole(_read_text(folder / "coherency_line_size")), source),
                ways=_make_count(_parse_whole(_read_text(folder / "ways_of_associativity")), source),
                shared_by=_make_count(max(sharing // threads_per_core, 1) if sharing else None, source),
            )
    return found


def _parse_size(text: str) -> int | None:
    """Bytes of ``48K`` or ``260M``."""
    digits = _parse_whole(text.rstrip("KMG"))
    return digits * {"K": 1024, "M": 1024**2, "G": 1024**3}.get(text[-1:], 1) if digits else None


def _count_listed_cpus(text: str) -> int:
    """How many processors a list such as ``0-3,8`` names."""
    ranges = [part.split("-") for part in text.split(",") if re.fullmatch("[0-9]{1,6}(-[0-9]{1,6})?", part)]
    return sum(int(ends[-1]) - int(ends[0]) + 1 for ends in ranges)


def _detect_memory(root: Path) -> Memory:
    import psutil

    source = "system memory"
    nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
    return Memory(
        size=_make_number(psutil.virtual_memory().total, source),
        page=_make_number(mmap.PAGESIZE, source),
        numa_domains=_make_count(nodes, source),
    )
