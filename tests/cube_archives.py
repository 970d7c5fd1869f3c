"""Writes CUBE archives, as the format's documentation and the sources of its C library describe them.

Shares nothing with the reader. The order in which a metric counts call paths follows the C library's recursion.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import tarfile
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from pathlib import Path

Rows = dict[int, list[float]]


@dataclass
class Call:
    """A call path: its number, the number of its region, and the call paths below."""

    number: int
    region: int
    below: list[Call] = field(default_factory=list)


@dataclass
class Metric:
    """A metric with its rows by call path; ``rows`` of None is a metric without files."""

    name: str
    rows: Rows | None = None
    stored: str = "EXCLUSIVE"
    values: str = "DOUBLE"
    below: list[Metric] = field(default_factory=list)


@dataclass
class Cube:
    """A small profile: two ranks of one thread, ``main`` with two calls in it, unless told otherwise."""

    metrics: list[Metric]
    regions: list[tuple[str, str, str, str]] = field(
        default_factory=lambda: [
            ("app", "measurement", "artificial", ""),
            ("main", "compiler", "function", "app.c"),
            ("solve", "compiler", "function", "app.c"),
            ("MPI_Recv", "mpi", "point2point", "MPI"),
        ]
    )
    calls: list[Call] = field(
        default_factory=lambda: [Call(0, 0, [Call(1, 1, [Call(2, 2, [Call(3, 3)]), Call(4, 3)])])]
    )
    threads: tuple[int, ...] = (1, 1)
    packed: bool = False
    big_endian: bool = False
    dense: bool = False
    gzipped: bool = False
    old_system: bool = False

    def write(self, path: Path) -> Path:
        """Write the archive and return its path."""
        members: list[tuple[str, bytes]] = []
        for number, metric in enumerate(_flat(self.metrics)):
            if metric.rows is not None:
                members += self._files(number, metric)
        document = self.document().encode("utf-8", "surrogateescape")
        write_tar(path, [*members, ("anchor.xml", gzip.compress(document, mtime=0) if self.gzipped else document)])
        return path

    def document(self) -> str:
        """Return the anchor document."""
        numbers = {id(metric): number for number, metric in enumerate(_flat(self.metrics))}
        regions = "".join(
            f'<region id="{n}" mod={quoteattr(mod)} begin="{10 + n if "." in mod else -1}" end="-1">\n'
            f"<name>{escape(name)}</name>\n<mangled_name>{escape(name)}</mangled_name>\n"
            f"<paradigm>{paradigm}</paradigm>\n<role>{role}</role>\n<url></url>\n<descr></descr>\n</region>\n"
            for n, (name, paradigm, role, mod) in enumerate(self.regions)
        )
        system = self._old_system() if self.old_system else self._system()
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<cube version="4.4">\n<attr key="Creator" value="test"/>\n'
            f"<metrics>\n{''.join(_metric(metric, numbers) for metric in self.metrics)}</metrics>\n"
            f"<program>\n{regions}{''.join(map(_call, self.calls))}</program>\n<system>\n{system}</system>\n</cube>\n"
        )

    def _files(self, number: int, metric: Metric) -> list[tuple[str, bytes]]:
        assert metric.rows is not None
        order = "><"[not self.big_endian]
        counted = counting(self.calls, metric.stored)
        rows = {counted.index(call): values for call, values in metric.rows.items()}
        if self.dense:
            rows = {n: rows.get(n, [0] * sum(self.threads)) for n in range(len(counted))}
        chosen = sorted(rows)
        head = b"CUBEX.INDEX" + struct.pack(order + "IHB", 1, 0, 3 if self.dense else 1)
        index = head if self.dense else head + struct.pack(f"{order}I{len(chosen)}I", len(chosen), *chosen)
        plain = [b"".join(_value(order, metric.values, value) for value in rows[n]) for n in chosen]
        return [(f"{number}.index", index), (f"{number}.data", self._data(order, plain))]

    def _data(self, order: str, rows: list[bytes]) -> bytes:
        if not self.packed:
            return b"CUBEX.DATA" + b"".join(rows)
        squeezed = [zlib.compress(row) for row in rows]
        table = b""
        start = place = 0
        for row, small in zip(rows, squeezed, strict=True):
            table += struct.pack(order + "QQQ", place, start, len(small))
            start, place = start + len(small), place + len(row)
        return b"ZCUBEX.DATA" + struct.pack(order + "Q", len(rows)) + table + b"".join(squeezed)

    def _system(self) -> str:
        text, location = "", 0
        for rank, threads in enumerate(self.threads):
            inner = ""
            for thread in range(threads):
                name = "Master thread" if thread == 0 else f"OMP thread {thread}"
                inner += (
                    f'<location Id="{location}">\n<name>{name}</name>\n<rank>{thread}</rank>\n<type>thread</type>\n'
                    "</location>\n"
                )
                location += 1
            text += (
                f'<locationgroup Id="{rank}">\n<name>MPI Rank {rank}</name>\n<rank>{rank}</rank>\n'
                f"<type>process</type>\n{inner}</locationgroup>\n"
            )
        return (
            '<systemtreenode Id="0">\n<name>machine Linux</name>\n<class>machine</class>\n<systemtreenode Id="1">\n'
            f"<name>node n1</name>\n<class>node</class>\n{text}</systemtreenode>\n</systemtreenode>\n"
        )

    def _old_system(self) -> str:
        text, location = "", 0
        for rank, threads in enumerate(self.threads):
            text += f'<process Id="{rank}">\n<name>Process {rank}</name>\n<rank>{rank}</rank>\n'
            for thread in range(threads):
                text += f'<thread Id="{location}">\n<name>t</name>\n<rank>{thread}</rank>\n</thread>\n'
                location += 1
            text += "</process>\n"
        return (
            '<machine Id="0">\n<name>cluster</name>\n<node Id="0">\n<name>n1</name>\n' + text + "</node>\n</machine>\n"
        )


def write_tar(path: Path, members: list[tuple[str, bytes]]) -> None:
    """Write an archive of regular files."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    content = path.read_bytes()
    end = len(content.rstrip(b"\0")) + 511 & ~511
    path.write_bytes(content[:end] + bytes(1024))


