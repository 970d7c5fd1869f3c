"""The next command: what shows more of a run with the tools that are found on this machine.

Commands are texts to read and copy; nothing here runs them. The user's own words in them are quoted for a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from advisor.collect.notes import escape_undecodable
from advisor.model.recommendations import Need
from advisor.support.launchers import is_interpreter

if TYPE_CHECKING:
    from advisor.collect.sampled_run import SampledRun
    from advisor.model.records import Advice, Note

    ToolCheck = Callable[[str], bool]

#: The highest ``perf_event_paranoid`` at which a user may sample own processes.
_OWN_PROCESSES: Final = 2
_LAUNCH: Final = re.compile(r"mpirun -n \d+ ")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=\S*")


@dataclass(frozen=True, slots=True)
class _RecordingTool:
    """A tool that records what gapwatch reads: the file to look for, for which programs, and how it is run.

    ``{launch}`` stands for what starts the ranks, ``{program}`` for the program with its arguments.
    """

    name: str
    of_ranks: bool
    of_one: bool
    command: str


#: In the order in which they are proposed.
_TOOLS: Final = (
    _RecordingTool("eztrace", True, False,
          '{launch}eztrace -o gapwatch-trace -t "openmpi posixio" {program} && gapwatch advise gapwatch-trace'),
    _RecordingTool("tau_exec", True, False, "{launch}tau_exec -T mpi -ebs {program} && gapwatch advise ."),
    _RecordingTool("perf", False, True,
          "perf record -o gapwatch-perf.data {program} && "
          "perf script -i gapwatch-perf.data > gapwatch-perf.txt && gapwatch advise gapwatch-perf.txt"),
    _RecordingTool("hpcrun", True, True,
          "{launch}hpcrun -o gapwatch-hpcrun {program} && hpcprof -o gapwatch-hpctoolkit gapwatch-hpcrun && "
          "gapwatch advise gapwatch-hpctoolkit"),
    _RecordingTool("valgrind", True, True,
          "{launch}valgrind --tool=callgrind {program} && gapwatch advise ."),
    _RecordingTool("eztrace", False, True,
    "eztrace -o gapwatch-trace -t posixio {program} && gapwatch advise gapwatch-trace"),
    _RecordingTool("darshan-parser", True, True,
          "DARSHAN_ENABLE_NONMPI=1 DARSHAN_LOGPATH=$PWD LD_PRELOAD=libdarshan.so {launch}{program}"),
    _RecordingTool("scorep", True, True,
          "scorep mpicc SOURCES -o PROGRAM && SCOREP_ENABLE_TRACING=true {launch}./PROGRAM"),
)  # fmt: skip
#: Words of commands that have to be on the machine.
_KNOWN: Final = frozenset(
    {*(tool.name for tool in _TOOLS), "likwid-perfctr", "llvm-mca", "mpicc", "mpicxx", "mpif90", "mpirun", "gcc",
     "g++", "gfortran"}
)  # fmt: skip
_FILES_FIRST: Final = ("eztrace", "darshan-parser")
_RECORD: Final = "gapwatch run -- "
_NOTHING: Final = "gapwatch run --interval 10ms -- {command}"


def is_usable_here(name: str) -> bool:
    """Return whether a tool is on this machine, and may be used."""
    return shutil.which(name) is not None and (name != "perf" or _can_sample())


def _can_sample() -> bool:
    try:
        limit = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False
    return os.geteuid() == 0 or limit <= _OWN_PROCESSES


def select_next_command(run: SampledRun, found: ToolCheck = is_usable_here, *, recordable: bool = False) -> str:
    """Return the command that would show most of what this run could not, with a tool that is here.

    That is our own recorder where the program can be recorded.
    """
    if recordable:
        return f"{_RECORD}{escape_undecodable(shlex.join(run.recording.arguments))}"
    ranks = any(lane.process.rank is not None for lane in run.lanes)
    launch, program = split_command(run)
    if program is None:
        launch, program = f"mpirun -n {len({lane.rank for lane in run.lanes})} " if ranks else "", "./PROGRAM"
    fitting = [tool for tool in _TOOLS if (tool.of_ranks if ranks else tool.of_one) and found(tool.name)]
    in_files = sum(sum(one.io_s.values()) for one in run.thread_times)
    if in_files > 0.1 * sum(one.life_s for one in run.thread_times):
        fitting.sort(key=lambda tool: tool.name not in _FILES_FIRST)
    if not fitting:
        return _NOTHING.format(command=escape_undecodable(shlex.join(run.recording.arguments)))
    return fitting[0].command.format(launch=launch, program=program)


def split_command(run: SampledRun) -> tuple[str, str | None]:
    """Return what starts the program's ranks, with a space behind, and the program itself, for a shell.

    The program is None where the command line does not name it, as where a script starts it.
    """
    arguments, names = run.recording.arguments, {lane.process.name for lane in run.lanes}
    for at, argument in enumerate(arguments):
        if escape_undecodable(PurePath(argument).name) in names:
            start = at - 1 if at and is_interpreter(arguments[at - 1]) else at
            launch = escape_undecodable(shlex.join(arguments[:start]))
            return (f"{launch} " if launch else ""), escape_undecodable(shlex.join(arguments[start:]))
    return "", None


def localize_advice(
    advice: Advice, run: SampledRun, found: ToolCheck = is_usable_here, *, recordable: bool = False
) -> Advice:
    """Return the advice with commands that work on this machine, for this program.

    A command whose tool is missing gives way to the one that shows most with the tools that are here; those that can
    be run as they stand come first.
    """
    better = select_next_command(run, found, recordable=recordable)
    launch, program = split_command(run)

    def localize_command(command: str) -> str:
        if not _is_available(command, found) or (command.startswith("gapwatch run") and not recordable):
            return better
        if program is not None and "SOURCE" not in command:
            command = command.replace("./PROGRAM", program)
            command = _LAUNCH.sub(lambda _: launch, command)
        return command

    def localize_note(note: Note) -> Note:
        runs = note.collect is not None and _find_tool(note.collect) is not None
        return replace(note, collect=localize_command(note.collect)) if note.collect is not None and runs else note

    wanted = Need("calls, functions and phases", better)
    needs = sorted(advice.needs, key=lambda need: _is_unready(need, found))
    return replace(
        advice,
        needs=(wanted, *(replace(need, command=localize_command(need.command)) for need in needs)),
        bounds=tuple(
            replace(bound, collect="; ".join(dict.fromkeys(map(localize_command, bound.collect.split("; ")))))
            if bound.collect
            else bound
            for bound in advice.bounds
        ),
        grade=replace(advice.grade, notes=tuple(map(localize_note, advice.grade.notes))),
    )


def _is_unready(need: Need, found: ToolCheck) -> bool:
    """Return whether the command of a need can't be run as it stands: its tool is missing, or has to compile first."""
    return not _is_available(need.command, found) or "SOURCE" in need.command


def _split_words(command: str) -> list[str]:
    return [word for word in re.split(r"[\s;&|]+", command) if word and not _ASSIGNMENT.fullmatch(word)]


def _find_tool(command: str) -> str | None:
    return next((word for word in _split_words(command) if word in _KNOWN), None)


def _is_available(command: str, found: ToolCheck) -> bool:
    """Return whether every tool that a command names is here."""
    return all(found(word) for word in _split_words(command) if word in _KNOWN)
