"""``walk_steps`` compiled for graphs of many steps. Importing this module imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from advisor.support.compiling import jit
from advisor.trace.devices import walk

#: Takes arrays where the function itself takes lists as well.
walk_steps: Final[Callable[..., None]] = jit(allocating=False)(walk.walk_steps)
