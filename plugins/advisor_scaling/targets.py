"""Where to predict: ``P=1024 N=4096,8192`` as points, and the scale that a program is meant for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import UsageError
from advisor.support.documents import suggest_word

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.study import ScalingStudy


_PAIR: Final = re.compile(r"([^\s=]+)\s*=\s*([^\s=]+)")
#: So many points a target may name.
_MOST: Final = 10_000
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


def target_points(study: ScalingStudy, text: str) -> FloatArray:
    """Return the points (t, m) that ``text`` names; parameters that it leaves out keep their largest measured value.

    A parameter may be written in another case, and the number of processors by another of its names. ``UsageError``
    for a parameter that the runs do not have, or that never changed in them.
    """
    asked = {_resolve_name(study, name): values for name, values in parse_target(text).items()}
    for name in asked:
        _check_parameter(study, name, asked[name])
    axes = [asked.get(name, (float(study.points[:, at].max()),)) for at, name in enumerate(study.parameters)]
    if math.prod(map(len, axes)) > _MOST:
        raise UsageError(f"more than {_MOST} points to predict")
    return np.array(list(product(*axes)), dtype=float)


def _resolve_name(study: ScalingStudy, name: str) -> str:
    """Return what the runs call a parameter: in another case, or another name for the number of processors."""
    from advisor_scaling.terms import PROCESSORS  # whoever asks what a run is meant for loads no shapes of growth

    known = (*study.parameters, *study.fixed, *study.tied)
    if name in known:
        return name
    alike = [one for one in known if one.lower() == name.lower()]
    if PROCESSORS.fullmatch(name):
        alike = alike or [one for one in known if PROCESSORS.fullmatch(one)]
    return alike[0] if len(alike) == 1 else name


def _check_parameter(study: ScalingStudy, name: str, values: Sequence[float]) -> None:
    if name in study.parameters or (name in study.fixed and set(values) == {study.fixed[name]}):
        return
    if name in study.fixed:
        raise UsageError(
            f"{name} was {study.fixed[name]:g} in all runs, so nothing is known about its influence; add runs with "
            f"other values of {name}"
        )
    if name in study.tied:
        raise UsageError(
            f"{name} changed only together with {study.tied[name]}, so their effects cannot be separated; leave "
            f"{name} out, or add runs that change {name} alone"
        )
    known = ", ".join(study.parameters)
    raise UsageError(f"the runs have no parameter {name!r}{suggest_word(name, study.parameters)}; they have {known}")
