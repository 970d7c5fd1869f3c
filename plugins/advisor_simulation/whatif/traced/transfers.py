"""Changes of what moving data costs, where nobody is late: fewer bytes, and transposes in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role
from advisor_simulation.replay.program import SENDING, Op
from advisor_simulation.whatif.changes import PIECES
from advisor_simulation.whatif.traced.background import LARGE_B, role_mask
from advisor_simulation.whatif.traced.rows import ReplayRows, message_mask

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

#: The part of the bytes that is left where not all of them are used.
FEWER: Final = 0.75


def send_fewer_bytes(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Let large messages hold a quarter less, and take so much less time."""
    size = rows.program.sizes
    large = message_mask(rows) & chosen
    large[large] = size[rows.link[large]] >= LARGE_B
    moving = large & rows.op_mask(*SENDING, Op.SENT, Op.RECV, Op.DONE)
    if not moving.any():
        return None
    return _scale_times(rows, moving, FEWER)


def transpose_in_pieces(rows: ReplayRows, chosen: Mask) -> ReplayRows | None:
    """Exchange among all in ``PIECES``, each as soon as it is computed: the last one can't be hidden."""
    names = np.array(["alltoall" in name.lower() for name in rows.program.collectives.name] + [False])
    joins = chosen & role_mask(rows, Role.ALL_TO_ALL)
    joins[joins] = names[rows.link[joins]]
    if not joins.any():
        return None
    return _scale_times(rows, joins, 1.0 / PIECES)


def _scale_times(rows: ReplayRows, these: Mask, factor: float) -> ReplayRows:
    scale = np.where(these, factor, 1.0)
    return replace(rows, seconds=rows.seconds * scale, wait_s=rows.wait_s * scale)
