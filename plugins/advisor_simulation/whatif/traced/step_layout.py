"""The steps of many rows in one compiled loop: ``rows._build_steps`` does the same by whole arrays.

A changed run is replayed some 25 times, and laying out its steps took longer than the replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Kinds = npt.NDArray[np.uint8]


def lay_out_steps(
    line: IntArray,
    kind: Kinds,
    cost: FloatArray,
    condition: IntArray,
    counts: tuple[int, int],
    first: IntArray,
    last: IntArray,
    steps: tuple[Kinds, FloatArray, npt.NDArray[np.int32]],
) -> int:
    """Fill ``first`` (lines + 1,), ``last`` (rows,) and the columns of the steps; return how many steps there are.

    ``counts`` are the conditions of messages, two for each, and of marks. Steps that neither wait, tell nor take time
    are left out.
    """
    of_messages, of_marks = counts
    kinds, costs, conditions = steps
    n = row = 0
    for number in range(len(first) - 1):
        first[number] = n
        while row < len(line) and line[row] == number:
            for step in range(kind.shape[1]):
                what = condition[row, step]
                if what >= of_messages:
                    what += of_marks
                elif what <= -2:
                    what = of_messages - what - 2
                if what >= 0 or cost[row, step] != 0.0:
                    kinds[n], costs[n], conditions[n] = kind[row, step], cost[row, step], what
                    n += 1
            last[row] = n - 1 if n > first[number] else -1
            row += 1
    first[len(first) - 1] = n
    return n
