"""Any profile that is consistent in itself goes through bounds, gaps, rules, ranking and every form of output.

``GAPWATCH_FUZZ`` says how many profiles are made; what fails is kept by Hypothesis and tried first the next time.
"""

from __future__ import annotations

import json
import math
import os
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from profile_strategies import profiles

from advisor import pipeline
from advisor.advice.earlier_runs import EarlierRuns
from advisor.cli import advise, gates
from advisor.cli.commands import COMMANDS
from advisor.cli.parsers import build_command_parser
from advisor.extension.host import load_plugins
from advisor.history.run_packing import strip_arrays
from advisor.model.errors import GateCrossed, UsageError
from advisor.model.records import Advice
from advisor.support import record_json

if TYPE_CHECKING:
    from advisor.extension.host import PluginHost
    from advisor.model.records import Profile

MANY = int(os.environ.get("GAPWATCH_FUZZ", "15"))


@cache
def host() -> PluginHost:
    return load_plugins()


def refuse_constant(name: str) -> Any:  # noqa: ANN401
    raise AssertionError(f"{name} in a document")


@given(profiles())
@settings(max_examples=MANY, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_any_profile_has_its_advice_in_every_form(profile: Profile) -> None:
    advice = pipeline.study_run(profile, pipeline.Options(), host()).advice
    assert not [problem for problem in advice.problems if problem.startswith("plugin ")], advice.problems
    assert all(math.isfinite(one.ceiling_s) for one in advice.recommendations)
    if advice.gaps and advice.bounds[0].seconds is not None:
        total = advice.bounds[0].seconds + math.fsum(gap.seconds for gap in advice.gaps)
        assert total == pytest.approx(profile.actual_s, rel=1e-6, abs=1e-6 * max(abs(g.seconds) for g in advice.gaps))
    slim = strip_arrays(advice)
    packed = json.loads(json.dumps(record_json.pack_record(slim)))
    assert record_json.pack_record(record_json.unpack_record(Advice, packed)) == packed, "the history keeps it"
    parser = build_command_parser(COMMANDS["advise"])
    for form in advise.FORMS:
        asked = parser.parse_args(["x", "--format", form])
        shown = advise.render_advice(advice, EarlierRuns(profile, (), None), asked)
        shown.encode("utf-8")
        if form in ("json", "sarif", "codequality"):
            json.loads(shown, parse_constant=refuse_constant)
    for gate in ("L > 3 %", "M'+D+S'+W+X > 1 s"):
        try:
            gates.check_gates([gates.parse_gate(gate)], advice, lambda: None)
        except (GateCrossed, UsageError):
            continue
