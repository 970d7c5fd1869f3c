"""Building the recorder with the user's own compilers, once per MPI library, and finding it again."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.collect.recorder.wrappers import fortran_bindings, wrapped_functions, write_wrappers
from advisor.model.errors import AdvisorError
from advisor.support import disk_cache
from advisor.support.atomic_write import atomic_write
from advisor.support.child_process import run_child
from advisor.support.launchers import is_launcher

SOURCES: Final = Path(__file__).parent
_PARTS: Final = (
    "core.c", "records.c", "folding.c", "files.c", "process.c", "prices.c", "samples.c", "posix.c", "threads.c",
    "children.c", "locks.c", "openmp.c", "tasks.c", "python.c", "fortran.c", "lookup.c",
)  # fmt: skip
_FLAGS: Final = (
    "-std=gnu11", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=default", "-fno-strict-aliasing",
    "-ftls-model=initial-exec", "-fno-builtin", "-Wno-all",
)  # fmt: skip
_TIMEOUT_S: Final = 600
#: The library behind an MPI program, of MPICH and its relatives or Open MPI, or its part for another language.
_LIBRARY: Final = re.compile(rb"lib(mpi|mpich)(?:fort|cxx|_[a-z0-9_]+)?\.so((?:\.\d+)?)")
#: Shells, and the first line of a script for one of them.
_SHELLS: Final = ("sh", "bash", "dash", "ksh", "zsh")
_SHELL_LINE: Final = re.compile(rf"#!.*\b(?:{'|'.join(_SHELLS)})\b")
#: The option after which a script of a shell is the next word: ``-c``, ``-lc``, ``-euxc``.
_SHELL_COMMAND: Final = re.compile(r"-[a-z]{0,6}c$")
#: Bytes of a script that are looked at.
_SCRIPT_B: Final = 64 << 10
#: The source of the table of recorded functions; ``@MPI@`` stands for those of MPI.
_NAMES: Final = """#include "recorder.h"
#include "posix_numbers.h"
#define GW_NAME(name) #name,
const char *const gw_names[] = {GW_FUNCTIONS(GW_NAME)
@MPI@};
const unsigned gw_functions = sizeof gw_names / sizeof *gw_names;
unsigned char gw_named[sizeof gw_names / sizeof *gw_names];
"""


class BuildError(AdvisorError):
    """The recorder can't be built here; the message says why."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """An MPI compiler: the command, and the name of the library that its programs load."""

    command: str
    library: str


def build_recorder(compiler: Compiler | None) -> Path:
    """Return the library to preload, built unless it is there; without MPI if there is no ``compiler``.

    Raises ``BuildError`` where that fails.
    """
    command = compiler.command if compiler else _plain_compiler()
    folder = disk_cache.user_folder("XDG_CACHE_HOME", "~/.cache") / "recorder"
    own = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.[chp]*")))).hexdigest()
    state = [own, _state_of(command), list(_FLAGS)]
    known = disk_cache.load_cached("recorder", command, state)
    if isinstance(known, str) and (folder / known).exists():
        return folder / known
    header = _preprocess(command) if compiler else ""
    # The sources that depend on the MPI library, by file
    functions = wrapped_functions(header)
    if compiler and not functions:
        raise BuildError(f"{compiler.command}: no functions of MPI in its mpi.h")
    names = "".join(f'"{function.name}",\n' for function in functions)
    bindings = " ".join(f"BINDING({n}, {name})" for n, name in enumerate(fortran_bindings(functions)))
    generated = {"names.c": _NAMES.replace("@MPI@", names), "bindings.h": f"#define GW_FORTRAN_BINDINGS {bindings}\n"}
    if compiler:
        generated["wrappers.c"] = write_wrappers(functions)
    digest = hashlib.sha256(repr((own, generated, command, _FLAGS)).encode()).hexdigest()
    target = folder / f"{digest[:20]}.so"
    if not target.exists():
        target = _make_folder(folder) / target.name
        _compile(command, generated, target, compiler.library if compiler else "")
    disk_cache.store_cached("recorder", command, state, target.name)
    return target


