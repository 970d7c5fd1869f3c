"""One run under the recorder: what is preloaded, where it writes, and which variables say so."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.collect.batch_jobs import find_batch_job
from advisor.collect.binaries.addresses import resolve_addresses
from advisor.collect.binaries.executables import keep_program
from advisor.collect.recorder.building import build_recorder, find_compiler, words_of_scripts
from advisor.model.errors import AdvisorError, InputError
from advisor.support.launchers import find_launched_program, is_launcher
from advisor.trace.recordings.addresses import locate_addresses, sorted_objects
from advisor.trace.recordings.command import current_command, write_command
from advisor.trace.recordings.families import complete_children, find_workers, read_processes
from advisor.trace.recordings.layout import ADDRESS_MASK, CALL, FOLDED, map_records, map_samples
from advisor.trace.recordings.places import CodePlace, Places, write_places
from advisor.trace.recordings.processes import Process, process_files, read_process

if TYPE_CHECKING:
    import numpy.typing as npt


#: The variables by which the recorder is told what to do (docs/recording.md).
FOLDER, LIMIT, RATE = "GAPWATCH_RECORDING", "GAPWATCH_RECORDING_LIMIT", "GAPWATCH_RECORDING_SAMPLES"
#: Where Open MPI is told which variables to hand on to other nodes; it minds the case of its own variables.
_HANDED_ON: Final = "OMPI_MCA_mca_base_env_list"
#: Its option that does the same for one variable; it refuses commands that use both.
_HANDS_ON: Final = "-x"
#: Bytes that a process may write unless the user says otherwise: 16 million records.
DEFAULT_LIMIT_B: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Session:
    """A run of a ``command`` to be recorded into ``folder``, with the ``variables`` that the program needs for that."""

    folder: Path
    variables: Mapping[str, str]
    command: Sequence[str]


def prepare_session(
    arguments: Sequence[str], folder: Path, limit_B: int = DEFAULT_LIMIT_B, mpicc: str | None = None
) -> Session:
    """Return what records a program's run into a new ``folder``; raises ``AdvisorError`` where that is not possible.

    The recorder is built for the program's MPI library unless that was done before, which takes some seconds: the
    library of ``mpicc``, or as ``find_compiler`` tells from the command.
    """
    library = build_recorder(find_compiler(arguments, mpicc))
    try:
        folder.mkdir(parents=True)
        job = find_batch_job()
        write_command(folder, replace(current_command(arguments), job=job.number if job else ""))
    except OSError as error:
        raise AdvisorError(f"can't write {folder}: {error.strerror}") from error
    variables = {"LD_PRELOAD": " ".join((str(library), os.environ.get("LD_PRELOAD", ""))).strip()}
    variables |= {FOLDER: str(folder.resolve()), LIMIT: str(limit_B)}
    names = [*variables, *(name for name in (RATE,) if name in os.environ)]
    command, at = list(arguments), _find_hand_on(arguments)
    if at is not None:
        command[at:at] = [word for name in names for word in (_HANDS_ON, name)]
    elif _find_hand_on(list(words_of_scripts(arguments))) is None:
        variables[_HANDED_ON] = ";".join((*filter(None, (os.environ.get(_HANDED_ON),)), *names))
    return Session(folder, variables, command)


def _find_hand_on(words: Sequence[str]) -> int | None:
    """Return the place of a launcher's option that hands a variable on, None where no launcher has one."""
    for at in (place for place, word in enumerate(words) if is_launcher(word)):
        options = words[at : at + (find_launched_program(words[at:]) or 0)]
        if _HANDS_ON in options:
            return at + options.index(_HANDS_ON)
    return None


def finish_session(session: Session) -> str | None:
    """Name what was recorded; return None if that is a run, else why it is none, and remove what is there."""
    processes = []
    for file in process_files(session.folder):
        try:
            processes.append(read_process(file))
        except InputError:
            continue
    if not any(process.threads for process in processes):
        shutil.rmtree(session.folder, ignore_errors=True)
        return (
            "nothing was recorded: the program may be linked statically, run with other rights, or never have come to "
            "MPI_Init; where the command does not show that it starts MPI, as of make, add --mpi mpicc"
        )
    ranked = any(process.rank is not None for process in processes)
    processes = complete_children(processes)
    if ranked:
        ranks = [process for process in processes if process.rank is not None]
        kept = {id(one) for rank in ranks for one in (rank, *find_workers(rank, processes))}
        for process in processes:
            if id(process) not in kept:
                _remove(process.stem)
    _keep_programs(processes, session.folder)
    name_addresses(session.folder)
    return None


def _keep_programs(processes: Sequence[Process], folder: Path) -> None:
    """Keep the files of the ranks' programs, without ranks that of the busiest process: a script starts many others.

    Nobody builds the interpreter of Python anew.
    """
    ranked = [one for one in processes if one.rank is not None]
    for process in ranked or [max(processes, key=lambda one: one.used_s)]:
        if not (process.interpreter and Path(process.program).name.startswith("python")):
            keep_program(Path(process.program), folder)


def _remove(stem: Path) -> None:
    for file in stem.parent.glob(f"{stem.name}.*"):
        file.unlink(missing_ok=True)


def name_addresses(folder: Path) -> None:
    """Resolve all addresses of a recording and keep what they stand for beside it.

    Objects that can't be read, or tell nothing, are left out: their addresses stay without names.
    """
    wanted: dict[str, set[int]] = defaultdict(set)
    for process in read_processes(folder):
        paths = [one.path for one in sorted_objects(process)]
        for address in _addresses(process):
            located = locate_addresses(process, address)
            for number, offset in located[located[:, 0] >= 0].tolist():
                wanted[paths[number]].add(offset)
    places: dict[tuple[str, int], tuple[CodePlace, ...]] = {}
    for path, offsets in wanted.items():
        places |= _resolve(path, sorted(offsets))
    write_places(folder, places)


def _addresses(process: Process) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the addresses of a process: sampled ones as they are, callers lowered by one, into the call."""
    for number in process.threads:
        records = map_records(process.thread_file(number, "records"))
        callers = np.unique(records["caller"][np.isin(records["kind"], (CALL, FOLDED))] & ADDRESS_MASK)
        yield callers[callers > 0] - np.uint64(1)
        samples = map_samples(process.thread_file(number, "samples"))
        yield np.unique(samples["address"])
        behind: npt.NDArray[Any] = np.unique(samples["callers"])
        yield behind[behind > 0] - np.uint64(1)


def _resolve(path: str, offsets: list[int]) -> Places:
    try:
        found = resolve_addresses(Path(path), offsets, kind="file offset")
    except (InputError, OSError):
        return {}
    named = {}
    for offset, place in zip(offsets, found.places, strict=True):
        frames = tuple(CodePlace(frame.function, frame.file, frame.line) for frame in place.frames if frame.function)
        if frames:
            named[path, offset] = frames
    return named
