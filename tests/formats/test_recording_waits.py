"""What calls hand over, and what a program in Python asks for one by one, from handmade records and sources."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from advisor.formats.recording.hand_overs import count_hand_overs
from advisor.formats.recording.recorded_threads import RecordedThread
from advisor.formats.recording.sequential_waits import find_asking_lines
from advisor.trace.recordings.layout import CALL, RECORD
from advisor.trace.recordings.processes import ThreadSpan

NAMES = ("pipe_read", "pipe_write", "poll", "waitpid", "python_gil", "sem_wait")


def hand_overs(*calls: tuple[str, int, int]) -> list[int]:
    """Return for how many hand-overs calls stand, each with its file and its bytes."""
    records = np.zeros(len(calls), dtype=RECORD)
    for number, (name, file, size) in enumerate(calls):
        records[number]["kind"], records[number]["function"] = CALL, NAMES.index(name)
        records[number]["partner"], records[number]["size"] = file, size
        records[number]["start_ns"], records[number]["end_ns"] = 10 * number + 1, 10 * number + 5
    process = cast("Any", SimpleNamespace(functions=dict(enumerate(NAMES))))
    nothing = cast("Any", records[:0])
    thread = RecordedThread(process, ThreadSpan(0, 0, 0), 0, records, nothing, np.zeros((0, 16), np.uint64), 0)
    return count_hand_overs(thread, np.arange(len(calls))).tolist()


def test_an_object_that_comes_in_pieces_is_handed_over_once() -> None:
    header, piece, last = ("pipe_read", 3, 4), ("pipe_read", 3, 65536), ("pipe_read", 3, 900)
    assert hand_overs(header, piece, ("python_gil", -1, -1), piece, last, header) == [1, 1, 1, 0, 0, 1]
    assert hand_overs(piece, ("pipe_read", 4, 900)) == [1, 1], "of another file"
    assert hand_overs(piece, ("sem_wait", -1, -1), piece) == [1, 1, 1], "something else was waited for in between"
    assert hand_overs(header, header, header) == [1, 1, 1], "small ones are a message each"


def test_a_look_that_finds_nothing_hands_nothing_over() -> None:
    look, child, taken = ("poll", -1, -1), ("waitpid", -1, -1), ("pipe_read", 3, 8)
    assert hand_overs(look, child, look, child, look, taken) == [0, 1, 0, 1, 0, 1]
    assert hand_overs(look, ("sem_wait", -1, -1)) == [1, 1]
    assert hand_overs(("sem_wait", -1, -1)) == [1]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("for page in pages:\n    fetch(page)\n", {2}),
        ("def ask(page):\n    return fetch(page)\n\nfor page in pages:\n    ask(page)\n", {2, 5}),
        ("answers = [fetch(page) for page in pages]\n", {1}),
        ("answers = {page: fetch(page) for page in pages}\n", {1}),
        ("while True:\n    answer(listen())\n", set()),
        ("fetch(1)\n", set()),
        ("async def main():\n    for p in pages:\n        await fetch(p)\nasyncio.run(main())\n", {3, 4}),
        ("async def main():\n    await asyncio.gather(*map(fetch, pages))\nasyncio.run(main())\n", set()),
        ("async def main():\n    for p in pages:\n        await asyncio.sleep(1)\nasyncio.run(main())\n", {3}),
        ("for page in pages:\n    threading.Thread(target=fetch).start()\n", set()),
        ("from multiprocessing import Pool\nfor page in pages:\n    fetch(page)\n", set()),
    ],
)  # fmt: skip
def test_lines_that_ask_one_by_one(source: str, lines: set[int]) -> None:
    assert find_asking_lines(ast.parse(source)) == lines
