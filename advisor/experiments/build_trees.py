"""Builds with other flags, each in a tree of its own; the user's tree is only read.

Flags that won become a patch of the makefile, or the commands that configure a build directory anew.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.collect.binaries.executables import find_program
from advisor.experiments.processes import read_tail, run_timed
from advisor.experiments.settings import fill_flags
from advisor.experiments.sources import LEFT_OUT
from advisor.model.errors import AdvisorError

#: Files larger than that are linked instead of copied: inputs, not sources (bytes).
_LARGE_B: Final = 64 << 20
#: How what compilers and linkers make begins: ELF, archives, LLVM's bitcode; and modules of Fortran.
_COMPILED: Final = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n", b"BC\xc0\xde")
_GZIP: Final = b"\x1f\x8b"
_MODULES: Final = (".mod", ".smod")
#: A time of change that is before that of any source (seconds since 1970).
_LONG_AGO_S: Final = 1
#: The languages of CMake that have flags.
LANGUAGES: Final = ("C", "CXX", "Fortran")
_CACHE_LINE: Final = re.compile(
    r"^([A-Za-z_][\w.+-]*):(BOOL|STRING|PATH|FILEPATH|UNINITIALIZED|INTERNAL)=(.*)$", re.MULTILINE
)
#: Variables of CMake itself that users set and that have to hold in another build directory too.
_CMAKE_OPTIONS: Final = (
    "CMAKE_PREFIX_PATH", "CMAKE_MODULE_PATH", "CMAKE_TOOLCHAIN_FILE", "CMAKE_BUILD_TYPE", "CMAKE_CXX_STANDARD",
    "CMAKE_C_STANDARD", "CMAKE_EXE_LINKER_FLAGS", "CMAKE_SHARED_LINKER_FLAGS", "CMAKE_POSITION_INDEPENDENT_CODE",
)  # fmt: skip
#: The entry of CMake's cache that names the source directory.
_CMAKE_SOURCE: Final = "CMAKE_HOME_DIRECTORY"
#: Sections of Meson's options that a user chose, and options of the others.
_MESON_SECTIONS: Final = ("user", "base", "compiler")
_MESON_OPTIONS: Final = ("default_library", "wrap_mode", "debug", "prefer_static")
_MESON_FLAGS: Final = ("c_args", "cpp_args", "fortran_args")
#: What CMake and Meson write of how each file is compiled, and how a flag begins that says how much is optimized.
_COMPILE_COMMANDS: Final = "compile_commands.json"
_LEVEL: Final = "-O"
_ERROR: Final = re.compile(r"\berror\b", re.IGNORECASE)
#: So much of a line of a build's output is shown (characters).
_LINE: Final = 120
#: In the order in which GNU make looks for them.
_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
#: A word of a build command that sets a variable of the makefile to the flags.
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)=(.*\{flags\}.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class BuildTree:
    """A build: the command with its programs there, and the directory to run it in."""

    words: tuple[str, ...]
    folder: Path


def find_build_system(words: Sequence[str], folder: Path) -> tuple[str, Path] | None:
    """Return ``cmake`` or ``meson`` and the build directory that holds a program of the command, None for neither."""
    for word in words:
        program = folder / word
        if program.is_file():
            for parent in program.resolve().parents:
                if (parent / "CMakeCache.txt").is_file():
                    return "cmake", parent
                if (parent / "meson-info" / "meson-info.json").is_file():
                    return "meson", parent
    return None


def find_sources(words: Sequence[str], folder: Path, build: str | None) -> tuple[Path, tuple[Path, ...]] | None:
    """Return the directory that builds with other flags read, and what in it is none of their input; None for none."""
    if build is not None:
        return folder, ()
    system = find_build_system(words, folder)
    if system is None:
        return None
    name, old = system
    stated = _read_meson_folders(old)["source"] if name == "meson" else read_cmake_cache(old).get(_CMAKE_SOURCE)
    return None if stated is None else (Path(stated), () if Path(stated).samefile(old) else (old,))


def build_tree(
    words: Sequence[str], folder: Path, target: Path, flags: str, build: str | None, limit_s: float
) -> BuildTree:
    """Build with ``flags`` in the new directory ``target``, by the user's command or by CMake or Meson.

    Raises ``AdvisorError`` where it does not build, or nothing says how.
    """
    if build is not None:
        _build_copy(words, folder, target, flags, build, limit_s)
        return locate_tree(words, folder, target, build)
    system = find_build_system(words, folder)
    if system is None:
        raise AdvisorError("nothing says how to build: --build \"make CFLAGS='{flags}'\"")
    name, old = system
    configure, make = _cmake_commands(old, target, flags) if name == "cmake" else _meson_commands(old, target, flags)
    log = target.with_name(f"{target.name}.log")
    _run_build(configure, folder, log, limit_s)
    _refuse_overruled(target, flags)
    _run_build(make, folder, log, limit_s)
    return locate_tree(words, folder, target, build)


def locate_tree(words: Sequence[str], folder: Path, target: Path, build: str | None) -> BuildTree:
    """Return the command in ``target``, which was built before."""
    if build is not None:
        return BuildTree(tuple(_move_paths(words, folder, folder, target)), target)
    system = find_build_system(words, folder)
    assert system is not None, "what was built has a build system"
    return BuildTree(tuple(_move_paths(words, folder, system[1], target)), folder)


def _build_copy(words: Sequence[str], folder: Path, target: Path, flags: str, build: str, limit_s: float) -> None:
    session = target.parent.resolve()

    def leave_out(place: str, names: list[str]) -> list[str]:
        own = [session.name] if Path(place).resolve() == session.parent else []  # it may lie in the tree
        return [*own, *shutil.ignore_patterns(*LEFT_OUT)(place, names)]

    shutil.copytree(folder, target, symlinks=True, ignore=leave_out, copy_function=_copy_or_link)
    for place, *_ in os.walk(target):
        _make_writable(place)
    command = fill_flags(build, flags)
    log = target.with_name(f"{target.name}.log")
    _run_build(command, target, log, limit_s)
    left = find_program(words, target)
    if left is None or not left.is_relative_to(target) or left.stat().st_mtime > _LONG_AGO_S:
        return
    if Path(command[0]).name not in ("make", "gmake"):
        raise AdvisorError(f"{command[0]} built no {left.name} ({log})")
    _run_build([command[0], "-B", *command[1:]], target, log, limit_s)  # a rule that names no files it is made of


def _copy_or_link(source: str, target: str) -> str:
    """Copy a file; what a compiler made becomes so old that all that make it anew do so.

    ``make -B`` would do that too, but it never ends where a makefile lets a further make write what it includes.
    """
    if Path(source).stat().st_size > _LARGE_B:
        Path(target).symlink_to(source)
        return target
    shutil.copy2(source, target)
    _make_writable(target)
    with Path(target).open("rb") as stream:
        start = stream.read(len(max(_COMPILED, key=len)))
    if start.startswith(_COMPILED) or (start.startswith(_GZIP) and target.endswith(_MODULES)):
        os.utime(target, (_LONG_AGO_S, _LONG_AGO_S))
    return target


def _make_writable(path: str) -> None:
    """Let the user write a copy: the tree that it is of may be read-only, what is built in it is not."""
    os.chmod(path, os.stat(path).st_mode | stat.S_IWUSR)


def _cmake_commands(old: Path, target: Path, flags: str) -> list[list[str]]:
    """Return the commands that configure and build with the options of the old build directory."""
    cached = read_cmake_cache(old)
    source = cached.get(_CMAKE_SOURCE)
    if source is None:
        raise AdvisorError(f"{old / 'CMakeCache.txt'} names no source directory")
    own = [f"-D{name}={value}" for name, value in cached.items() if _is_option(name, cached, old)]
    own.append("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    configure = ["cmake", "-S", source, "-B", str(target), *own, *list_cmake_flags(cached, flags)]
    return [configure, ["cmake", "--build", str(target), "--parallel"]]


def read_cmake_cache(folder: Path) -> dict[str, str]:
    """Return the entries of the cache of a build directory of CMake."""
    text = (folder / "CMakeCache.txt").read_text("utf-8", "replace")
    return {name: value for name, _, value in _CACHE_LINE.findall(text)}


def list_cmake_flags(cached: Mapping[str, str], flags: str) -> list[str]:
    """Return the options that add ``flags`` behind those that the build directory has for each of its languages."""
    kind = cached.get("CMAKE_BUILD_TYPE", "")
    suffix = f"_FLAGS_{kind.upper()}" if kind else "_FLAGS"
    options = []
    for language in LANGUAGES:
        if f"CMAKE_{language}_COMPILER" in cached:
            names = [f"CMAKE_{language}_FLAGS"] if kind else []
            options += [f"-D{name}={cached[name]}" for name in names if cached.get(name)]
            name = f"CMAKE_{language}{suffix}"
            options.append(f"-D{name}={' '.join((cached.get(name, ''), flags)).strip()}")
    return options


def _is_option(name: str, cached: Mapping[str, str], old: Path) -> bool:
    """Return whether an entry of the cache is one that a user chose: nothing that was found, no path into the tree.

    What CMake's modules found out, such as flags and libraries of OpenMP, they mark as advanced.
    """
    value = cached[name]
    if not value or str(old) in value or name.endswith("-ADVANCED") or "-" in name:
        return False
    if name.startswith("CMAKE_"):
        return name in _CMAKE_OPTIONS or name in [f"CMAKE_{language}_COMPILER" for language in LANGUAGES]
    derived = (f"{name}-ADVANCED", f"{name}-STRINGS")
    return derived[0] not in cached and not name.endswith(("_BINARY_DIR", "_SOURCE_DIR", "_IS_TOP_LEVEL"))


def _meson_commands(old: Path, target: Path, flags: str) -> list[list[str]]:
    """Return the commands that set up and build with the options of the old build directory."""
    setup = ["meson", "setup", str(target), _read_meson_folders(old)["source"], "--buildtype=plain"]
    return [[*setup, *list_meson_options(old, flags)], ["meson", "compile", "-C", str(target)]]


def _read_meson_folders(old: Path) -> Mapping[str, str]:
    stated: dict[str, dict[str, str]] = json.loads((old / "meson-info" / "meson-info.json").read_text("utf-8"))
    return stated["directories"]


def list_meson_options(folder: Path, flags: str) -> list[str]:
    """Return the options that a build directory of Meson was set up with, ``flags`` behind those of each language."""
    listed = json.loads((folder / "meson-info" / "intro-buildoptions.json").read_text("utf-8"))
    chosen = {
        one["name"]: one["value"] for one in listed
        if (one["section"] in _MESON_SECTIONS or one["name"] in _MESON_OPTIONS) and one.get("machine") != "build"
    }  # fmt: skip
    # the project's languages are those with options for arguments: Meson lists its compilers from 1.2 on only
    chosen |= {name: [*chosen[name], *flags.split()] for name in _MESON_FLAGS if name in chosen}
    return [f"-D{name}={_encode_meson(value)}" for name, value in sorted(chosen.items())]


def _encode_meson(value: object) -> str:
    """Return a value as Meson reads it: lists in brackets, since their elements may hold commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, list) else str(value)


