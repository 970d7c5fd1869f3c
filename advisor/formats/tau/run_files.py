"""All files of a run, read: every metric of every thread, as far as it is sound."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from advisor.formats.tau import checks, layout, merged, metadata, packed, sheet
from advisor.formats.tau.moved_bytes import MovedBytes
from advisor.formats.tau.sheet import FunctionNames
from advisor.formats.tau.table import TableBuilder
from advisor.model.errors import InputError, UsageError
from advisor.support import compiling
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from advisor.formats.tau.layout import Place
    from advisor.formats.tau.sheet import ProfileSheet, SheetFrame
    from advisor.model.records import FloatArray, IntArray

    Parse = Callable[[SheetFrame], tuple[IntArray, FloatArray]]
    #: The files of each metric, or what a packed profile holds for them.
    Found = Sequence[Mapping[Place, Path | SheetFrame]]

#: Bytes of profiles from which on loading the compiled parser takes less time than it saves, and compiling it anew.
_WORTH_LOADING: Final = 150_000_000
_WORTH_COMPILING: Final = 1_000_000_000
PROCESSOR_LIMIT: Final = 1_000_000


@dataclass(slots=True)
class TauRun:
    """What was read: ``places`` are all nodes, contexts and threads that a file is for, numbered as they stand there.

    ``headers`` are the lines with metadata by number, ``damage`` the errors of files, ``doubts`` what is contradictory
    in user events. ``without_events`` are numbers of processors whose files do not speak of user events.
    """

    places: list[Place]
    names: FunctionNames = field(default_factory=FunctionNames)
    metrics: list[TableBuilder] = field(default_factory=list)
    headers: dict[int, bytes] = field(default_factory=dict)
    moved_bytes: MovedBytes = field(default_factory=MovedBytes)
    damage: dict[int, InputError] = field(default_factory=dict)
    doubts: list[tuple[int, str]] = field(default_factory=list)
    without_events: set[int] = field(default_factory=set)
    negative: bool = False

    @property
    def complete_processors(self) -> list[int]:
        """The numbers of the processors of which every file was read."""
        return [n for n in range(len(self.places)) if n not in self.damage]


def read_run(path: Path, compiled: bool | None) -> TauRun:
    """Return what the files at ``path`` hold; raises ``InputError`` when none of them can be read."""
    found, doubts = _find_profiles(path)
    run = TauRun(sorted({place for files in found for place in files}))
    if len(run.places) > PROCESSOR_LIMIT:
        raise InputError(path, f"more than {PROCESSOR_LIMIT:,} threads")
    if not run.places:
        raise InputError(path, "no profile of TAU here")
    run.doubts += [(0, text) for text in doubts]
    parse = _select_parser(run.names, found, compiled)
    first: dict[int, ProfileSheet] = {}
    for files in found:
        filling = TableBuilder()
        for number, place in enumerate(run.places):
            _read_file(run, filling, number, files.get(place), parse, first if len(found) > 1 else None)
        if filling.ids and filling.metric not in {metric.metric for metric in run.metrics}:
            run.metrics.append(filling)
    _leave_out_strangers(run)
    if not run.complete_processors:
        raise next(iter(run.damage.values()))
    return run


def _leave_out_strangers(run: TauRun) -> None:
    """Leave out the threads of a rank that are of another process than most of them, or than the newest.

    Such files are of another run: TAU overwrites those of the threads that it writes, and leaves others where they are.
    """
    ranks: dict[tuple[int, int], dict[str, list[int]]] = {}
    for number in run.complete_processors:
        node, context, _ = run.places[number]
        if process := metadata.find_process(run.headers[number]):
            ranks.setdefault((node, context), {}).setdefault(process, []).append(number)
    for threads in ranks.values():
        most = max(
            threads, key=lambda process: (len(threads[process]), metadata.find_start(run.headers[threads[process][0]]))
        )
        for process, numbers in threads.items():
            for number in numbers if process != most else ():
                text = f"is of process {process}, the other threads of its rank are of process {most}: of another run"
                run.damage[number] = InputError(f"profile.{'.'.join(map(str, run.places[number]))}", text)


def _find_profiles(path: Path) -> tuple[Found, list[str]]:
    """Return the files of each metric, or what other forms of a profile hold for them, and what is doubted in these."""
    form = layout.detect_layout(path)
    if form == "packed":
        return packed.read_packed(path), []
    if form != "xml":
        return layout.find_files(path), []
    metrics: dict[str, dict[Place, SheetFrame]] = {}
    doubts: list[str] = []
    for file in layout.find_snapshots(path):
        sheets, wrong = merged.read_merged(file)
        doubts += wrong
        for threads in sheets:
            for place, frame in threads.items():
                metrics.setdefault(frame.metric, {})[place] = frame
    return list(metrics.values()), doubts


def _read_file(
    run: TauRun,
    filling: TableBuilder,
    number: int,
    path: Path | SheetFrame | None,
    parse: Parse,
    first: dict[int, ProfileSheet] | None,
) -> None:
    """Read the file of a processor; ``first`` holds what was read of the first metric, where there are several."""
    if path is None:
        node, _, thread = run.places[number]
        lost = InputError("profile", f"node {node} thread {thread} lacks a metric that others have")
        run.damage.setdefault(number, lost)
        return
    try:
        part = path if isinstance(path, sheet.SheetFrame) else sheet.read_frame(path)
        if filling.metric and part.metric != filling.metric:
            raise InputError(part.path, f"is of the metric {part.metric}, others of {filling.metric}", "line 1")
        found = sheet.build_sheet(part, *parse(part))
    except InputError as error:
        run.damage.setdefault(number, error)
        return
    filling.add_sheet(found, number)
    run.negative |= found.negative
    run.doubts += [(number, text) for text in checks.check_events(found, (first or {}).get(number))]
    if number not in run.headers:
        run.headers[number] = found.header
        run.moved_bytes.add_events(found.events or (), number)
        if first is not None:
            first[number] = found
    if found.events is None:
        run.without_events.add(number)


def _select_parser(names: FunctionNames, found: Found, compiled: bool | None) -> Parse:
    """Return the function that reads functions: the compiled one where it is worth it, or demanded."""
    if compiled and find_spec("numba") is None:
        raise UsageError(f"compiled reading needs numba: {install_line('fast')}")
    if compiled is None:
        compiled = compiling.is_worth_compiling(
            _estimate_size(found), loading=_WORTH_LOADING, compiling=_WORTH_COMPILING
        )
    if compiled:
        from advisor.formats.tau.compiled_parser import FunctionParser

        return FunctionParser(names).parse_functions
    return lambda part: sheet.parse_functions(part, names)


def _estimate_size(found: Found) -> int:
    """Return about how many bytes the files hold: those of a run are alike."""
    paths = [path for files in found for path in files.values()]
    some = paths[:: max(1, len(paths) // 32)]
    try:
        sizes = [len(one.content) if isinstance(one, sheet.SheetFrame) else one.stat().st_size for one in some]
    except OSError:
        return 0
    return sum(sizes) * len(paths) // max(1, len(some))
