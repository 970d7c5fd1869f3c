"""Runs of settings: each checked, written down before the next, and taken from there when the work is resumed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.collect import builds
from advisor.collect.binaries.executables import find_program
from advisor.experiments.build_trees import BuildTree, build_tree, locate_tree
from advisor.experiments.processes import read_tail, run_timed
from advisor.model.errors import AdvisorError, InputError

if TYPE_CHECKING:
    from advisor.experiments.settings import Setting
    from advisor.experiments.sources import SourceFiles

#: Numbers in output, whose last digits may differ between correct runs.
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?")
_LOG: Final = "runs.jsonl"
#: Beside a tree that was built lies a file with its flags.
_BUILT: Final = ".built"
#: Beginnings of variables on which run times depend.
_VARIABLES: Final = (
    "OMP_", "GOMP_", "KMP_", "OMPI_", "PMIX_", "UCX_", "MPICH_", "MPIR_", "I_MPI_", "GLIBC_TUNABLES", "MALLOC_",
    "LD_PRELOAD", "LD_LIBRARY_PATH", "GFORTRAN_", "CUDA_", "HIP_", "ROCR_", "GPU_", "SLURM_CPU_BIND", "MKL_",
    "OPENBLAS_",
)  # fmt: skip
#: Variables that makefiles and build systems read.
_BUILD_VARIABLES: Final = (
    "CC", "CXX", "FC", "F77", "MPICC", "MPICXX", "MPIFC", "CFLAGS", "CXXFLAGS", "FFLAGS", "FCFLAGS", "CPPFLAGS",
    "LDFLAGS", "LDLIBS",
)  # fmt: skip
#: The file of results of the first run, and the numbers of the lines that the second run wrote otherwise.
_REFERENCE: Final = "reference"
_VARYING: Final = "varying.json"
#: The longest that a build, and a check, may take (seconds).
_BUILD_S: Final = 900.0
_CHECK_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Check:
    """How results are checked: a command that must succeed, a file that must be as the first run wrote it, or neither.

    ``tolerance`` is how much numbers in the file may differ, relative to the larger. Lines that differ between the
    first two runs of the command as it is, such as those of a timer, are not compared.
    """

    command: str | None = None
    file: Path | None = None
    tolerance: float = 1e-9


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a setting: seconds, and why it counts as broken, None where all is well.

    ``lines`` are those of the results that differ from the start's; they may turn out to differ from run to run.
    ``timed_out`` says that the run was ended at its limit.
    """

    setting: str
    seconds: float
    failure: str | None = None
    lines: tuple[int, ...] = ()
    timed_out: bool = False


def identify_work(words: Sequence[str], folder: Path, *options: object) -> str:
    """Return a digest of what runs have to have in common: command, program, sources, options and environment."""
    program = find_program(words, folder)
    content = hashlib.sha256(program.read_bytes()).hexdigest() if program is not None else ""
    variables = sorted(
        item for item in os.environ.items() if item[0].startswith(_VARIABLES) or item[0] in _BUILD_VARIABLES
    )
    stated = (tuple(words), str(folder), builds.identify_build(folder), content, options, variables)
    return hashlib.sha256(repr(stated).encode("utf-8", "surrogateescape")).hexdigest()


