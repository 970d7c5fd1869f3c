"""ParaProf's packed profiles (``.ppk``): all threads and metrics of a run in one file, as Java writes numbers.

``PackedProfileDataSource.java`` of TAU describes them. Each thread and metric becomes the text that TAU writes itself,
so that what is known of such a file, and what is doubted in it, is the same for both.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.plain_text import read_content
from advisor.formats.tau.layout import PACKED, Place
from advisor.formats.tau.thread_records import ThreadRecords, join_lines, write_frames
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.tau.sheet import SheetFrame

#: The newest form that is understood, by the number that a file states for its oldest reader.
_FORM: Final = 2


def read_packed(path: Path) -> list[dict[Place, SheetFrame]]:
    """Return the profile of each metric by node, context and thread; raises ``InputError`` where it is damaged."""
    content = _JavaReader(path, read_content(path))
    try:
        return _read_profile(path, content)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise InputError(path, "the packed profile is damaged or cut off", f"byte {content.place}") from error


class _JavaReader:
    """Takes numbers and texts from what Java's ``DataOutputStream`` wrote."""

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        self.place = len(PACKED)
        self._content = content

    def take_whole(self) -> int:
        """Return the next integer."""
        return int(self._unpack(">i", 4)[0])

    def take_count(self, size: int = 1) -> int:
        """Return the next integer as the number of things of at least ``size`` bytes that follow."""
        count = self.take_whole()
        if not 0 <= count * size <= len(self._content) - self.place:
            raise InputError(self.path, f"{count:,} entries do not fit into the file", f"byte {self.place - 4}")
        return count

    def take_place(self, things: Sequence[object]) -> int:
        """Return the next integer as the place of one of ``things``."""
        place = self.take_whole()
        if not 0 <= place < len(things):
            raise InputError(self.path, f"there is no entry {place:,} of {len(things):,}", f"byte {self.place - 4}")
        return place

    def take_reals(self, count: int) -> tuple[float, ...]:
        """Return the next ``count`` floating-point numbers."""
        return self._unpack(f">{count}d", 8 * count)

    def take_text(self) -> str:
        """Return the next text, on one line."""
        length = int(self._unpack(">H", 2)[0])
        self.place += length
        if self.place > len(self._content):
            raise IndexError
        return join_lines(self._content[self.place - length : self.place].decode("utf-8", "surrogateescape"))

    def take_texts(self) -> dict[str, str]:
        """Return the next pairs of texts."""
        pairs = [(self.take_text(), self.take_text()) for _ in range(self.take_count(4))]
        return dict(pairs)

    def skip_bytes(self, count: int) -> None:
        """Leave out ``count`` bytes."""
        self.place += count

    def _unpack(self, form: str, size: int) -> tuple[float, ...]:
        found = struct.unpack_from(form, self._content, self.place)
        self.place += size
        return found


def _read_profile(path: Path, content: _JavaReader) -> list[dict[Place, SheetFrame]]:
    form, oldest = content.take_whole(), content.take_whole()
    if oldest > _FORM or form < 1:
        raise InputError(path, f"is a packed profile of form {form}, of which none newer than {_FORM} is known here")
    told: dict[str, str] = {}
    of_thread: dict[Place, dict[str, str]] = {}
    if form > 1:
        content.take_whole()
        content.skip_bytes(content.take_count())
        told = content.take_texts()
        for _ in range(content.take_count(16)):
            place = content.take_whole(), content.take_whole(), content.take_whole()
            of_thread[place] = content.take_texts()
    else:
        content.skip_bytes(content.take_count())
    metrics = [content.take_text() for _ in range(content.take_count(2))]
    groups = [content.take_text() for _ in range(content.take_count(2))]
    functions = []
    for _ in range(content.take_count(6)):
        name = content.take_text()
        mine = [groups[content.take_place(groups)] for _ in range(content.take_count(4))]
        functions.append((name, " | ".join(mine)))
    events = [content.take_text() for _ in range(content.take_count(2))]
    found: list[dict[Place, SheetFrame]] = [{} for _ in metrics]
    for _ in range(content.take_count(20)):
        place = content.take_whole(), content.take_whole(), content.take_whole()
        rows = [
            (content.take_place(functions), content.take_reals(2 + 2 * len(metrics)))
            for _ in range(content.take_count(20 + 16 * len(metrics)))
        ]
        counted = [(content.take_place(events), _take_event(content)) for _ in range(content.take_count(40))]
        thread = ThreadRecords(told | of_thread.get(place, {}), rows, counted)
        for n, frame in enumerate(
            write_frames(path, thread, metrics, dict(enumerate(functions)), dict(enumerate(events)))
        ):
            found[n][place] = frame
    return found


def _take_event(content: _JavaReader) -> tuple[float, ...]:
    """Return what a user event counted in the order of TAU's own files: most before least."""
    times = content.take_whole()
    least, most, mean, squares = content.take_reals(4)
    return times, most, least, mean, squares
