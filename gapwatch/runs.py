"""Runs of programs with the advice on them: what ``gapwatch.load`` returns, and how two of them compare."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from advisor import pipeline
from advisor.cli import option_types, user_folders
from advisor.cli.next_commands import fill_commands
from advisor.model.errors import UsageError
from gapwatch.arguments import PathLike, check_option

if TYPE_CHECKING:
    import hatchet
    from matplotlib.figure import Figure

    from advisor.advice.explaining import Explanation
    from advisor.analysis.comparison import Comparison
    from advisor.extension.host import PluginHost
    from advisor.history.history_queries import StoredHistory
    from advisor.model.recommendations import Recommendation, Total
    from advisor.model.records import Advice, Bound, Efficiency, Finding, Gap, Grade, Profile, Verdict
    from gapwatch.histories import History
    from gapwatch.tables import Backend, Columns, TableName

Order = Literal["seconds", "steps"]


class Run:
    """One run of a program: its profile, and the advice on it with all that the advice is made of.

    Made by ``load``, ``load_runs`` and ``record``; never changes. It can be sent to another process (``pickle``), where
    ``explain`` reads the files again.
    """

    def __init__(self, study: pipeline.Study, paths: Sequence[Path], options: pipeline.Options) -> None:
        self._study, self._options = study, options
        self._has_matches = True
        self.paths = tuple(paths)
        self._advice = fill_commands(study.advice, paths)

    @property
    def files(self) -> tuple[Path, ...]:
        """What the run was read from."""
        return self._study.files

    @property
    def program(self) -> str:
        """The name of the program."""
        return self.profile.program

    @property
    def profile(self) -> Profile:
        """What was measured: processors, regions, phases, and arrays of seconds (region, processor, iteration)."""
        return self._study.advice.profile

    @property
    def actual_s(self) -> float:
        """The wall time of the run in seconds, NaN where it was not recorded."""
        return self.profile.actual_s

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Lower bounds on the run time in seconds, the lowest first; None where one is not available."""
        return self._advice.bounds

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The differences between known bounds in seconds, each with regions, processors, iterations and causes."""
        return self._advice.gaps

    @property
    def efficiencies(self) -> tuple[Efficiency, ...]:
        """The POP efficiencies, 0 to 1; None where the data do not allow one."""
        return self._advice.efficiencies

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What plugins noticed."""
        return self._advice.findings

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """What to do next, ranked."""
        return self._advice.recommendations

    @property
    def total(self) -> Total:
        """What all recommendations together can win, in seconds; overlapping gains are counted once."""
        return self._advice.total

    @property
    def grade(self) -> Grade:
        """How reliable the profile is, A to F, with the reasons."""
        return self._advice.grade

    @property
    def verdict(self) -> Verdict:
        """``advice``, ``nothing significant`` or ``insufficient evidence``."""
        return self._advice.verdict

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read or used, in words."""
        return self._advice.problems

    @property
    def earlier(self) -> tuple[Advice, ...]:
        """The advice on earlier runs of the program that is known, the oldest first."""
        return self._study.earlier.earlier_advice()

    def advise(self, *, machine: str | None = None, order: Order | None = None, cores: int | None = None) -> Advice:
        """Return the advice; with options that differ from those of ``load`` the run is read and studied again.

        Raises ``AdvisorError`` where a file is gone, a machine model is unknown, or an option is wrong.
        """
        changed: dict[str, Any] = {
            "machine": user_folders.resolve_machine(machine),
            "order": None if order is None else _check_order(order),
            "cores": _check_cores(cores),
        }
        options = replace(self._options, **{name: value for name, value in changed.items() if value is not None})
        if options == self._options:
            return self._advice
        study = pipeline.study_newest(self.paths, options, user_folders.load_host())
        return fill_commands(study.advice, self.paths)

    def explain(self, what: str | None = None) -> Explanation:
        """Return how each number came about, or those of one action, gap or bound: formula, inputs, thresholds, rules.

        Raises ``UsageError`` for what the run does not show.
        """
        from advisor.advice.explaining import explain_study

        if self._has_matches:
            return explain_study(self._study, what)
        return explain_study(pipeline.study_newest(self.paths, self._options, user_folders.load_host()), what)

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: not the rules and facts of plugins, which are code."""
        study = replace(self._study, matches=None, ranking=pipeline.NOTHING)
        return {**vars(self), "_study": study, "_has_matches": False}

    def to_dict(self) -> dict[str, Any]:
        """Return the document ``gapwatch/advice/1`` as plain data, as ``gapwatch advise --format json`` writes it."""
        from advisor.output.advice_document import build_advice_document

        return build_advice_document(self._advice)

    def to_text(self, *, width: int = 100, verbose: bool = False) -> str:
        """Return the screen of ``gapwatch advise`` without colors."""
        from advisor.output.page import Page
        from advisor.output.terminal import render_screen

        return render_screen(self._advice, Page(width=width, encoding="utf-8", color=False, verbose=verbose))

    def to_html(self) -> str:
        """Return the page of ``gapwatch advise --format html``; raises ``AdvisorError`` without the extra ``html``."""
        from advisor.output.html.advice_page import render_advice_page

        return render_advice_page(self._advice, self.earlier)

    def to_markdown(self) -> str:
        """Return the comment on a change as ``gapwatch advise --format markdown`` writes it."""
        from advisor.advice.earlier_runs import find_base
        from advisor.output.markdown import render_comment

        base = find_base(self._advice, self.earlier)
        return render_comment(self._advice, base.change if base else None)

    def to_sarif(self, source_root: PathLike | None = None) -> dict[str, Any]:
        """Return the SARIF log of ``gapwatch advise --format sarif`` as plain data.

        Its places are relative to the checkout at ``source_root``, where that is given.
        """
        from advisor.output.sarif import render_sarif
        from advisor.output.source_tree import open_source_tree

        tree = open_source_tree(None if source_root is None else Path(source_root))
        document: dict[str, Any] = json.loads(render_sarif(self._advice, tree))
        return document

    def to_columns(self, table: TableName = "gaps") -> Columns:
        """Return a table as lists by column name, which every library of data frames takes; None is unknown."""
        from gapwatch.tables import build_columns

        return build_columns(self._advice, table)

    def to_dataframe(self, table: TableName = "gaps", *, backend: Backend = "pandas") -> Any:  # noqa: ANN401 - of the library that is chosen
        """Return a table as a data frame of pandas, polars or pyarrow.

        Raises ``AdvisorError`` where the library is not installed.
        """
        from gapwatch.tables import build_frame

        return build_frame(self.to_columns(table), backend)

    def to_hatchet(self) -> hatchet.GraphFrame:
        """Return phases and their regions as a GraphFrame with a row per node, rank and thread (seconds).

        Raises ``AdvisorError`` where Hatchet is not installed.
        """
        from gapwatch.graphs import build_graph_frame

        return build_graph_frame(self.profile)

    def plot(self) -> Figure:
        """Return the waterfall from the lowest known bound to the run time as a figure of matplotlib.

        Raises ``AdvisorError`` without the extra ``html``.
        """
        from gapwatch.figures import draw_waterfall

        return draw_waterfall(self._advice)

    def __repr__(self) -> str:
        seconds = f"{self.actual_s:.6g} s" if self.profile.has_run_time else "no run time"
        count = len(self.recommendations)
        return f"<gapwatch.Run {self.program!r}: {seconds}, grade {self.grade.letter}, {count} recommendations>"

    def _repr_html_(self) -> str:
        """Return the advice for a notebook: the page in a frame without scripts, or the text without the extra."""
        from gapwatch.figures import frame_page

        return frame_page(self)