def members_of(path: Path) -> dict[str, bytes]:
    """Return the content of every member of an archive."""
    with tarfile.open(path) as archive:
        found = {entry.name: archive.extractfile(entry) for entry in archive}
        return {name: stream.read() for name, stream in found.items() if stream is not None}


def trimmed(source: Path, path: Path) -> Path:
    """Write what a profile recorded without the description of its metrics and of regions that never ran."""
    members = members_of(source)
    document = members["anchor.xml"].decode()
    used = set(re.findall(r'calleeId="(\d+)"', document))
    regions = re.compile(r'<region id="(\d+)".*?</region>\n', re.DOTALL)
    document = regions.sub(lambda found: found[0] if found[1] in used else "", document)
    document = re.sub(r"<(url|descr|disp_name)>.*?</\1>\n|<doc>.*?</doc>\n", "", document, flags=re.DOTALL)
    kept = [(name, content) for name, content in members.items() if name not in ("remapping.spec", "anchor.xml")]
    write_tar(path, [*kept, ("anchor.xml", document.encode())])
    return path


def counting(calls: list[Call], stored: str) -> list[int]:
    """Return the numbers of all call paths in the order in which a metric counts them."""
    found: list[int] = []

    def deep(call: Call) -> None:
        found.append(call.number)
        for inner in call.below:
            deep(inner)

    def wide(call: Call, is_root: bool) -> None:
        if is_root:
            found.append(call.number)
        found.extend(inner.number for inner in call.below)
        for inner in call.below:
            wide(inner, False)

    for root in calls:
        if stored == "INCLUSIVE":
            wide(root, True)
        else:
            deep(root)
    return found if stored in ("INCLUSIVE", "EXCLUSIVE") else sorted(found)


def _flat(metrics: list[Metric]) -> list[Metric]:
    return [one for metric in metrics for one in (metric, *_flat(metric.below))]


def _metric(metric: Metric, numbers: dict[int, int]) -> str:
    return (
        f'<metric id="{numbers[id(metric)]}" type="{metric.stored}">\n<uniq_name>{metric.name}</uniq_name>\n'
        f"<dtype>{metric.values}</dtype>\n<uom>sec</uom>\n"
        f"{''.join(_metric(inner, numbers) for inner in metric.below)}</metric>\n"
    )


def _call(call: Call) -> str:
    return f'<cnode id="{call.number}" calleeId="{call.region}">\n{"".join(map(_call, call.below))}</cnode>\n'


def _value(order: str, values: str, value: float) -> bytes:
    if values == "TAU_ATOMIC":
        return struct.pack(order + "Idddd", 3, value / 6, value, value, value * value)
    code = {"UINT64": "Q", "INT64": "q", "UINT32": "I", "INTEGER": "q"}.get(values, "d")
    return struct.pack(order + code, value if code == "d" else int(value))