def _run_build(command: Sequence[str], folder: Path, log: Path, limit_s: float) -> None:
    run = run_timed(command, folder, log, limit_s)
    if run.status is None:
        raise AdvisorError(f"{command[0]} did not end within the budget ({log})")
    if run.status:
        lines = log.read_text("utf-8", "replace").splitlines()
        last = read_tail(log).splitlines()[-1:]
        line = next((line for line in lines if _ERROR.search(line)), "".join(last)).strip()
        raise AdvisorError(f"{command[0]} failed with status {run.status}: {line[:_LINE]} ({log})")


def _refuse_overruled(target: Path, flags: str) -> None:
    """Raise ``AdvisorError`` if the project puts a level of optimization of its own behind ``flags`` everywhere.

    A project that sets ``CMAKE_C_FLAGS_RELEASE`` itself does so: then every setting of flags would be the same build.
    """
    file = target / _COMPILE_COMMANDS
    levels = [word for word in flags.split() if word.startswith(_LEVEL)]
    if not levels or not file.is_file():
        return
    entries = json.loads(file.read_text("utf-8", "replace"))
    words = [entry.get("arguments") or shlex.split(entry["command"]) for entry in entries]
    last = [next((word for word in reversed(one) if word.startswith(_LEVEL)), None) for one in words]
    if last and levels[-1] not in last:
        raise AdvisorError(f"the project puts {last[0]} behind {flags} for every file, so that they change nothing")


