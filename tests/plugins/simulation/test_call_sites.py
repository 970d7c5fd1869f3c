"""Where in the program an operation of a replay is: the line of its call, as far as it is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from replay_programs import Do, program

from advisor_simulation.replay.program import Op


def test_an_operation_is_at_the_line_of_its_call_else_in_its_region() -> None:
    made = program([[Do(Op.SEND, 1.0, 0), Do(Op.BURST, 1.0)], [Do(Op.RECV, 0, 0)]], [(0, 1)])
    made = replace(
        made, names=("program", "MPI_Send", "MPI_Recv"), places=("", "heat.c:33", ""),
        call=np.array([1, -1, 2], dtype=np.int32), region=np.zeros(3, dtype=np.int32),
    )  # fmt: skip
    assert [made.find_site(at) for at in range(3)] == ["heat.c:33", "program", "program"]