class TrialRunner:
    """Runs settings of one command; what was run before in ``session`` is not run again.

    ``session`` is a directory for build trees, outputs and the list of runs; ``runs_made`` counts those made now.
    ``sources`` are the files that builds read, where there are builds.
    """

    def __init__(
        self, words: tuple[str, ...], folder: Path, session: Path, build: str | None, check: Check,
        sources: SourceFiles | None = None,
    ) -> None:  # fmt: skip
        self.words, self.folder, self.session, self._build, self._check = words, folder, session, build, check
        self._sources = sources
        self.runs_made = 0
        session.mkdir(parents=True, exist_ok=True)
        self._known = self._read_log()
        self._used: Counter[str] = Counter()
        self._trees: dict[str, BuildTree] = {}

    def run_trial(self, setting: Setting, limit_s: float) -> Trial:
        """Return the next run of a setting, from the list where it was made before; a failure is part of the result.

        A run that takes longer than ``limit_s`` is ended, and counts as broken. One of the command as it is, which only
        the end of the budget cuts short, is not written down: a larger budget makes it anew.
        """
        number = self._used[setting.name]
        self._used[setting.name] += 1
        before = self._known.get(setting.name, [])
        if number < len(before):
            return before[number]
        trial = self._run(setting, limit_s)
        self.runs_made += 1
        if trial.timed_out and setting.is_start:
            return trial
        with (self.session / _LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps({name: getattr(trial, name) for name in Trial.__slots__}) + "\n")
        return trial

    def find_tree(self, setting: Setting, limit_s: float) -> BuildTree:
        """Return where the command of a setting runs, built first where it has flags of its own; ``AdvisorError``.

        What a session built is there when it is resumed: it ends when its sources change.
        """
        if setting.flags is None:
            return BuildTree(self.words, self.folder)
        if setting.flags not in self._trees:
            self._trees[setting.flags] = self._find_built(setting.flags) or self._build_tree(setting.flags, limit_s)
        return self._trees[setting.flags]

    def _find_built(self, flags: str) -> BuildTree | None:
        for mark in self.session.glob(f"tree-*{_BUILT}"):
            if mark.with_suffix("").is_dir() and mark.read_text("utf-8") == flags:
                return locate_tree(self.words, self.folder, mark.with_suffix(""), self._build)
        return None

    def _build_tree(self, flags: str, limit_s: float) -> BuildTree:
        target = self.session / f"tree-{len(list(self.session.glob('tree-*[0-9]')))}"
        tree = build_tree(self.words, self.folder, target, flags, self._build, limit_s)
        target.with_suffix(_BUILT).write_text(flags, "utf-8")
        return tree

    def _run(self, setting: Setting, limit_s: float) -> Trial:
        try:
            tree = self.find_tree(setting, max(limit_s, _BUILD_S))
        except AdvisorError as error:
            return Trial(setting.name, 0.0, f"does not build: {error}")
        output = self.session / "output"
        with self._sources.watch_run() if self._sources is not None else nullcontext():
            run = run_timed(setting.change_command(tree.words), tree.folder, output, limit_s, setting.variables)
        if run.status is None:
            why = "did not end within the budget" if setting.is_start else f"ended after {run.seconds:.3g} s, too slow"
            return Trial(setting.name, run.seconds, why, timed_out=True)
        if run.status:
            return Trial(setting.name, run.seconds, f"exit status {run.status}: {find_last_words(read_tail(output))}")
        try:
            failure, lines = self._check_command(tree, output), self._check_file(tree, output, setting)
        except AdvisorError as error:
            return Trial(setting.name, run.seconds, str(error))
        wrong = f"wrong result: line {lines[0]} differs" if lines else None
        return Trial(setting.name, run.seconds, failure or wrong, () if failure else lines)

    def _check_command(self, tree: BuildTree, output: Path) -> str | None:
        """Return what the user's check says is wrong with a run, None where nothing is or there is no check."""
        check = self._check
        if check.command is not None:
            variables = {"GAPWATCH_OUTPUT": str(output)}
            log = self.session / "check.log"
            run = run_timed(shlex.split(check.command), tree.folder, log, _CHECK_S, variables)
            if run.status != 0:
                return f"wrong result: the check ended with status {run.status}"
        return None

    def _check_file(self, tree: BuildTree, output: Path, setting: Setting) -> tuple[int, ...]:
        """Return the lines of the checked file that differ from those of the first run, and not from run to run.

        Lines that tell the flags of the build, as benchmarks write them, are no results.
        A run of the command as it is tells more lines that do. Raises ``AdvisorError`` where nothing can be compared.
        """
        check = self._check
        if check.file is None:
            return ()
        file = output if str(check.file) == "-" else tree.folder / check.file
        try:
            text = file.read_text("utf-8", "replace")
        except OSError as error:
            raise AdvisorError(f"wrong result: {file.name}: {error.strerror}") from error
        reference = self.session / _REFERENCE
        if not reference.exists():
            reference.write_text(text, "utf-8")
            return ()
        expected = reference.read_text("utf-8")
        varying = set(self.varying_lines)
        told = {
            number for number, line in enumerate(text.splitlines(), start=1) if setting.flags and setting.flags in line
        }
        different = tuple(
            line for line in find_different_lines(expected, text, check.tolerance) if line not in varying | told
        )
        if not different or not setting.is_start:
            return different
        varying |= set(different)
        if 2 * len(varying) > len(expected.splitlines()):
            raise AdvisorError("two runs of the command as it is wrote different results; check them by --check")
        (self.session / _VARYING).write_text(json.dumps(sorted(varying)), "utf-8")
        return ()

    @property
    def varying_lines(self) -> list[int]:
        """The lines of the checked file that differ from run to run, and are not compared."""
        varying = self.session / _VARYING
        lines: list[int] = json.loads(varying.read_text("utf-8")) if varying.exists() else []
        return lines

    def _read_log(self) -> dict[str, list[Trial]]:
        found: dict[str, list[Trial]] = {}
        file = self.session / _LOG
        if not file.exists():
            return found
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
            try:
                stated = json.loads(line)
                trial = Trial(**stated | {"lines": tuple(stated.get("lines", ()))})
            except (ValueError, TypeError) as error:
                if number == len(file.read_text("utf-8").splitlines()):
                    continue  # the process was ended while it wrote
                raise InputError(file, "is not a list of runs", f"{number}") from error
            found.setdefault(trial.setting, []).append(trial)
        return found


def _parse_numbers(line: str) -> list[float]:
    """Return the numbers of a line, Fortran's ``1.0D0`` too."""
    return [float(one.replace("d", "e").replace("D", "e")) for one in _NUMBER.findall(line)]


def find_different_lines(expected: str, found: str, tolerance: float) -> list[int]:
    """Return the lines of two results that differ, from 1: text has to be alike, numbers within a relative tolerance.

    Raises ``AdvisorError`` for another number of lines.
    """
    if len(expected.splitlines()) != len(found.splitlines()):
        raise AdvisorError("wrong result: another number of lines")
    pairs = zip(expected.splitlines(), found.splitlines(), strict=True)
    return [number for number, pair in enumerate(pairs, start=1) if not _is_close(*pair, tolerance)]


def _is_close(first: str, second: str, tolerance: float) -> bool:
    if first == second:
        return True
    if _NUMBER.sub("#", first).split() != _NUMBER.sub("#", second).split():
        return False
    pairs = zip(_parse_numbers(first), _parse_numbers(second), strict=False)
    return all(abs(one - other) <= tolerance * max(abs(one), abs(other)) for one, other in pairs)


def find_last_words(text: str) -> str:
    """Return the last line that says anything; rulers of dashes do not."""
    return next((line for line in reversed(text.splitlines()) if any(map(str.isalnum, line))), "")
