"""CRASH on 16 processors of the SPP-1600 model, against what the source reports; and the real program."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from yaml_files import read_yaml

from advisor.analysis import machines
from advisor_simulation.model.checks import read_model
from advisor_simulation.whatif.model_report import ModelBench, build_candidates, search_model_plan

ROOT = Path(__file__).parents[3]
CRASH = ROOT / "examples" / "crash"
STEPS: list[dict[str, Any]] = read_yaml(Path(__file__).parents[2] / "reference" / "crash_versions.yaml")
VERSIONS = ("SP", "SD", "SD2", "SD3", "SD4", "SD8")


@pytest.fixture(scope="module")
def bench() -> ModelBench:
    return ModelBench(CRASH, machines.load_machine("convex-spp1600"), 16)


@pytest.fixture(scope="module")
def gaps(bench: ModelBench) -> dict[str, dict[str, float]]:
    found = {}
    for version in VERSIONS:
        model = read_model(CRASH / f"crash-{version}.yaml")
        one = bench.compute_gaps(model)
        found[version] = one | {"X": one["false sharing"] + one["migration"], "time": bench.total_seconds(model)}
    return found


def holds(direction: str, before: float, after: float) -> bool:
    return {
        "up": after > before,
        "down": after < before,
        "eliminated": after < 0.01 * before,
        "half": 0.45 * before <= after <= 0.55 * before,
    }[direction]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step['base']}-{step['version']}")
def test_gaps_change_as_the_source_reports(step: dict[str, Any], gaps: dict[str, dict[str, float]]) -> None:
    before, after = gaps[step["base"]], gaps[step["version"]]
    for name, direction in step.get("gaps", {}).items():
        assert holds(direction, before[name], after[name]), f"{name}: {before[name]:.6f} to {after[name]:.6f}"
    if "time" in step:
        assert holds(step["time"], before["time"], after["time"])


def test_false_sharing_is_a_part_of_its_own(bench: ModelBench, gaps: dict[str, dict[str, float]]) -> None:
    profile = bench.simulated_profile(read_model(CRASH / "crash-SD.yaml"))
    assert profile.causes is not None
    assert profile.causes.kinds == ("communication", "migration", "false sharing")
    assert gaps["SD"]["false sharing"] > 5 * gaps["SD"]["migration"] > 0
    assert gaps["SD2"]["false sharing"] == 0


def test_the_plan_proposes_the_actions_of_the_source_in_its_order(bench: ModelBench) -> None:
    model = read_model(CRASH / "crash-SP.yaml")
    taken = search_model_plan(model, bench, bench.build_setting(model))
    actions = [one.candidate.action for one in taken]
    assert actions == ["A-1", "G-12", "A-3", "G-14", "A-40"]  # SD, SD2, SD3, SD4, SD8
    assert all(one.after_s < one.before_s for one in taken)


def test_side_effects_show_as_other_gaps_that_grow(bench: ModelBench) -> None:
    """Dynamic scheduling costs locality, padding costs traffic."""
    model = read_model(CRASH / "crash-SD.yaml")
    before = bench.compute_gaps(model)
    changes = {one.action: one for one in build_candidates(bench.build_setting(model))}
    dynamic, padded = changes["A-29"].make(model), changes["G-12"].make(model)
    assert dynamic is not None
    assert padded is not None
    assert bench.compute_gaps(dynamic)["C'"] > 2 * before["C'"]
    assert bench.compute_gaps(dynamic)["L"] < before["L"]
    assert bench.compute_gaps(padded)["C'"] > before["C'"]
    assert bench.compute_gaps(padded)["false sharing"] < before["false sharing"]


@pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which("make") is None, reason="needs a C compiler with OpenMP, and make"
)
def test_all_versions_of_the_program_compute_the_same(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(CRASH), f"BUILD={tmp_path}"], check=True, timeout=PATIENCE_S)
    parts = tmp_path / "parts.txt"
    count = len((CRASH / "elements.txt").read_text(encoding="ascii").splitlines())
    parts.write_text("".join(f"{i * 7 // 5 % 2}\n" for i in range(count)), encoding="ascii")
    found = set()
    for version in VERSIONS:
        words = [tmp_path / "crash", version, 2, 8, 0.01, CRASH / "mesh.txt", CRASH / "elements.txt", parts]
        done = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, timeout=PATIENCE_S)
        result = json.loads(done.stdout)
        assert result["version"] == version
        found.add(result["checksum"])
    assert len(found) == 1


def test_the_page_says_what_the_models_say(gaps: dict[str, dict[str, float]]) -> None:
    page = (CRASH / "README.md").read_text(encoding="utf-8")
    columns = ("time", "C'", "false sharing", "migration", "L", "M'", "D", "S'")
    for version in VERSIONS:
        shown = " | ".join(f"{gaps[version][name] * 1e3:.2f}" for name in columns)
        assert f"| {version} | {shown} |" in page


def test_double_buffering_makes_version_sd8_of_sd4(bench: ModelBench, gaps: dict[str, dict[str, float]]) -> None:
    model = read_model(CRASH / "crash-SD4.yaml")
    change = next(one for one in build_candidates(bench.build_setting(model)) if one.action == "A-40")
    made = change.make(model)
    assert made is not None
    assert bench.total_seconds(made) == pytest.approx(gaps["SD8"]["time"], rel=0.01)
    assert bench.compute_gaps(made)["S'"] == pytest.approx(gaps["SD8"]["S'"])
    assert change.make(read_model(CRASH / "crash-SD8.yaml")) is None