def load(
    *paths: PathLike,
    run: str | None = None,
    machine: str | None = None,
    order: Order = "seconds",
    cores: int | None = None,
    target: str | None = None,
    binary: PathLike | None = None,
    rules: PathLike | Sequence[PathLike] = (),
    history: History | None = None,
) -> Run:
    """Read the runs at ``paths`` and return the newest, or the one called ``run``; the older ones are its past.

    The options are those of ``gapwatch advise``; ``history`` adds the runs that it remembers to the past, and the state
    of each item. Raises ``InputError`` for what cannot be read, ``UsageError`` for wrong options, ``DocumentError`` for
    mistakes in rules or machine models.
    """
    files = _require_paths(paths)
    options = _build_options(machine, order, cores, target, binary, rules, run)
    past = None if history is None else history.open_past()
    study = pipeline.study_newest(files, options, user_folders.load_host(), past)
    return Run(_update_states(study, past), files, options)


def load_runs(
    *paths: PathLike,
    machine: str | None = None,
    order: Order = "seconds",
    cores: int | None = None,
    target: str | None = None,
    binary: PathLike | None = None,
    rules: PathLike | Sequence[PathLike] = (),
    history: History | None = None,
) -> list[Run]:
    """Return every run at ``paths``, the oldest first, each with those before it as its past; raises as ``load``."""
    files = _require_paths(paths)
    options = _build_options(machine, order, cores, target, binary, rules, None)
    host: PluginHost = user_folders.load_host()
    past = None if history is None else history.open_past()
    studies = pipeline.iterate_studies(files, options, host, past)
    return [Run(_update_states(study, past), study.files or files, options) for study in studies]


