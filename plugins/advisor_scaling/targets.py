"""Where to predict: ``P=1024 N=4096,8192``, and the scale that a program is meant for."""

from __future__ import annotations

import math
import re
from typing import Final

from advisor.model.errors import UsageError

_PAIR: Final = re.compile(r"([^\s=]+)\s*=\s*([^\s=]+)")
#: What a target may name beside its point: ``machine=NAME`` and ``input=NAME``.
SETTINGS: Final = ("machine", "input")
#: The kind of the findings on growth; the subject is the run, its gaps, or one gap that grows.
KIND: Final = "scaling"
#: The parameter of a profile that says what scale the program is meant for, such as "P=1024 N=8192".
TARGET: Final = "target"
#: A measure of a finding on a gap: the seconds of the gap in a region there, whose name follows.
IN_REGION: Final = "seconds in "
#: Gaps between the machine's peak and the computation that was measured: only counts and a machine model show them.
MACHINE_GAPS: Final = frozenset({"A", "C", "S", "$"})


def split_settings(text: str) -> tuple[str, dict[str, str]]:
    """Return a target without the machine and the input that it names, and those two, as far as it names them."""
    pairs = dict(_PAIR.findall(text))
    named = {name: pairs[name] for name in SETTINGS if name in pairs}
    rest = _PAIR.sub(lambda pair: "" if pair[1] in SETTINGS else pair[0], text)
    return rest.strip(" ,;"), named


def parse_target(text: str) -> dict[str, tuple[float, ...]]:
    """Return the values of each parameter in ``P=1024 N=4096,8192``; ``UsageError`` where that is not what it is."""
    found: dict[str, tuple[float, ...]] = {}
    for name, values in _PAIR.findall(text):
        try:
            found[name] = tuple(float(value) for value in values.split(","))
        except ValueError:
            raise UsageError(f"expected numbers after {name}=, as in 'P=1024 N=4096,8192', not {values!r}") from None
        if not all(math.isfinite(value) and value > 0 for value in found[name]):
            raise UsageError(f"the values of {name} must be above zero")
    if not found or _PAIR.sub("", text).strip(" ,;"):
        raise UsageError(f"expected parameters and their values, as in 'P=1024 N=4096,8192', not {text!r}")
    return found