def _make_folder(kept: Path) -> Path:
    """Return the folder to keep built recorders in; where the user can't write it, one until this process ends."""
    with suppress(OSError):
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.access(kept, os.W_OK):
        return kept
    made = tempfile.mkdtemp(prefix="gapwatch-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def _plain_compiler() -> str:
    names = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    found = next((name for name in names if name and shutil.which(shlex.split(name)[0])), None)
    if found is None:
        raise BuildError("no C compiler here (cc, gcc, clang): the recorder can't be built")
    return found


def _preprocess(command: str) -> str:
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as folder:
        source = Path(folder, "header.c")
        source.write_text("#include <mpi.h>\n", encoding="ascii")
        return _run([*shlex.split(command), "-E", "-P", str(source)])


def _compile(command: str, generated: dict[str, str], target: Path, library: str) -> None:
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as folder:
        for name, text in generated.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        parts = [str(SOURCES / name) for name in _PARTS]
        parts += [str(Path(folder, name)) for name in generated if name.endswith(".c")]
        definitions = [f'-DGW_MPI_LIBRARY="{library}"']
        if "wrappers.c" in generated:
            definitions += ["-include", str(Path(folder, "bindings.h"))]
        with atomic_write(target) as partial:
            _run([*_without_libraries(command), *_FLAGS, *definitions, f"-I{SOURCES}", f"-I{folder}",
                  "-o", str(partial), *parts, "-ldl", "-lpthread", "-lrt"])  # fmt: skip


def _without_libraries(command: str) -> list[str]:
    """Return the compiler behind an MPI compiler with its flags, but not the libraries: the program brings its own."""
    words = shlex.split(command)
    if "mpi" not in Path(words[0]).name:
        return words
    shown = shlex.split(_run([*words, "-show"]))
    return [word for word in shown if not word.startswith(("-l", "-L", "-Wl"))]


def _run(command: Sequence[str]) -> str:
    done = run_child(command, _TIMEOUT_S)
    if done.status is None:
        raise BuildError(done.failure)
    if done.status:
        said = done.error_text
        first = next((line for line in said.splitlines() if "error" in line), said.strip()[:200])
        raise BuildError(f"{command[0]} ended with exit status {done.status}: {first}")
    return done.text


def find_compiler(arguments: Sequence[str], stated: str | None = None) -> Compiler | None:
    """Return the MPI compiler that fits the program of a command line, None for a program without MPI.

    The library that the program names decides; where it names none, as a Python program, the launcher does. Both may
    stand in a script of the shell. Where neither is in sight, as behind ``make``, the user has ``stated`` a compiler.
    Raises ``BuildError`` if the program needs MPI and no compiler for it is found.
    """
    if stated:
        return _take_stated(stated)
    words = [*arguments, *words_of_scripts(arguments)]
    wanted = next((library for word in words if (library := _library_in(_file(word)))), None)
    launcher = next((word for word in words if is_launcher(word)), None)
    if wanted is None and launcher is None:
        return None
    candidates = list(_candidates(launcher))
    for command in candidates:
        library = _library_of(command)
        if library and wanted in (None, library):
            return Compiler(command, library)
    needs = f"the program needs {wanted}" if wanted else f"{launcher} starts programs of MPI"
    tried = f"; {', '.join(candidates)} made for another" if candidates else ""
    raise BuildError(f"{needs}, but no mpicc for it is here{tried}")


def _take_stated(command: str) -> Compiler:
    if not shlex.split(command) or shutil.which(shlex.split(command)[0]) is None:
        raise BuildError(f"no command {command!r} is here")
    library = _library_of(command)
    if library is None:
        raise BuildError(f"{command!r} builds no program of MPI")
    return Compiler(command, library)


def words_of_scripts(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the words of scripts of the shell on a command line: ``bash run.sh``, ``./run.sh``, ``bash -c "..."``."""
    for before, word in zip(("", *arguments), arguments, strict=False):
        if _SHELL_COMMAND.match(before):
            yield from _split_text(word)
            continue
        path = Path(word)
        try:
            with path.open("rb") as file:
                text = file.read(_SCRIPT_B).decode("utf-8", "replace") if path.is_file() else ""
        except OSError:
            continue
        if _SHELL_LINE.match(text) or Path(before).name in _SHELLS:
            yield from _split_text(text)


def _split_text(text: str) -> Iterator[str]:
    """Yield the words of a script; those between blanks in lines whose quotes go on in others."""
    for line in text.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        try:
            yield from list(words)
        except ValueError:
            yield from line.split()


def _file(word: str) -> Path | None:
    found = shutil.which(word)
    return Path(found) if found else None


def _library_in(path: Path | None) -> str | None:
    """Return the MPI library that a program loads, None where the file is no program, or a launcher."""
    if path is None or is_launcher(path.name):
        return None
    try:
        with path.open("rb") as file:
            content = file.read(64 << 20)
    except OSError:
        return None
    found = _LIBRARY.search(content) if content.startswith(b"\x7fELF") else None
    return f"lib{found[1].decode()}.so{found[2].decode()}" if found else None


def _candidates(launcher: str | None) -> Iterator[str]:
    """Yield MPI compilers: the one beside the launcher, with its ending, before those that are found elsewhere."""
    given = os.environ.get("GAPWATCH_MPICC")
    if given:
        yield given
    if launcher and (path := shutil.which(launcher)):
        ending = Path(launcher).name.partition(".")[2]
        name = f"mpicc.{ending}" if ending else "mpicc"
        if (beside := Path(path).with_name(name)).exists():
            yield str(beside)
    for name in ("mpicc", "mpicc.openmpi", "mpicc.mpich", "mpiicx", "mpiicc", "cc"):
        if name != "cc" and shutil.which(name):
            yield name


def _library_of(command: str) -> str | None:
    """Return the MPI library that programs of an MPI compiler load, as it was found once for this compiler."""
    state = [_state_of(command), os.environ.get("LD_LIBRARY_PATH", "")]
    known = disk_cache.load_cached("mpi-library", command, state)
    if isinstance(known, str):
        return known or None
    found = _probe_library(command)
    disk_cache.store_cached("mpi-library", command, state, found or "")
    return found


def _state_of(command: str) -> list[object]:
    """Return what changes when a compiler is replaced: where it is, and when that was written."""
    path = os.path.realpath(shutil.which(shlex.split(command)[0]) or command)
    return [path, disk_cache.change_time_ns(path)]


def _probe_library(command: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="gapwatch-") as folder:
        source, program = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text("#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n", encoding="ascii")
        try:
            _run([*shlex.split(command), "-o", str(program), str(source)])
        except BuildError:
            return None
        return _library_in(program)
