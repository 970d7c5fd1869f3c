"""What functions of libraries do is known by their names, however little is known of the other functions."""

from __future__ import annotations

import numpy as np
import pytest

from advisor import pipeline
from advisor.extension import host
from advisor.model.records import Advice, Phase, Processor, Profile, Region


def advise_on(text_s: float, unknown_s: float, kind: str) -> Advice:
    """A serial program with a function of a library and one of which nothing is known."""
    seconds = np.array([[text_s], [unknown_s]])
    known = np.array([[text_s], [0.0]])
    counts = {"all": seconds, "known": known, **dict.fromkeys(("math", "allocation", "copy", "lock"), 0.0 * known)}
    counts |= {"text": 0.0 * known, "random": 0.0 * known, "sort": 0.0 * known, kind: known}
    profile = Profile(
        program="program",
        run="1",
        reader="recording",
        actual_s=text_s + unknown_s,
        processors=(Processor(0),),
        regions=(Region("named"), Region("nameless")),
        phases=(Phase("run", "whole", np.arange(2), {"cpu_s": seconds[:, :, None], "wall_s": seconds[:, :, None]}),),
        status=dict.fromkeys(("cpu_s", "wall_s"), "measured"),
        counts={f"code.{name}_s": table for name, table in counts.items()},
    )
    return pipeline.study_run(profile, pipeline.Options(), host.load_plugins()).advice


@pytest.mark.parametrize(
    ("kind", "action"), [("text", "G-61"), ("random", "G-67"), ("sort", "G-105"), ("allocation", "G-37")]
)
def test_named_code_is_advised_on_where_the_rest_is_unknown(kind: str, action: str) -> None:
    assert action in {item.action for item in advise_on(0.8, 1.2, kind).recommendations}


def test_little_of_unknown_code_says_nothing() -> None:
    assert "G-67" not in {item.action for item in advise_on(0.36, 1.64, "random").recommendations}
