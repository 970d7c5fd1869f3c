"""Models by Extra-P, in an interpreter that has it: highest powers, predictions, milliseconds of CPU time per model.

Extra-P is no dependency. The variable ``EXTRAP_PYTHON`` names an interpreter that has it:
``python -m venv extrap && extrap/bin/pip install extrap==4.2.5``, then ``EXTRAP_PYTHON=extrap/bin/python``.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

if TYPE_CHECKING:
    from scaling_truth import Truth

    from advisor.model.records import FloatArray

PYTHON: Final = os.environ.get("EXTRAP_PYTHON", sys.executable)

_PROGRAM: Final = """\
import json, logging, sys, time, warnings
warnings.simplefilter("ignore")
logging.disable(50)
from extrap.entities.coordinate import Coordinate
from extrap.entities.measurement import Measurement
from extrap.modelers.multi_parameter.multi_parameter_modeler import MultiParameterModeler
from extrap.modelers.single_parameter.basic import SingleParameterModeler
given = json.load(sys.stdin)
single = len(given["points"][0]) == 1
modeler = SingleParameterModeler() if single else MultiParameterModeler()
places = [Coordinate(*point) for point in given["points"]]
powers, said, spent = [], [], 0.0
for values in given["values"]:
    measured = [Measurement(place, None, None, row) for place, row in zip(places, values)]
    started = time.process_time()
    function = modeler.create_model(measured).hypothesis.function
    spent += time.process_time() - started
    highest = [0.0] * len(given["points"][0])
    for term in function.compound_terms:
        for at, part in [(0, term)] if single else term.parameter_term_pairs:
            for simple in part.simple_terms:
                if simple.term_type == "polynomial":
                    highest[at] = max(highest[at], float(simple.exponent))
    powers.append(highest)
    said.append([float(function.evaluate(target[0] if single else target)) for target in given["targets"]])
print(json.dumps({"powers": powers, "said": said, "ms": 1e3 * spent / len(given["values"])}))
"""


@dataclass(frozen=True, slots=True)
class Models:
    """Of K cases: the highest ``powers`` (k, m), what is ``said`` of the targets (k, t), CPU milliseconds per model."""

    powers: FloatArray
    said: FloatArray
    ms: float


@functools.cache
def _installed() -> bool:
    return subprocess.run([PYTHON, "-c", "import extrap"], capture_output=True, check=False).returncode == 0


def by_extrap(truth: Truth) -> Models:
    """Return what Extra-P makes of the cases; skips the test where it is missing."""
    if not _installed():
        pytest.skip("no Extra-P: pip install extrap==4.2.5 in an environment, EXTRAP_PYTHON=that/bin/python")
    given = {"points": truth.points.tolist(), "values": truth.values.tolist(), "targets": truth.targets.tolist()}
    done = subprocess.run(
        [PYTHON, "-c", _PROGRAM], input=json.dumps(given), capture_output=True, check=True, text=True
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    return Models(np.array(found["powers"]), np.array(found["said"]), float(found["ms"]))