def compare(
    before: Run | PathLike | Iterable[Run | PathLike],
    after: Run | PathLike | Iterable[Run | PathLike],
    *,
    earlier: Iterable[Iterable[Run]] = (),
) -> Comparison:
    """Return what changed from the runs of one build to those of another: gaps in seconds, and whether beyond noise.

    Give several runs of each build: one run each tells nothing of the noise. ``earlier`` are repeated runs of further
    builds, which tell more of it. Raises ``UsageError`` for runs without a run time or of different programs.
    """
    from advisor.analysis.comparison import check_comparable, compare_builds

    first, second = ([run.advise() for run in _load_all(side)] for side in (before, after))
    check_comparable((first, second))
    return compare_builds(first, second, [[run.advise() for run in group] for group in earlier])


def _load_all(side: Run | PathLike | Iterable[Run | PathLike]) -> list[Run]:
    """Return the runs of one side; a path stands for every run that lies there."""
    if isinstance(side, Run):
        return [side]
    if isinstance(side, str | os.PathLike):
        return load_runs(side)
    return [run for part in side for run in _load_all(part)]


def _require_paths(paths: Sequence[PathLike]) -> list[Path]:
    if not paths:
        raise TypeError("expected the path of at least one profile or trace")
    return [Path(path) for path in paths]


def _build_options(
    machine: str | None,
    order: Order,
    cores: int | None,
    target: str | None,
    binary: PathLike | None,
    rules: PathLike | Sequence[PathLike],
    run: str | None,
) -> pipeline.Options:
    """Return the options that the command line would take as well; raises ``UsageError``."""
    own_rules = [rules] if isinstance(rules, str | os.PathLike) else rules
    return pipeline.Options(
        machine=user_folders.resolve_machine(machine),
        rules=(*user_folders.rule_files(), *map(Path, own_rules)),
        order=_check_order(order),
        cores=_check_cores(cores),
        target=None if target is None else check_option("target", option_types.parse_target, target),
        binary=None if binary is None else Path(binary),
        run=run,
    )


def _check_order(order: Order) -> Order:
    if order not in get_args(Order):
        raise UsageError(f"order: expected {' or '.join(map(repr, get_args(Order)))}, found {order!r}")
    return order


def _check_cores(cores: int | None) -> int | None:
    return None if cores is None else check_option("cores", option_types.parse_cores, str(cores))


def _update_states(study: pipeline.Study, past: StoredHistory | None) -> pipeline.Study:
    """Return the study with the state of each item of its advice, as the history has it."""
    return study if past is None else replace(study, advice=past.update_item_states(study.advice))
