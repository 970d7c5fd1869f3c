"""What the events show of the machine: disturbances in seconds of their own, shared cores, a slow core."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from lab.archive import write_archive
from lab.shapes import build
from lab.world import run

from advisor import pipeline
from advisor.extension import host

if TYPE_CHECKING:
    from lab.world import Code

    from advisor.model.records import Advice


def advise(code: Code, folder: Path) -> Advice:
    """The advice on a program of the laboratory."""
    recorded = run(code, record=True)
    each = code.machine.ranks_per_host
    trace = write_archive(
        folder / "run",
        recorded.log,
        ranks=code.ranks,
        threads=code.threads,
        ranks_per_host=each,
        sources=code.sources(),
    )
    return pipeline.advise([trace], pipeline.Options(), host.load_plugins())


@pytest.mark.parametrize(
    ("seed", "shape", "kind", "actions"),
    [
        (685, "particles", "disturbance", []),
        (297, "time_step_control", "shared cores", []),
        (271, "particles", "slow core", ["A-28"]),
    ],
)
def test_what_the_machine_did_is_told(seed: int, shape: str, kind: str, actions: list[str], tmp_path: Path) -> None:
    code = build(seed, shape)
    advice = advise(code, tmp_path)
    found = [one for one in advice.findings if one.kind in ("disturbance", "shared cores", "slow core")]
    assert [one.kind for one in found] == [kind]
    assert [one.action for one in advice.recommendations][:1] == actions
    if kind == "disturbance":
        assert 0.01 * advice.profile.actual_s < found[0].measures["seconds"] < 0.1 * advice.profile.actual_s
    if kind == "slow core":
        assert found[0].measures["factor"] == pytest.approx(code.noise.slowness, abs=0.01)
        assert code.noise.slowness > 1.1
