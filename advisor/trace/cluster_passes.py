"""The two passes over the windows of a trace, done by the workers of a cluster (``docs/scale.md``).

Processes are looked at in blocks as far as nobody else has a say: where the trace can be cut, and which calls are open
there. Each window then goes to a worker that reads the events of all processes in it, which is the one exchange
between them. What comes of the parts is put together as one process alone does it, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

import numpy as np

from advisor.trace import attribution_merging, nesting, survey, time_attribution, windows
from advisor.trace.events import COLUMNS, Trace
from advisor.trace.windows import Stacks, TraceWindows, WindowPlace

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.trace.matching import Collectives, Messages
    from advisor.trace.records import RunSurvey
    from advisor.trace.sharing import SharedWork
    from advisor.trace.time_attribution import RunPlan, TimeAttribution

#: Blocks of locations for each thread of the workers: some have more to do than others.
BLOCKS_A_THREAD: Final = 4

Record = TypeVar("Record", "Collectives", "Messages")


@dataclass(frozen=True, slots=True)
class WindowTask:
    """A window of ``windows`` in all, the calls that are ``opened`` at its begin, and where its matches are kept."""

    place: WindowPlace
    windows: int
    opened: Stacks
    compiled: bool
    kept: Path


@dataclass(frozen=True, slots=True)
class KeptMatches:
    """What belongs together in a window; the columns lie in a file."""

    joint: Collectives
    messages: Messages


def survey_windows(work: SharedWork, cut: TraceWindows) -> tuple[RunSurvey, Callable[[RunPlan], TimeAttribution]]:
    """Return what the run tells, and what attributes its seconds; raises ``UncleanError`` as one process alone does."""
    tasks = list(_make_tasks(work, cut))
    parts: list[RunSurvey] = []
    kept: list[KeptMatches] = []
    for told, matches in work(survey_window, [(task,) for task in tasks]):
        parts.append(told)
        kept.append(matches)
    before = np.cumsum([0, *(len(part.closing_region) for part in parts)]).tolist()
    told = survey.combine_surveys(parts, cut.trace)
    return told, partial(_attribute_windows, work, list(zip(tasks, kept, before, strict=False)))


def _attribute_windows(
    work: SharedWork, known: list[tuple[WindowTask, KeptMatches, int]], plan: RunPlan
) -> TimeAttribution:
    held = work.cluster.send_to_all(plan)
    return attribution_merging.merge_attributions(work(attribute_window, [(held, *each) for each in known]))


def _make_tasks(work: SharedWork, cut: TraceWindows) -> Iterator[WindowTask]:
    """Yield the windows with the calls that are open at their begin, which workers find by blocks of locations."""
    # ranges of neighbouring locations, at most so many, with about as many events each
    shares = np.linspace(
        0, cut.trace.first[-1], min(BLOCKS_A_THREAD * work.cluster.count_threads(), len(cut.trace.locations)) + 1
    )[1:-1]
    edges = np.unique(np.r_[0, np.searchsorted(cut.trace.first, shares), len(cut.trace.locations)])
    blocks = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    found = list(work(find_stacks, [(low, high, cut.edges[:, low:high], cut.compiled) for low, high in blocks]))
    for number, opened in enumerate(zip(*found, strict=True)):
        stacks = Stacks(*(np.concatenate([getattr(each, name) for each in opened]) for name in Stacks.__slots__))
        kept = work.cluster.folder / f"matches-{number}.npz"
        yield WindowTask(cut.place_window(number), len(cut), stacks, cut.compiled, kept)


def find_stacks(trace: Trace, low: int, high: int, edges: IntArray, compiled: bool) -> list[Stacks]:
    """Return the calls of the locations from ``low`` up to ``high`` that are open at the begin of each window.

    ``edges`` (windows + 1, locations) are the events at which windows begin.
    """
    base, end = int(trace.first[low]), int(trace.first[high])
    columns: dict[str, Any] = {name: getattr(trace, name)[base:end] for name in COLUMNS}
    block = replace(trace, locations=trace.locations[low:high], first=trace.first[low : high + 1] - base, **columns)
    found = [Stacks(np.zeros(0, dtype=np.int64), np.zeros(high - low, dtype=np.int64))]
    for number in range(len(edges) - 2):
        place = WindowPlace(number, False, edges[number] - base, edges[number + 1] - base)
        window = windows.extract_window(block, place, found[-1], compiled=compiled)
        found.append(windows.find_open_regions(window, nesting.pair_calls(window.trace, compiled=compiled)))
    return found


def survey_window(trace: Trace, task: WindowTask) -> tuple[RunSurvey, KeptMatches]:
    """Return what a window tells, and keep which of its calls belong together."""
    window = windows.extract_window(trace, task.place, task.opened, compiled=task.compiled)
    calls = nesting.pair_calls(window.trace, compiled=task.compiled)
    matched = survey.match_window(window, calls)
    told = survey.survey_window(matched, trace, task.windows, last=task.place.last)
    return told, _keep_matches(task.kept, matched.collectives, matched.messages)


def attribute_window(trace: Trace, plan: RunPlan, task: WindowTask, kept: KeptMatches, before: int) -> TimeAttribution:
    """Return what a window holds; ``before`` synchronizations lie before it."""
    window = windows.extract_window(trace, task.place, task.opened, compiled=task.compiled, matched=True)
    calls = nesting.pair_calls(window.trace, compiled=task.compiled)
    with np.load(task.kept) as columns:
        joint, messages = _fill_record(kept.joint, columns), _fill_record(kept.messages, columns)
    matched = survey.group_calls(window, calls, joint, messages)
    return time_attribution.attribute_window(matched, plan, before, last=task.place.last)


def _keep_matches(path: Path, joint: Collectives, messages: Messages) -> KeptMatches:
    columns = _list_columns(joint) | _list_columns(messages)
    narrow = {name: column.astype(np.int32) for name, column in columns.items()}
    same = {name: np.array_equal(narrow[name], column) for name, column in columns.items()}
    unfinished = path.with_name(f"{path.stem}-{uuid4().hex}.npz")  # two workers may do what one was lost at
    stored: dict[str, Any] = {name: narrow[name] if same[name] else column for name, column in columns.items()}
    np.savez(unfinished, **stored)
    unfinished.replace(path)
    return KeptMatches(_empty_record(joint), _empty_record(messages))


def _list_columns(record: Collectives | Messages) -> dict[str, IntArray]:
    """Return the columns of a record by the names of both."""
    columns = {field.name: getattr(record, field.name) for field in fields(record)}
    kind = type(record).__name__
    return {f"{kind}.{name}": column for name, column in columns.items() if isinstance(column, np.ndarray)}


def _empty_record(record: Record) -> Record:
    names = [name.split(".")[1] for name in _list_columns(record)]
    empty: dict[str, Any] = dict.fromkeys(names, np.zeros(0, dtype=np.int64))
    return replace(record, **empty)


def _fill_record(record: Record, columns: Any) -> Record:  # noqa: ANN401 (an archive of numpy)
    filled: dict[str, Any] = {name.split(".")[1]: columns[name].astype(np.int64) for name in _list_columns(record)}
    return replace(record, **filled)