def _move_paths(words: Sequence[str], folder: Path, old: Path, target: Path) -> list[str]:
    """Return the command with the files below the old tree replaced by those of the new one.

    Relative words stay where the command runs in the new tree, which is a copy of the old one.
    """
    moved = []
    for word in words:
        path = folder / word
        inside = path.exists() and path.resolve().is_relative_to(old.resolve())
        relative_in_copy = old == folder and not Path(word).is_absolute()
        new = target / path.resolve().relative_to(old.resolve()) if inside else None
        moved.append(str(new) if new is not None and not relative_in_copy and new.is_file() else word)
    return moved


def write_makefile_patch(folder: Path, build: str, flags: str) -> str | None:
    """Return the patch that sets the variable of ``build``, such as ``CFLAGS='{flags}'``, in the makefile to the flags.

    None where the build sets no variable, or the makefile does not set it exactly once.
    """
    found = next((match for word in shlex.split(build) if (match := _ASSIGNED.fullmatch(word))), None)
    file = next((folder / name for name in _MAKEFILES if (folder / name).is_file()), None)
    if found is None or file is None:
        return None
    value = found[2].replace("{flags}", flags).replace("#", "\\#").replace("$", "$$")
    before = file.read_text("utf-8", "surrogateescape").splitlines(keepends=True)
    line = re.compile(rf"([ \t]*{re.escape(found[1])}[ \t]*(?::{{0,3}}|\?)=[ \t]*)(?:.*[^\\\s])?\s*$")
    places = [number for number, text in enumerate(before) if line.match(text)]
    again = [text for text in before if re.match(rf"\s*(?:override\s+)?{re.escape(found[1])}\s*\+=", text)]
    if len(places) != 1 or again:
        return None
    after = list(before)
    matched = line.match(before[places[0]])
    assert matched is not None
    after[places[0]] = f"{matched[1]}{value}\n"
    changed = difflib.unified_diff(before, after, f"a/{file.name}", f"b/{file.name}")
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in changed)


def describe_reconfiguration(system: str, build: Path, flags: str) -> list[str]:
    """Return the lines that set the flags in a build directory of CMake or Meson, and build there."""
    place = shlex.quote(str(build))
    if system == "meson":
        kept = ("-Ddebug=", *(f"-D{name}=" for name in _MESON_FLAGS))  # the others stay as they are
        changed = [option for option in list_meson_options(build, flags) if option.startswith(kept)]
        return [shlex.join(["meson", "configure", str(build), "-Dbuildtype=plain", *changed]),
                f"meson compile -C {place}"]  # fmt: skip
    options = list_cmake_flags(read_cmake_cache(build), flags)
    return [shlex.join(["cmake", *options, str(build)]), f"cmake --build {place}"]
