"""A profile with counted operations."""

from __future__ import annotations

import numpy as np
from strategies import build

from advisor.model.records import Phase, Profile


def counted() -> Profile:
    """Two processors and two regions; region 0 adds, region 1 mostly loads."""
    arrays = {name: np.zeros((2, 2, 1)) for name in ("transfer_s", "io_s", "wait_s", "sync_s")}
    arrays["cpu_s"] = np.array([[[20.0], [20.0]], [[40.0], [40.0]]])
    arrays["wall_s"] = arrays["cpu_s"].copy()
    return build(
        [Phase("phase", "parallel", np.array([0, 1]), arrays)],
        counts={
            "source_ops.fp_add": table(10e9, 10e9),
            "source_ops.fp_fma": table(0, 5e9),
            "source_ops.load": table(0, 60e9),
            "compiled_ops.load": table(20e9, 60e9),
            "scheduled_cycles": table(15e9, 35e9),
        },
    )


def table(first: float, second: float) -> np.ndarray:
    """The same count on both processors in regions 0 and 1, in 9 regions of the profile."""
    rows = np.zeros((9, 2))
    rows[0], rows[1] = first, second
    return rows
