"""What a file of a whole run holds of one thread, put as TAU writes it into the file of a thread.

So what is known of such a file, and what is doubted in it, is the same for all forms of a profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from advisor.formats.tau.sheet import SheetFrame, find_frame


@dataclass(frozen=True, slots=True)
class ThreadRecords:
    """Metadata by name, then function or user event, as its place among them all, with its numbers.

    Those of a function are calls, calls from it, and exclusive and inclusive value of each metric; those of an event
    number, most, least, mean and sum of squares.
    """

    told: Mapping[str, str]
    rows: Sequence[tuple[int, Sequence[float]]]
    counted: Sequence[tuple[int, Sequence[float]]]


def write_frames(
    path: Path,
    thread: ThreadRecords,
    metrics: Sequence[str],
    functions: Mapping[int, tuple[str, str]],
    events: Mapping[int, str],
) -> Iterator[SheetFrame]:
    """Yield the profile of a thread for each of ``metrics``; ``functions`` holds names and groups."""
    header = f"# Name Calls Subrs Excl Incl ProfileCalls # {_render_metadata(thread.told)}"
    tail = [f'"{events[number]}" {_join(values)}' for number, values in thread.counted]
    for n, metric in enumerate(metrics):
        lines = [
            f'"{functions[number][0]}" {_join(values[:2])} {_join(values[2 + 2 * n : 4 + 2 * n])} 0 '
            f'GROUP="{functions[number][1]}"'
            for number, values in thread.rows
        ]
        text = [f"{len(lines)} templated_functions_MULTI_{metric}", header, *lines, "0 aggregates",
                f"{len(tail)} userevents", "# eventname numevents max min mean sumsqr", *tail, ""]  # fmt: skip
        yield find_frame(path, "\n".join(text).encode("utf-8", "surrogateescape"))


def join_lines(text: str) -> str:
    """Return a name as it can stand on one line."""
    return " ".join(text.replace("\0", " ").splitlines())


def _join(values: Sequence[float]) -> str:
    return " ".join(map(repr, values))


def _render_metadata(told: Mapping[str, str]) -> str:
    """Return what is known of a run or thread as TAU writes it into its files."""
    parts = (
        f"<attribute><name>{escape(name)}</name><value>{escape(value)}</value></attribute>"
        for name, value in told.items()
    )
    return f"<metadata>{''.join(parts)}</metadata>"
