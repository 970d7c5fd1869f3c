"""Launchers of ranks in a command, which of their words says how many ranks they start, and interpreters of scripts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import Final, NamedTuple

#: Programs that start ranks; distributions install some with the name of the library behind a dot or a dash.
LAUNCHERS: Final = frozenset({"mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "lrun"})
#: How a launcher is told the number of ranks, if it is one of these; ``-c`` are the cores of a rank to the first three,
#: and to jsrun ``-n`` are not ranks, but sets of resources.
_ASKED: Final = {"srun": "-n|--ntasks", "aprun": "-n|--pes", "flux": "-n|--ntasks", "jsrun": "-p|--np", "lrun": "-n"}
_ASKED_OTHERS: Final = "-np|--np|-n|-c|--n"
#: Options of launchers that stand alone; other ones without ``=`` have their value in the next word.
_FLAGS: Final = frozenset(
    (
        "--allow-run-as-root", "--display-allocation", "--display-map", "--exclusive", "--label", "--oversubscribe",
        "--parallel", "--prepend-rank", "--quiet", "--report-bindings", "--tag-output", "--unbuffered", "--verbose",
        "--use-hwthread-cpus", "-display-map", "-genvall", "-l", "-oversubscribe", "-prepend-rank", "-q",
        "-report-bindings", "-tag-output", "-u", "-v",
    )
)  # fmt: skip
#: Options of OpenMPI with two values.
_PAIRS: Final = frozenset({"--mca", "-mca", "--gmca", "-gmca"})
_FLUX: Final = ("flux", "run")
_INTERPRETER: Final = re.compile(r"(python|pypy|perl|ruby)[\d.]*t?|julia|R|Rscript")


class RankOption(NamedTuple):
    """The option of a launcher with the number of ranks: the words at ``place`` … ``end`` - 1 of the command."""

    place: int
    end: int
    name: str
    ranks: int

    def replace_ranks(self, words: Sequence[str], ranks: int) -> list[str]:
        """Return the command with another number of ranks, in the form that it has."""
        attached = words[self.place][len(self.name) :].rstrip("0123456789")
        new = [self.name, str(ranks)] if self.end - self.place == 2 else [f"{self.name}{attached}{ranks}"]
        return [*words[: self.place], *new, *words[self.end :]]


#: A variable that is set for a command, in front of it.
_SETTING: Final = re.compile(r"[A-Za-z_]\w*=")


def is_launcher(word: str) -> bool:
    """Return whether a word of a command names a program that starts ranks, such as ``/opt/bin/mpirun.openmpi``."""
    return _find_family(word) in LAUNCHERS


def find_launcher_place(words: Sequence[str]) -> int | None:
    """Return the place of the launcher, which may stand behind ``env`` or ``time``; None for a command without."""
    return next((at for at, word in enumerate(words) if is_launcher(word) or tuple(words[at : at + 2]) == _FLUX), None)


def find_launched_program(words: Sequence[str]) -> int | None:
    """Return the place of the first program that a launcher starts, None for a command without a launcher.

    The command may be another machine's: what is an option and what its value is told by their names alone.
    """
    at = find_launcher_place(words)
    if at is None:
        return None
    at += 2 if words[at] == _FLUX[0] else 1
    while at < len(words) and words[at].startswith("-"):
        alone = "=" in words[at] or words[at] in _FLAGS
        at += 1 if alone else 3 if words[at] in _PAIRS else 2
    return at if at < len(words) else None


def find_rank_option(words: Sequence[str], program: int | None = None) -> RankOption | None:
    """Return the option with the number of ranks, None where there is none, or one for each of several programs.

    The program stands at ``program``, or else it is the first word behind the launcher that can be run: options that
    follow are its own.
    """
    launcher = find_launcher_place(words)
    if launcher is None or ":" in words[launcher:program]:
        return None
    asked = re.compile(rf"({_ASKED.get(_find_family(words[launcher]), _ASKED_OTHERS)})(?:=?(\d+))?")
    for at in range(launcher + 1, len(words) if program is None else program):
        found = asked.fullmatch(words[at])
        if found and found[2]:
            return RankOption(at, at + 1, found[1], int(found[2]))
        if found and at + 1 < len(words) and words[at + 1].isdecimal():
            return RankOption(at, at + 2, found[1], int(words[at + 1]))
        if program is None and _can_run(words[at], words[at - 1]):
            return None
    return None


def count_ranks(words: Sequence[str]) -> int:
    """Return the number of ranks that a command starts, 1 where it does not say."""
    found = find_rank_option(words)
    return found.ranks if found else 1


def _find_family(word: str) -> str:
    return re.split(r"[.-]", PurePath(word).name, maxsplit=1)[0]


def _can_run(word: str, before: str) -> bool:
    """Return whether a word is a program, and not the value of the option ``before`` that is named as one is."""
    return not word.startswith("-") and (os.sep in word or not before.startswith("-")) and bool(shutil.which(word))


def split_line(line: object) -> tuple[list[str], list[str]]:
    """Return the settings of a command line and its other words; neither for what is none, or was cut short."""
    try:
        words = shlex.split(line) if isinstance(line, str) else []
    except ValueError:
        words = []
    return split_settings(words)


def split_settings(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the settings in front of a command, and its words."""
    settings = list(takewhile(_SETTING.match, words))
    return settings, list(words[len(settings) :])


def is_interpreter(program: str) -> bool:
    """Return whether a program, given by its path, runs the script that it is given."""
    return _INTERPRETER.fullmatch(PurePath(program).name) is not None
