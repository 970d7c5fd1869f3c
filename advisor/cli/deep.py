"""``gapwatch run --deep``: after the ordinary run, the passes over the program that would change the advice most."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from advisor.cli import output, progress, user_folders
from advisor.cli.next_commands import program_place
from advisor.collect.passes import conclusions, planning, programs
from advisor.collect.passes.calls import count_calls, find_difference
from advisor.model.errors import AdvisorError
from advisor.model.records import Advice, Note, Profile
from advisor.model.units import format_seconds
from advisor.support.extras import install_line
from advisor.support.launchers import find_rank_option
from advisor.trace.recordings.passes import Conclusions, write_conclusions

if TYPE_CHECKING:
    from advisor.cli.services import HostServices
    from advisor.collect.passes.planning import Pass

#: Where the ordinary run lies in the directory of all recordings, and the other runs in it.
RECORDING: Final = "recording"
#: A pass may take so many times as long as estimated.
_PATIENCE: Final = 5.0
_LEAST_PATIENCE_S: Final = 120.0
#: Numbers that the source computes and those that the compiled code does differ by less, for the same work.
_UNLIKE: Final = 3.0
_LINES_SHOWN: Final = 2


@dataclass(frozen=True, slots=True)
class DeepRun:
    """A program that was recorded: its command, the directory of all recordings, and what to advise with."""

    words: tuple[str, ...]
    folder: Path
    advice: Advice
    services: HostServices
    limit_B: int
    mpicc: str | None = None
    machine: str | None = None
    skipped: tuple[str, ...] = ()
    agreed: bool = False
    notes: list[Note] = field(default_factory=list)
    unrepeated_s: list[float] = field(default_factory=list)

    @property
    def recording(self) -> Path:
        """The recording of the ordinary run."""
        return self.folder / RECORDING

    @property
    def profile(self) -> Profile:
        """The ordinary run."""
        return self.advice.profile


def make_passes(run: DeepRun) -> None:
    """Show the plan, make the passes that nobody refuses, and keep what they tell beside the ordinary run."""
    place = program_place(run.words, run.profile.program)
    passes = planning.plan_passes(run.advice, _needs(run, place))
    agreed = run.agreed
    output.write_messages(*_describe_plan(passes, run))
    skipped = (*run.skipped, *([] if agreed else _ask()))
    for one in planning.select_passes(passes, skipped, agreed=agreed):
        with progress.show_progress(f"pass {one.name}, about {format_seconds(one.seconds)}"):
            try:
                _PASSES[one.name](run, one, place or 0)
            except AdvisorError as error:
                run.notes.append(Note(f"pass {one.name}", f"the pass {one.name} brought nothing: {error}"))
                output.write_messages(run.notes[-1].text)
    write_conclusions(run.recording, Conclusions(tuple(run.notes), next(iter(run.unrepeated_s), None)))


def _describe_plan(passes: Sequence[Pass], run: DeepRun) -> list[str]:
    """Return the plan: what each pass tells, what it takes, and why some are left out."""
    lines = ["Further passes over the program (--skip PASS skips one, --yes runs all without asking):"]
    width = max(len(one.name) for one in passes)
    for one in passes:
        left_out = planning.explain_skipped_pass(one, run.skipped, agreed=run.agreed)
        what = f"about {format_seconds(one.seconds)}" if left_out is None else f"left out: {left_out}"
        lines.append(f"  {one.name:{width}}  {one.tells}, {one.worth:.0%} of the run; {what}")
    return lines


def _ask() -> list[str]:
    """Ask on a terminal which passes to leave out; elsewhere nobody can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return []
    sys.stderr.write("Enter makes them; names leave these out, 'none' all: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().split()
    return list(planning.PASSES) if answer == ["none"] else answer


def _needs(run: DeepRun, place: int | None) -> planning.PassNeeds:
    """Return what each pass lacks here."""
    lacking: dict[str, str] = {}
    profile = run.profile
    extra = f"needs {install_line('processor')}" if importlib.util.find_spec("capstone") is None else None
    if extra:
        lacking |= dict.fromkeys((planning.MACHINE, planning.INSTRUCTIONS, planning.SOURCE), extra)
    if place is None:
        lacking |= dict.fromkeys((planning.INSTRUCTIONS, planning.SOURCE), f"{profile.program} is started by a script")
    elif profile.executable is None:
        lacking |= dict.fromkeys((planning.INSTRUCTIONS, planning.SOURCE), "an interpreter runs the program")
    elif not programs.find_sources(Path(profile.executable)):
        lacking[planning.SOURCE] = "its sources are not found (compile with -g)"
    if shutil.which("valgrind") is None:
        lacking[planning.INSTRUCTIONS] = "needs valgrind (apt install valgrind)"
    if profile.ranks > 1 and (place is None or find_rank_option(run.words, place) is None):
        lacking[planning.ONE] = "the launcher's number of ranks is not seen in the command"
    return planning.PassNeeds(lacking, run.machine is not None or user_folders.find_probed_model() is not None)


def _probe_machine(run: DeepRun, one: Pass, place: int) -> None:
    folder = run.services.user_folder("config") / "machine_models"
    run.services.find_service("machine_probe")("probed", folder, run.services.show_progress)


def _count_instructions(run: DeepRun, one: Pass, place: int) -> None:
    """Run the program under callgrind, see whether it did the same, and write what its code takes."""
    folder = run.recording / one.name
    folder.mkdir()
    mpi = run.profile.parameters.get("MPI library", "") if "mpi" in run.profile.paradigms else ""
    words = programs.callgrind_command(run.words, place, folder, str(mpi))
    quiet = {"OMP_WAIT_POLICY": "passive"}
    _run_pass(run, one, words, quiet)
    _refuse_other_work(run, folder)
    machine = run.services.load_machine(run.machine)
    target = run.folder / f"{run.profile.program}.operations.json"
    run.services.find_service("compiled_counts")(folder, machine, target)


def _refuse_other_work(run: DeepRun, folder: Path) -> None:
    """Raise ``AdvisorError`` where the program called MPI otherwise than in the ordinary run."""
    counted: Counter[str] = Counter()
    for file in sorted(folder.glob("callgrind.out.*")):
        counted.update(count_calls(file))
    calls = run.profile.counts.get("calls")
    if calls is None:
        return
    recorded: Counter[str] = Counter()
    for number, region in enumerate(run.profile.regions):
        recorded[region.name] += int(calls[number].sum())
    names = [name for name in recorded if name.startswith("MPI_")]
    difference = find_difference(recorded, counted, names)
    if difference:
        raise AdvisorError(f"its work contradicts that of the ordinary run, so its counts are left out: {difference}")


def _count_source(run: DeepRun, one: Pass, place: int) -> None:
    program = Path(run.profile.executable or "")
    sources = programs.find_sources(program)
    mpicc = _mpi_compiler(run)
    threaded = len(run.profile.processors) > run.profile.ranks
    plan = programs.plan_counting(run.words, place, program, sources, mpicc, threaded)
    target = run.folder / f"{run.profile.program}.source.operations.json"
    run.services.find_service("source_counts")(
        list(sources), plan.command, plan.build, plan.root, run.profile.program, target
    )
    _refuse_other_size(run, target)


def _mpi_compiler(run: DeepRun) -> str | None:
    from advisor.collect.recorder.building import find_compiler

    compiler = find_compiler(run.words, run.mpicc)
    return compiler.command if compiler else None


def _refuse_other_size(run: DeepRun, target: Path) -> None:
    """Remove the counts of the source, and raise, where the compiled program computed far more or fewer numbers."""
    compiled = run.folder / f"{run.profile.program}.operations.json"
    if not compiled.exists():
        return
    source = run.services.read(target)
    files = {PurePath(region.file).name for region in source.regions if region.file}
    flops = [
        _sum_flops(source, "source_ops.fp_", files),
        _sum_flops(run.services.read(compiled), "compiled_numbers.fp_", files),
    ]
    if min(flops) > 0 and max(flops) > _UNLIKE * min(flops):
        target.unlink()
        raise AdvisorError(
            f"its work contradicts that of the pass instructions, so its counts are left out: {flops[0]:.3g} "
            f"floating-point operations in the source, {flops[1]:.3g} in the compiled program"
        )


def _sum_flops(counted: Profile, prefix: str, files: set[str]) -> float:
    """Return the floating-point operations in functions of some source files; libraries compute others."""
    rows = [n for n, region in enumerate(counted.regions) if region.file and PurePath(region.file).name in files]
    return sum(float(table[rows].sum()) for name, table in counted.counts.items() if name.startswith(prefix))


def _run_twice(run: DeepRun, one: Pass, place: int) -> None:
    second = _record(run, one, list(run.words), {})
    note, unrepeated_s = conclusions.compare_runs(run.profile, second)
    run.notes.append(note)
    run.unrepeated_s.extend([] if unrepeated_s is None else [unrepeated_s])


def _run_alone(run: DeepRun, one: Pass, place: int) -> None:
    option = find_rank_option(run.words, place) if run.profile.ranks > 1 else None
    words = option.replace_ranks(run.words, 1) if option else list(run.words)
    alone = _record(run, one, words, {"OMP_NUM_THREADS": "1"})
    if len(alone.processors) != 1:
        raise AdvisorError(f"it ran on {len(alone.processors)} processors again")
    run.notes.append(conclusions.compare_with_single(run.profile, alone))


def _record(run: DeepRun, one: Pass, words: list[str], variables: dict[str, str]) -> Profile:
    """Return the run of a command under the recorder, kept in the recording of the ordinary one."""
    from advisor.collect.recorder.session import finish_session, prepare_session

    session = prepare_session(words, run.recording / one.name, run.limit_B, run.mpicc)
    _run_pass(run, one, list(session.command), {**session.variables, **variables})
    missing = finish_session(session)
    if missing:
        raise AdvisorError(missing)
    return run.services.read(session.folder)


def _run_pass(run: DeepRun, one: Pass, words: list[str], variables: dict[str, str]) -> None:
    """Run a command; raises ``AdvisorError`` where it does not end as the ordinary run did."""
    log = run.recording / f"{one.name}.log"
    limit_s = max(_PATIENCE * one.seconds, _LEAST_PATIENCE_S)
    result = programs.rerun_program(words, log, variables, limit_s)
    if result.code:
        how = f"signal {-result.code}" if result.code < 0 else f"exit status {result.code}"
        said = "; ".join(result.said.splitlines()[-_LINES_SHOWN:])
        late = f" after {format_seconds(result.wall_s)}" if result.wall_s > limit_s else ""
        raise AdvisorError(f"the program ended with {how}{late} ({said or 'it wrote nothing'}); all it wrote: {log}")


_PASSES: Final = {
    planning.AGAIN: _run_twice,
    planning.MACHINE: _probe_machine,
    planning.INSTRUCTIONS: _count_instructions,
    planning.SOURCE: _count_source,
    planning.ONE: _run_alone,
}
