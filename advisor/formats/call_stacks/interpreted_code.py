"""How much of the computation of a Python program is in its own functions, and so in the interpreter.

cProfile times built-in functions apart: what a function of Python takes itself is what the interpreter takes for it.
Samplers that see functions of Python alone don't tell the two apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.call_stacks.stacks import StackProfile
    from advisor.model.records import FloatArray
    from advisor.trace.callpaths.records import CallPathNode

_TIMES_BUILT_INS: Final = "cProfile"
#: Code that the program did not bring: of libraries, of Python itself, and what loads modules.
_OF_OTHERS: Final = re.compile(
    r"(?:.*[/\\])?(?:site-packages|dist-packages|lib[/\\]python\d[^/\\]*|Lib)[/\\]|<(?!string|stdin)|~"
)


def count_interpreted(found: StackProfile, nodes: tuple[CallPathNode, ...], spent: FloatArray) -> dict[str, FloatArray]:
    """Return the seconds (nodes, threads) of computation, and those in the interpreter; nothing of other profilers."""
    if found.tool != _TIMES_BUILT_INS:
        return {}
    works = np.array([node.role == Role.USER for node in nodes])[:, None]
    own = np.array([node.file is not None and _OF_OTHERS.match(node.file) is None for node in nodes])[:, None]
    everything = np.where(works, spent, 0.0)
    return {"code.all_s": everything, "code.known_s": everything, "code.interpreted_s": np.where(own, everything, 0.0)}
