"""Builds the copy with counters, runs it, and collects what they counted."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError, UsageError
from advisor.support.child_process import run_child
from advisor.support.launchers import is_launcher
from advisor_processor.source import c_source
from advisor_processor.source.declared_types import collect_types
from advisor_processor.source.fortran import analyse_fortran_source as analyse_fortran
from advisor_processor.source.fortran_names import collect_module_names
from advisor_processor.source.macro_calls import parse_source

if TYPE_CHECKING:
    from advisor_processor.source.records import Source

LANGUAGES: Final = {
    ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".c++": "cpp", ".hpp": "cpp", ".C": "cpp",
    ".f90": "fortran", ".f95": "fortran", ".f03": "fortran", ".f08": "fortran", ".F90": "fortran",
}  # fmt: skip

_LARGEST_B: Final = 1 << 30
_FILES: Final = 50_000
_LIMIT_S: Final = 3600.0
_LEFT_OUT: Final = shutil.ignore_patterns(".git", ".hg", ".svn", "__pycache__", ".venv", "node_modules")
_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
#: The variable that names a compiler, the usual one, and that of MPI.
_COMPILERS: Final = {
    "c": ("CC", "cc", "mpicc"), "cpp": ("CXX", "c++", "mpicxx"), "fortran": ("FC", "gfortran", "mpifort"),
}  # fmt: skip
_USES_MPI: Final = re.compile(
    rb"#[ \t]*include[ \t]*[<\"]mpi\.h|\buse[ \t,:a-z]*\bmpi(_f08)?\b|[\"']mpif\.h", re.IGNORECASE
)
_CALLS_OPENMP: Final = re.compile(rb"\bomp_[a-z]+_[a-z_]+[ \t]*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """The sources, how often each block of each ran on each rank, and the values of the symbols of their loops.

    ``values[file][place]`` are the least and the largest value, over all ranks and all times the loop was reached;
    ``arguments`` what stood behind the program in the command.
    """

    sources: tuple[Source, ...]
    ranks: int
    blocks: tuple[tuple[tuple[int, ...], ...], ...]
    values: tuple[tuple[tuple[int, int] | None, ...], ...]
    arguments: tuple[str, ...] = ()


def read_sources(files: Sequence[Path]) -> tuple[tuple[bytes, ...], tuple[Source, ...]]:
    """Return the texts of source files and what they hold; raises ``InputError`` and ``UsageError``.

    A header counts in the language of the files: one of C++ where any of them is.
    """
    languages = [detect_language(file) for file in files]
    is_cpp = "cpp" in languages
    codes, trees = [], []
    for at, file in enumerate(files):
        if is_cpp and file.suffix == ".h":
            languages[at] = "cpp"
        try:
            codes.append(file.read_bytes())
        except OSError as error:
            raise InputError(file, error.strerror or "may not be read") from error
        trees.append(parse_source(codes[-1], languages[at]))
    types = {
        file: collect_types(tree)
        for file, tree, language in zip(files, trees, languages, strict=True)
        if language != "fortran"
    }
    fortran = [tree for tree, language in zip(trees, languages, strict=True) if language == "fortran"]
    modules = collect_module_names(fortran)
    sources = []
    for file, code, tree, language in zip(files, codes, trees, languages, strict=True):
        if language == "fortran":
            sources.append(analyse_fortran(code, file.name, tree, language, modules))
        else:
            others = [each for other, each in types.items() if other != file]
            sources.append(c_source.analyse_c_source(code, file.name, tree, language, others))
    return tuple(codes), tuple(sources)


def find_headers(files: Sequence[Path], root: Path) -> list[Path]:
    """Return the headers inside ``root`` that files of C and C++ include, directly or by others, after the files."""
    found = {file.resolve(): None for file in files}
    waiting = list(found)
    while waiting:
        file = waiting.pop()
        if file.suffix not in LANGUAGES or LANGUAGES[file.suffix] == "fortran":
            continue
        for name in _INCLUDE.findall(file.read_text(encoding="utf-8", errors="replace")):
            header = next((each for each in (file.parent / name, root / name) if each.is_file()), None)
            if header is None or header.suffix not in LANGUAGES or header.resolve() in found:
                continue
            if header.resolve().is_relative_to(root):
                found[header.resolve()] = None
                waiting.append(header.resolve())
    return list(found)


def count_executions(
    files: Sequence[Path], command: Sequence[str], build: str | None = None, root: Path | None = None
) -> SourceCounts:
    """Return what the program counted that ``command`` runs, in a copy of ``root`` (default: the sources' directory).

    ``build`` is the command that builds it there; default ``make -B`` where there is a Makefile, else one compiler for
    all sources. Headers that the files include are counted with them. Raises ``InputError`` and ``UsageError`` with
    what the compiler or the program said.
    """
    return count_runs(files, [command], build, root)[0]


def count_runs(
    files: Sequence[Path],
    commands: Sequence[Sequence[str]],
    build: str | None = None,
    root: Path | None = None,
    show: Callable[[int], None] | None = None,
) -> list[SourceCounts]:
    """Return the counts of several commands, with one build for all; ``show`` receives the number of finished runs."""
    files = [file.resolve() for file in files]
    root = (root or Path(os.path.commonpath([file.parent for file in files]))).resolve()
    for file in files:
        if not file.is_file():
            raise InputError(file, "there is no such file")
    files = find_headers(files, root)
    codes, sources = read_sources(files)
    with tempfile.TemporaryDirectory(prefix="gapwatch-count-") as place:
        copy = Path(place) / "copy"
        _copy_tree(root, copy)
        for number, (file, code, source) in enumerate(zip(files, codes, sources, strict=True)):
            if not file.is_relative_to(root):
                raise UsageError(f"{file} does not lie in {root}")
            (copy / file.relative_to(root)).write_bytes(instrument_source(code, source, number))
        names = [file.relative_to(root) for file in files]
        words = _resolve_build_command(build, copy, names, sources, commands[0])
        _run_command(words, copy, {}, "can't be built with counters")
        found = []
        for number, command in enumerate(commands, start=1):
            counts = Path(place) / f"counts-{number}"
            counts.mkdir()
            _run_command(list(command), copy, {"GAPWATCH_COUNTS": str(counts)}, "failed")
            program = next((at for at, word in enumerate(command) if (copy / word).is_file()), 0)
            found.append(replace(_collect_counts(sources, counts), arguments=tuple(command[program + 1 :])))
            if show is not None:
                show(number)
        return found


def _copy_tree(root: Path, copy: Path) -> None:
    total = 0
    for seen, (folder, _, names) in enumerate(os.walk(root)):
        total += sum((Path(folder) / name).lstat().st_size for name in names)
        if total > _LARGEST_B or seen > _FILES:
            raise UsageError(f"{root} is too large to be copied; name the directory of the sources with --root")
    shutil.copytree(root, copy, symlinks=True, ignore=_LEFT_OUT)


def _resolve_build_command(
    build: str | None, copy: Path, names: Sequence[Path], sources: Sequence[Source], command: Sequence[str]
) -> list[str]:
    if build is not None:
        return shlex.split(build)
    if any((copy / name).is_file() for name in ("Makefile", "makefile", "GNUmakefile")):
        return ["make", "-B"]
    language = next((one for one in ("fortran", "cpp", "c") if any(source.language == one for source in sources)), "c")
    variable, usual, parallel = _COMPILERS[language]
    texts = [(copy / name).read_bytes() for name in names]
    uses_mpi, uses_threads = (any(each.search(text) for text in texts) for each in (_USES_MPI, _CALLS_OPENMP))
    compiler = shlex.split(os.environ.get(variable, "")) or [parallel if uses_mpi else usual]
    units = [str(name) for name in names if not name.suffix.startswith(".h")]
    return [*compiler, "-O1", *(["-fopenmp"] if uses_threads else []), *units, "-o", _find_program(command), "-lm"]


def _find_program(command: Sequence[str]) -> str:
    """Return what a command calls the program that is yet to be built: behind a launcher the first path to no file."""
    if not is_launcher(command[0]):
        return command[0]
    paths = (word for word in command[1:] if "/" in word and (not Path(word).is_file() or os.access(word, os.X_OK)))
    return next(paths, command[0])


def _run_command(words: list[str], folder: Path, extra: dict[str, str], failing: str) -> None:
    done = run_child(words, _LIMIT_S, folder=folder, extra=extra, merged=True)
    if done.status != 0:
        how = "did not end" if done.status is None else f"exit code {done.status}"
        error = UsageError(f"{shlex.join(words)} {failing} ({how})")
        for line in (done.failure or done.text).strip()[-2000:].splitlines():
            error.add_note(line)
        raise error


def _collect_counts(sources: tuple[Source, ...], folder: Path) -> SourceCounts:
    """Return the sums of what all processes of a rank wrote."""
    found: dict[int, dict[int, tuple[list[int], list[tuple[int, int, int]]]]] = {}
    for file in sorted(folder.iterdir()):
        which, rank, _ = file.name.split(".", 2)
        lines = file.read_text(encoding="ascii").splitlines()
        if not lines or lines[-1] != "end":
            raise InputError(file.name, "was not written to its end")
        blocks = [int(line) for line in lines[:-1] if " " not in line]
        values = [(int(a), int(b), int(c)) for a, b, c in (line.split() for line in lines[:-1] if " " in line)]
        before = found.setdefault(int(which), {}).get(int(rank))
        found[int(which)][int(rank)] = _add_counts(before, (blocks, values)) if before else (blocks, values)
    if not found:
        raise UsageError("the program wrote no counts: it was not built from the copy, or ended without exit()")
    ranks = 1 + max(rank for each in found.values() for rank in each)
    blocks_of, values_of = [], []
    for number, source in enumerate(sources):
        rows = found.get(number, {})
        none = [0] * max(len(source.blocks), 1)
        columns = [rows.get(rank, (none, []))[0] for rank in range(ranks)]
        blocks_of.append(tuple(tuple(column[b] for column in columns) for b in range(len(source.blocks))))
        symbols = len(source.noted_names)
        values_of.append(tuple(_value_range([row[1][v] for row in rows.values() if row[1]]) for v in range(symbols)))
    return SourceCounts(sources, ranks, tuple(blocks_of), tuple(values_of))


def _add_counts(
    one: tuple[list[int], list[tuple[int, int, int]]], other: tuple[list[int], list[tuple[int, int, int]]]
) -> tuple[list[int], list[tuple[int, int, int]]]:
    blocks = [a + b for a, b in zip(one[0], other[0], strict=True)]
    values = []
    for a, b in zip(one[1], other[1], strict=True):
        known = [each for each in (a, b) if each[0]]
        values.append((1, min(e[1] for e in known), max(e[2] for e in known)) if known else (0, 0, 0))
    return blocks, values


def _value_range(rows: Sequence[tuple[int, int, int]]) -> tuple[int, int] | None:
    known = [row for row in rows if row[0]]
    return (min(row[1] for row in known), max(row[2] for row in known)) if known else None


def detect_language(path: Path) -> str:
    """Return the language of a file by its name; raises ``UsageError`` for others."""
    if path.suffix not in LANGUAGES:
        raise UsageError(f"{path}: only C, C++ and free-form Fortran are counted ({', '.join(sorted(LANGUAGES))})")
    return LANGUAGES[path.suffix]


def instrument_source(code: bytes, source: Source, number: int) -> bytes:
    """Return the text of file ``number`` with its counters; in C and C++ line numbers stay what they are."""
    controls = sum(len(loop.symbols) for loop in source.loops)
    parts: list[bytes] = []
    last = 0
    for insertion in sorted(source.insertions, key=lambda one: (one.offset, one.order)):
        inserted = insertion.text.replace("@FILE@", str(number)).replace("@LOOPS@", str(controls))
        parts += [code[last : insertion.offset], inserted.encode()]
        last = insertion.offset + insertion.removed
    text = b"".join([*parts, code[last:]])
    if source.language == "fortran":
        return text + _load_runtime("counters.f90", source, number)
    return _load_runtime("counters.h", source, number) + f'#line 1 "{source.file}"\n'.encode() + text


def _load_runtime(name: str, source: Source, number: int) -> bytes:
    """Return the source of the counters of a file."""
    values = len(source.noted_names)
    text = (files("advisor_processor.source") / name).read_text(encoding="utf-8").replace("@FILE@", str(number))
    text = text.replace("@COUNTERS@", str(max(len(source.blocks), 1))).replace("@VALUES@", str(max(values, 1)))
    return text.encode()
