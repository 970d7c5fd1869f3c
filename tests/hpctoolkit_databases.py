"""Writes HPCToolkit databases, as its FORMATS.md (version 4.0) and the document type of experiment.xml describe them.

Shares nothing with the reader.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM", "CORE")
FUNCTION, LOOP, LINE = 0, 1, 2


@dataclass
class Context:
    """A calling context: what it is, its own seconds on each thread, and what lies below."""

    name: str
    own: list[float]
    below: list[Context] = field(default_factory=list)
    kind: int = FUNCTION
    module: str = "app"
    file: str = "app.c"
    line: int = 7

    def total(self, thread: int) -> float:
        """Return the seconds of the context and of all below it."""
        return self.own[thread] + sum(inner.total(thread) for inner in self.below)


@dataclass
class Run:
    """A run with its threads as (node, rank, thread), and a metric; ``root`` is what the main entry point calls."""

    root: Context
    threads: list[tuple[int, int, int]]
    metrics: list[str] = field(default_factory=lambda: ["REALTIME (sec)"])
    streams: int = 0
    title: str = "app"


def every(context: Context) -> list[Context]:
    """Return a context and all below it, callers first."""
    return [context, *(one for inner in context.below for one in every(inner))]


class _File:
    """A file that grows: structures are appended, pointers into it are known when they are."""

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)

    def add(self, content: bytes) -> int:
        self.data += bytes(-len(self.data) % 8)
        place = len(self.data)
        self.data += content
        return place

    def text(self, text: str) -> int:
        return self.add(text.encode("utf-8", "surrogateescape") + b"\0")

    def put(self, place: int, content: bytes) -> None:
        self.data[place : place + len(content)] = content


def write(run: Run, directory: Path) -> Path:
    """Write ``meta.db`` and ``profile.db`` into ``directory`` and return it."""
    directory.mkdir(exist_ok=True)
    (directory / "meta.db").write_bytes(_meta(run))
    (directory / "profile.db").write_bytes(_profiles(run))
    return directory


def _meta(run: Run) -> bytes:
    file = _File(0x90)
    file.put(0, b"HPCTOOLKITmeta\x04\x00")
    sections = [
        _general(file, run), _kinds(file), _metrics(file, run), *_tables(file, run),
    ]  # fmt: skip
    general, kinds, metrics, strings, modules, files, functions, context = sections
    for n, (place, size) in enumerate((general, kinds, metrics, context, strings, modules, files, functions)):
        file.put(0x10 + 16 * n, struct.pack("<QQ", size, place))
    return bytes(file.data) + b"_meta.db"


def _general(file: _File, run: Run) -> tuple[int, int]:
    place = file.add(bytes(0x10))
    file.put(place, struct.pack("<QQ", file.text(run.title), file.text("made by a test")))
    return place, len(file.data) - place


def _kinds(file: _File) -> tuple[int, int]:
    place = file.add(bytes(0x10))
    names = [file.text(kind) for kind in KINDS]
    file.put(place, struct.pack("<QB", file.add(struct.pack(f"<{len(names)}Q", *names)), len(names)))
    return place, len(file.data) - place


def _metrics(file: _File, run: Run) -> tuple[int, int]:
    """Write for each metric the scopes function (number 2n) and execution (2n + 1), and sums of them (100 more)."""
    place = file.add(bytes(0x20))
    scopes = [
        file.add(struct.pack("<QBB6x", file.text(name), kind, 255))
        for name, kind in (("function", 3), ("execution", 2))
    ]
    described = b""
    formula = file.text("$$")
    for n, name in enumerate(run.metrics):
        numbers = (2 * n, 2 * n + 1)
        instances = b"".join(struct.pack("<QH6x", scope, number) for scope, number in zip(scopes, numbers, strict=True))
        sums = b"".join(
            struct.pack("<QQBxH4x", scope, formula, 0, 100 + number)
            for scope, number in zip(scopes, numbers, strict=True)
        )
        described += struct.pack("<QQQHH4x", file.text(name), file.add(instances), file.add(sums), 2, 2)
    file.put(place, struct.pack("<QIBBBxQHB", file.add(described), len(run.metrics), 32, 16, 24, scopes[0], 2, 16))
    return place, len(file.data) - place


def _tables(file: _File, run: Run) -> list[tuple[int, int]]:
    contexts = every(run.root)
    functions = [context for context in contexts if context.kind == FUNCTION]
    strings = file.add(b"")
    texts = {
        text: file.text(text) for text in dict.fromkeys(t for c in contexts for t in (c.name, c.module, c.file) if t)
    }
    entry = file.text("main thread")
    string_size = len(file.data) - strings
    modules, module_places = _paths(file, [c.module for c in contexts], texts)
    files, file_places = _paths(file, [c.file for c in contexts], texts)
    place = file.add(bytes(0x10))
    specs = {}
    for context in functions:
        specs[id(context)] = file.add(
            struct.pack(
                "<QQQQII",
                texts.get(context.name, 0),
                module_places.get(context.module, 0),
                0x40,
                file_places.get(context.file, 0),
                context.line,
                0,
            )
        )
    first = min(specs.values())
    file.put(place, struct.pack("<QIH", first, len(specs), 0x28))
    function_section = (place, len(file.data) - place)
    tree = _tree(file, run.root, specs, file_places, entry)
    return [(strings, string_size), modules, files, function_section, tree]


def _paths(file: _File, names: list[str], texts: dict[str, int]) -> tuple[tuple[int, int], dict[str, int]]:
    place = file.add(bytes(0x10))
    known = [name for name in dict.fromkeys(names) if name]
    first = file.add(b"".join(struct.pack("<IxxxxQ", 0, texts[name]) for name in known))
    file.put(place, struct.pack("<QIH", first, len(known), 16))
    return (place, len(file.data) - place), {name: first + 16 * n for n, name in enumerate(known)}


def _tree(file: _File, root: Context, specs: dict[int, int], files: dict[str, int], entry: int) -> tuple[int, int]:
    """Write the contexts below one entry point (context 1); the root is context 2, the others follow."""
    numbers = {id(context): n for n, context in enumerate(every(root), start=2)}
    place = file.add(bytes(0x10))

    def array(contexts: list[Context]) -> tuple[int, int]:
        content = b""
        for context in contexts:
            pointer, size = array(context.below) if context.below else (0, 0)
            flags, flex = (1, struct.pack("<Q", specs[id(context)])) if context.kind == FUNCTION else (0, b"")
            if context.kind != FUNCTION:
                flags, flex = 2, struct.pack("<QIxxxx", files[context.file], context.line)
            relation = 1 if context.kind == FUNCTION else 0
            content += struct.pack(
                "<QQIBBBBH6x", size, pointer, numbers[id(context)], flags, relation, context.kind, len(flex) // 8, 0
            )
            content += flex
        return file.add(content), len(content)

    pointer, size = array([root])
    entries = file.add(struct.pack("<QQIHxxQ", size, pointer, 1, 1, entry))
    file.put(place, struct.pack("<QHB", entries, 1, 0x20))
    return place, len(file.data) - place


def _profiles(run: Run) -> bytes:
    file = _File(0x30)
    file.put(0, b"HPCTOOLKITprof\x04\x00")
    count = len(run.threads)
    blocks = [_block(file, run, list(range(count)), 100)]
    blocks += [_block(file, run, [thread], 0) for thread in range(count)]
    blocks += [_block(file, run, [], 0) for _ in range(run.streams)]
    start = file.add(b"")
    identities = [0]
    for node, rank, thread in run.threads:
        ids = ((1, 1, node, 0xA8C00270 + node), (2, 1, rank, rank), (3, 1, thread, thread))
        identities.append(_identity(file, ids))
    identities += [_identity(file, ((2, 1, 0, 0), (4, 0, 0, n))) for n in range(run.streams)]
    file.put(0x20, struct.pack("<QQ", len(file.data) - start, start))
    place = file.add(bytes(0x10))
    infos = b"".join(block + struct.pack("<QII", who, 0, 0) for block, who in zip(blocks, identities, strict=True))
    file.put(place, struct.pack("<QIB", file.add(infos), len(blocks), 0x30))
    file.put(0x10, struct.pack("<QQ", len(file.data) - place, place))
    return bytes(file.data) + b"_prof.db"


def _identity(file: _File, ids: tuple[tuple[int, int, int, int], ...]) -> int:
    content = struct.pack("<H6x", len(ids))
    for kind, flags, logical, physical in ids:
        content += struct.pack("<BxHIQ", kind, flags, logical, physical)
    return file.add(content)


def _block(file: _File, run: Run, threads: list[int], more: int) -> bytes:
    """Write the values of threads added up; numbers of metrics are higher by ``more``."""
    contexts = every(run.root)
    values, indices = b"", b""
    written = used = 0
    rows = [(1, run.root, True), *((n, context, False) for n, context in enumerate(contexts, start=2))]
    for number, context, is_entry in rows:
        mine = []
        for n in range(len(run.metrics)):
            own = 0.0 if is_entry or context.kind != FUNCTION else sum(_within(context, t) for t in threads)
            mine += [(2 * n + more, own), (2 * n + 1 + more, sum(context.total(t) for t in threads))]
        mine = [(metric, value) for metric, value in mine if value]
        if mine:
            indices += struct.pack("<IQ", number, written)
            used += 1
        for metric, value in mine:
            values += struct.pack("<Hd", metric, value)
            written += 1
    return struct.pack("<QQIxxxxQ", written, file.add(values), used, file.add(indices))


def _within(context: Context, thread: int) -> float:
    """Return the seconds of a function in its own loops and lines."""
    inner = sum(_within(one, thread) for one in context.below if one.kind != FUNCTION)
    return context.own[thread] + inner


def write_experiment(run: Run, directory: Path, databases: bool = True) -> Path:
    """Write ``experiment.xml`` and a metric-db file for each thread; without ``databases`` the values of the first."""
    directory.mkdir(exist_ok=True)
    contexts = every(run.root)
    numbers = {id(context): n for n, context in enumerate(contexts, start=3)}
    rows = [run.root, run.root, *contexts]  # nodes 1 and 2 are the whole and the program's root
    (directory / "experiment.xml").write_text(_document(run, numbers, databases), encoding="utf-8")
    for n, (node, rank, thread) in enumerate(run.threads if databases else []):
        values = [value for context in rows for value in (context.total(n) * 1e6, context.own[n] * 1e6)]
        head = b"HPCPROF-metricdb__00.10b" + struct.pack(">II", len(rows), 2)
        name = f"1.app-{rank:06d}-{thread:03d}-{0xA8C00270 + node:08x}-{4711 + n}-0.metric-db"
        (directory / name).write_bytes(head + struct.pack(f">{len(values)}d", *values))
    return directory


def _document(run: Run, numbers: dict[int, int], databases: bool) -> str:
    contexts = every(run.root)
    names = {name: n for n, name in enumerate(dict.fromkeys(c.name for c in contexts), start=1000)}
    files = {name: n for n, name in enumerate(dict.fromkeys(c.file for c in contexts), start=2000)}
    metric = run.metrics[0].replace("(sec)", "(usec)")
    statistic = ":Sum " if databases else " "
    tables = (
        f'<MetricTable><Metric i="5" n="{metric}{statistic}(I)" v="derived-incr" t="inclusive"/></MetricTable>\n'
        "<MetricDBTable>"
        f'<MetricDB i="0" n="{metric} (I)" t="inclusive" db-glob="*.metric-db" db-id="0" db-num-metrics="2"/>'
        f'<MetricDB i="1" n="{metric} (E)" t="exclusive" db-glob="*.metric-db" db-id="1" db-num-metrics="2"/>'
        "</MetricDBTable>\n"
        '<LoadModuleTable><LoadModule i="1" n="app"/></LoadModuleTable>\n<FileTable>'
        + "".join(f'<File i="{n}" n={quoteattr(name)}/>' for name, n in files.items())
        + "</FileTable>\n<ProcedureTable>"
        + '<Procedure i="999" n="&lt;program root&gt;"/>'
        + "".join(f'<Procedure i="{n}" n={quoteattr(name)}/>' for name, n in names.items())
        + "</ProcedureTable>\n"
    )

    def value(context: Context) -> str:
        total = sum(context.total(n) for n in range(len(run.threads) if databases else 1)) * 1e6
        return f'<M n="5" v="{total:.6g}"/>' if total else ""

    def element(context: Context) -> str:
        tag = {FUNCTION: "PF", LOOP: "L", LINE: "S"}[context.kind]
        more = f' n="{names[context.name]}" f="{files[context.file]}" lm="1"' if tag == "PF" else ""
        inner = value(context) + "".join(map(element, context.below))
        return f'<{tag} i="{numbers[id(context)]}" s="1" l="{context.line}"{more}>{inner}</{tag}>\n'

    return (
        '<?xml version="1.0"?>\n<!DOCTYPE HPCToolkitExperiment [\n<!ELEMENT M EMPTY>\n'
        "<!ATTLIST M n CDATA #REQUIRED v CDATA #REQUIRED>\n]>\n"
        f'<HPCToolkitExperiment version="2.0">\n<Header n="{run.title}"><Info/></Header>\n'
        f'<SecCallPathProfile i="0" n="{run.title}">\n<SecHeader>\n{tables}</SecHeader>\n<SecCallPathProfileData>\n'
        f'<PF i="2" s="1" l="0" lm="1" n="999">{value(run.root)}{element(run.root)}</PF>\n'
        "</SecCallPathProfileData>\n</SecCallPathProfile>\n</HPCToolkitExperiment>\n"
    )
