"""What Caliper's globals tell of a run; they may hold command lines and users' names, so only what is listed stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Final

from advisor.formats.rank_files import Origin

_PROGRAM: Final = ("executable", "executablepath", "program.executable", "program")
_COMMAND: Final = "cmdline"
_STARTED: Final = ("starttime.sec", "launchdate")
_HOST: Final = "hostname"
_RANKS: Final = ("mpi.world.size", "jobsize")
#: Globals that become parameters of the run, when they are numbers, as Caliper, Adiak and programs name them.
_NUMBERS: Final = frozenset(
    [
        "problem_size",
        "problem.size",
        "size",
        "iterations",
        "num_regions",
        "region_balance",
        "region_cost",
        "threads",
        "jobsize",
        "numhosts",
        "steps",
        "timesteps",
        "nx",
        "ny",
        "nz",
        "elements",
        "zones",
        "omp.num.threads",
        "omp_num_threads",
    ]
)
_TEXTS: Final = frozenset({"Compiler Name", "Compiler Version", "compiler", "compilerversion", "systype", "cluster"})
_VERSION: Final = "cali.caliper.version"
#: Commit and batch job as programs name them in Adiak, without case and signs between words.
_COMMITS: Final = frozenset(
    {"commit", "commithash", "commitid", "gitcommit", "githash", "gitsha", "gitsha1", "gitrevision"}
)
_JOBS: Final = frozenset({"jobid", "slurmjobid", "pbsjobid", "lsbjobid", "fluxjobid"})
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}(?:[+-][\w.-]{1,40})?")
_JOB: Final = re.compile(r"\w[\w.\[\]-]{0,79}")
_LONGEST: Final = 80  # characters of a text
_LIST: Final = re.compile(r"\[([^,\]]*)")


def find_program(found: Mapping[str, str]) -> str:
    """Return the name of the program, empty where no global tells; never its arguments."""
    path = next((found[name] for name in _PROGRAM if found.get(name)), None)
    if path is None:
        command = found.get(_COMMAND, "")
        listed = _LIST.match(command)
        words = [listed[1]] if listed else command.split(maxsplit=1)
        path = words[0] if words else ""
    return PurePath(path).name


def find_start_time(found: Mapping[str, str]) -> str | None:
    """Return when the run started (ISO 8601, UTC)."""
    text = next((found[name] for name in _STARTED if found.get(name)), "")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        return None
    return datetime.fromtimestamp(int(text), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_origin(file: str, found: Mapping[str, str]) -> Origin:
    """Return what the globals of a file say of its process."""
    start = found.get(_STARTED[0], "")
    nanoseconds = found.get("starttime.nsec", "")
    known = start.isascii() and start.isdigit() and len(start) < 12
    identity = f"{find_host(found)} {start} {nanoseconds}".encode() if known and nanoseconds else b""
    return Origin(file, find_program(found), float(start) if known else None, find_rank_count(found), identity)


def find_host(found: Mapping[str, str]) -> str | None:
    """Return the name of the computer."""
    return found.get(_HOST) or None


def find_rank_count(found: Mapping[str, str]) -> int | None:
    """Return how many ranks the run had."""
    text = next((found[name] for name in _RANKS if found.get(name)), "")
    return int(text) if text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 9 else None


def find_build(found: Mapping[str, str]) -> str | None:
    """Return the commit that the program says it was built from."""
    return _find_named(found, _COMMITS, _COMMIT)


def find_job(found: Mapping[str, str]) -> str | None:
    """Return the batch job that the run was part of."""
    return _find_named(found, _JOBS, _JOB)


def _find_named(found: Mapping[str, str], names: frozenset[str], form: re.Pattern[str]) -> str | None:
    fitting = (text for name, text in found.items() if re.sub(r"[\W_]", "", name).lower() in names)
    return next((text for text in fitting if form.fullmatch(text)), None)


def select_parameters(found: Mapping[str, str]) -> dict[str, str | float]:
    """Return what else identifies the run and is no secret."""
    kept: dict[str, str | float] = {}
    for name, text in found.items():
        if name in _NUMBERS and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) and len(text) < 20:
            kept[name] = float(text)
        elif name in _TEXTS and text and text.isprintable():
            kept[name] = text[:_LONGEST]
    if re.fullmatch(r"[0-9][\w.+-]{0,40}", found.get(_VERSION, "")):
        kept["caliper"] = found[_VERSION]
    return kept
