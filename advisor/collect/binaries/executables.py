"""Which file a run's program was: as the recording or the user names it, and whether it is still the one that ran."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Final

from advisor.model.errors import InputError, UsageError
from advisor.model.records import Note, Profile
from advisor.trace.library_functions import count_by_name

_ELF: Final = b"\x7fELF"
#: A larger program is looked into only where the user names it.
_LARGE_B: Final = 256 << 20
#: The program's file in its recording ends so, and has at most so many bytes where it can't be a link.
KEPT_SUFFIX: Final = ".program"
_MOST_COPIED_B: Final = 64 << 20
#: Readers whose regions are functions of the program and of libraries as well.
_NAMES_LIBRARIES: Final = frozenset({"perf", "hpctoolkit", "gprof"})


def attach_executable(
    profile: Profile, stated: Path | None, folders: Sequence[Path], recordings: Sequence[Path] = ()
) -> Profile:
    """Return the profile with what its program's file tells, where that is known and at hand.

    ``stated`` is what the user names; ``InputError`` if it is no program. A file that a recording names is looked for
    from ``folders``. Where it is not there, or was changed after the run, one of the ``recordings`` of the run may
    have kept it (``keep_program``).
    """
    if stated is not None:
        from advisor.collect.binaries.program_code import describe_code

        return describe_code(replace(profile, executable=str(stated.resolve())), stated)
    file = find_executable(profile, folders)
    changed = file is not None and _is_newer(file, profile)
    ran = _find_kept_program(profile, recordings) if file is None or changed else file
    if file is None and ran is None:
        return _describe_known_functions(profile)
    from advisor.collect.binaries.program_code import NOTE, describe_code

    if ran is None:
        text = f"{profile.program} was changed after this run, so that nothing is said about its code"
        return replace(profile, notes=(*profile.notes, Note(NOTE, text)))
    try:
        return describe_code(profile if file is None else replace(profile, executable=str(file)), ran)
    except (InputError, UsageError) as error:
        return replace(profile, notes=(*profile.notes, Note(NOTE, str(error))))


def _describe_known_functions(profile: Profile) -> Profile:
    """Return the profile with what functions of libraries do by their names, where samples name them."""
    if "code.all_s" in profile.counts or _NAMES_LIBRARIES.isdisjoint(profile.reader.split("+")):
        return profile
    from advisor.analysis.loads.computation import compute_region_seconds

    seconds = compute_region_seconds(profile)
    if seconds is None or not seconds.any():
        return profile
    counts = count_by_name([region.name for region in profile.regions], seconds)
    return replace(profile, counts={**profile.counts, **counts})


def keep_program(file: Path, folder: Path) -> None:
    """Keep a program's file in its recording, so that advice on its code survives the next build.

    It is a link, since linkers and installers write new files, else a copy; nothing where it is too large for that.
    """
    kept = folder / _kept_name(str(file))
    if kept.exists() or not _is_program(file):
        return
    try:
        os.link(file, kept)
    except OSError:
        with suppress(OSError):
            if file.stat().st_size <= _MOST_COPIED_B:
                shutil.copy2(file, kept)


def _kept_name(program: str) -> str:
    """Return what a program's file is called in a recording: a run of several programs may have two of one name."""
    return f"{PurePath(program).name}-{blake2b(program.encode(), digest_size=4).hexdigest()}{KEPT_SUFFIX}"


def _find_kept_program(profile: Profile, recordings: Sequence[Path]) -> Path | None:
    if profile.executable is None:
        return None
    kept = (folder / _kept_name(profile.executable) for folder in recordings)
    return next((file for file in kept if _is_program(file) and not _is_newer(file, profile)), None)


def find_executable(profile: Profile, folders: Sequence[Path]) -> Path | None:
    """Return the program that a recording names, by its path or in the command that was run; None without one."""
    for name in _named_files(profile):
        for folder in (Path(), *folders):
            file = folder / name
            if _is_program(file):
                return file.resolve()
    return None


def find_program(words: Sequence[str], folder: Path) -> Path | None:
    """Return the program that a command measures when it runs in ``folder``: its last word that is one, else None.

    A library or an object file that is only read is none: it may not be executed.
    """
    files = (folder / word for word in reversed(words))
    return next((file.resolve() for file in files if _is_program(file) and os.access(file, os.X_OK)), None)


def _named_files(profile: Profile) -> Iterator[str]:
    if profile.executable:
        yield profile.executable
    command = profile.parameters.get("command")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    for word in words:
        if PurePath(word).name == profile.program:
            yield word
            if "/" not in word and (found := shutil.which(word)):
                yield found


def _is_program(file: Path) -> bool:
    try:
        if not file.is_file() or file.stat().st_size > _LARGE_B:
            return False
        with file.open("rb") as stream:
            return stream.read(4) == _ELF
    except (OSError, ValueError):
        return False


def _is_newer(file: Path, profile: Profile) -> bool:
    """Return whether a file was changed after the run began, as far as the time of the run is known."""
    try:
        started = datetime.fromisoformat(profile.started or "")
        return file.stat().st_mtime > started.timestamp() + 1.0
    except (ValueError, OSError, OverflowError):
        return False
