"""Compiler flags that won, as a patch of the makefile or as the commands that configure a build directory anew."""

from __future__ import annotations

import difflib
import re
import shlex
from typing import TYPE_CHECKING, Final

from advisor.experiments.build_trees import list_cmake_flags, list_meson_options, read_cmake_cache

if TYPE_CHECKING:
    from pathlib import Path

_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)=(.*\{flags\}.*)", re.DOTALL)


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
        return [shlex.join(["meson", "configure", str(build), "-Dbuildtype=plain", *list_meson_options(build, flags)]),
                f"meson compile -C {place}"]  # fmt: skip
    options = list_cmake_flags(read_cmake_cache(build), flags)
    return [shlex.join(["cmake", *options, str(build)]), f"cmake --build {place}"]
