"""Builds with other flags, each in a tree of its own; the user's tree is only read."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.experiments.processes import read_tail, run_timed
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What is not copied: it is large, and no part of a build.
_LEFT_OUT: Final = (".git", ".hg", ".svn", "__pycache__")
#: Files larger than that are linked instead of copied: inputs, not sources (bytes).
_LARGE_B: Final = 64 << 20
#: The languages of CMake that have flags.
LANGUAGES: Final = ("C", "CXX", "Fortran")
#: Where Meson takes the flags of each language from.
_FLAG_VARIABLES: Final = ("CFLAGS", "CXXFLAGS", "FFLAGS")
_CACHE_LINE: Final = re.compile(r"^([A-Za-z_][\w-]*):(BOOL|STRING|PATH|FILEPATH)=(.*)$", re.MULTILINE)


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


def build_tree(
    words: Sequence[str], folder: Path, target: Path, flags: str, build: str | None, limit_s: float
) -> BuildTree:
    """Build with ``flags`` in the new directory ``target``, by the user's command or by CMake or Meson.

    Raises ``AdvisorError`` where it does not build, or nothing says how.
    """
    if build is not None:
        return _build_copy(words, folder, target, flags, build, limit_s)
    system = find_build_system(words, folder)
    if system is None:
        raise AdvisorError("nothing says how to build: --build \"make CFLAGS='{flags}'\"")
    name, old = system
    variables = dict.fromkeys(_FLAG_VARIABLES, flags) if name == "meson" else {}
    for command in _cmake_commands(old, target, flags) if name == "cmake" else _meson_commands(old, target):
        _run_build(command, folder, target.with_name(f"{target.name}.log"), limit_s, variables)
    return BuildTree(tuple(_move_paths(words, folder, old, target)), folder)


def _build_copy(words: Sequence[str], folder: Path, target: Path, flags: str, build: str, limit_s: float) -> BuildTree:
    shutil.copytree(
        folder, target, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT), copy_function=_copy_or_link
    )
    command = [word.replace("{flags}", flags) for word in shlex.split(build)]
    if Path(command[0]).name in ("make", "gmake"):
        command.insert(1, "-B")  # objects with other flags were copied along
    _run_build(command, target, target.with_name(f"{target.name}.log"), limit_s)
    return BuildTree(tuple(_move_paths(words, folder, folder, target)), target)


def _copy_or_link(source: str, target: str) -> str:
    if Path(source).stat().st_size > _LARGE_B:
        Path(target).symlink_to(source)
        return target
    return str(shutil.copy2(source, target))


def _cmake_commands(old: Path, target: Path, flags: str) -> list[list[str]]:
    """Return the commands that configure and build with the options of the old build directory."""
    cache = (old / "CMakeCache.txt").read_text("utf-8")
    cached = {name: value for name, _, value in _CACHE_LINE.findall(cache)}
    source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.MULTILINE)
    if source is None:
        raise AdvisorError(f"{old / 'CMakeCache.txt'} names no source directory")
    own = [f"-D{name}={value}" for name, value in cached.items() if _is_option(name, value)]
    more = [f"-DCMAKE_{language}_FLAGS={flags}" for language in LANGUAGES]
    configure = ["cmake", "-S", source[1], "-B", str(target), "-DCMAKE_BUILD_TYPE=None", *own, *more]
    return [configure, ["cmake", "--build", str(target)]]


def _is_option(name: str, value: str) -> bool:
    """Return whether an entry of the cache is one that a user chose: no path into the old tree, no flags."""
    compilers = tuple(f"CMAKE_{language}_COMPILER" for language in LANGUAGES)
    return name in compilers or not (name.startswith("CMAKE_") or name.endswith(("_DIR", "_LIBRARY")) or not value)


def _meson_commands(old: Path, target: Path) -> list[list[str]]:
    stated = json.loads((old / "meson-info" / "meson-info.json").read_text("utf-8"))
    setup = ["meson", "setup", str(target), stated["directories"]["source"], "--buildtype=plain"]
    return [setup, ["meson", "compile", "-C", str(target)]]


def _run_build(
    command: Sequence[str], folder: Path, log: Path, limit_s: float, variables: Mapping[str, str] | None = None
) -> None:
    run = run_timed(command, folder, log, limit_s, variables)
    if run.status is None:
        raise AdvisorError(f"{shlex.join(command)} did not end within the budget")
    if run.status:
        last = read_tail(log).splitlines()[-1:] or [""]
        raise AdvisorError(f"{shlex.join(command)} failed with status {run.status}: {last[0]}")


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
