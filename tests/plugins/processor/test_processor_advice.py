"""Real loops, built with little and much optimization, counted, beside a profile: the right gap, the right action."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE_S
from test_processor_probe import model

from advisor import pipeline
from advisor.analysis import machine_rates, machines
from advisor.extension import host
from advisor.formats.native_writer import write_profile
from advisor.model.records import Advice, Phase, Processor, Profile, Region
from advisor_processor import operations_document as documents
from advisor_processor.compiled import analysis
from advisor_processor.probe import model_document
from advisor_processor.source import instrumented_run
from advisor_processor.source.essential_accesses import count_essential_accesses

LOOPS = Path(__file__).resolve().parents[3] / "examples" / "incore"
#: How often the loop is taken to have run: what callgrind saw, so many times.
REPEATED = 1e6


@dataclass(frozen=True)
class Case:
    """A loop at an optimization level, and how many times longer than its schedule it is taken to need."""

    level: str
    loop: str
    slower: float = 1.05


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("gcc", "make", "valgrind"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}: apt install {tool}")
    folder = tmp_path_factory.mktemp("incore")
    for file in LOOPS.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    subprocess.run(["make", "-s"], cwd=folder, check=True, timeout=PATIENCE_S)
    (folder / "seen.yaml").write_text(model_document.render_machine(model()))
    return folder


def advice(built: Path, case: Case) -> Advice:
    """Advice on a run of one loop, from its counts and a time that follows from its schedule."""
    folder = built / f"{case.loop}-{case.level}"
    if not folder.exists():
        folder.mkdir()
        _record(built, case, folder)
    options = pipeline.Options(machine=str(built / "seen.yaml"))
    return pipeline.advise([folder], options, host.load_plugins())


def _record(built: Path, case: Case, folder: Path) -> None:
    machine = machines.load_machine(built / "seen.yaml")
    program, out = built / "build" / f"incore-{case.level}", built / f"{folder.name}.out"
    words = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}", str(program)]
    subprocess.run([*words, case.loop, "24576", "1"], check=True, capture_output=True, timeout=PATIENCE_S)
    name = case.loop.rstrip("0123456789")
    one = next(each for each in analysis.analyse_run(out, machine).functions if each.name == name)
    schedule = one.schedule
    compiled = {f"compiled_ops.{unit}": count for unit, count in schedule.operations.items()}
    compiled |= {f"compiled_numbers.{unit}": count for unit, count in schedule.numbers.items() if unit != "int"}
    compiled |= {"scheduled_cycles": schedule.macs_cycles, "chained_cycles": schedule.chained_cycles}
    compiled |= {"strided_loads": schedule.strided, "spilled_loads": schedule.spilled}
    compiled["vectorized_ops"] = schedule.vectorized
    loop = next(
        each
        for each in instrumented_run.read_sources([LOOPS / "loops.c"])[1][0].loops
        if each.function == name and each.inner
    )
    assert loop.body is not None
    times = {"triad": 1024, "quotient": 1536, "reciprocal": 1536, "ddot": 1536, "strided8": 341}[case.loop]
    source = {f"source_ops.{unit}": count * times for unit, count in loop.body.work.operations.items() if count}
    loads, stores, _ = count_essential_accesses(loop.body)
    source |= {"source_ops.load": loads * times, "source_ops.store": stores * times}
    for by, counts in (("incore", compiled), ("count", source)):
        row = ((name, "loops.c", None), 0, {key: value * REPEATED for key, value in counts.items()})
        documents.write_operations(documents.build_document("incore", by, 1, [row]), folder / f"{by}.operations.json")
    seconds = schedule.macs_cycles * REPEATED / (machine_rates.clock_hz(machine) or 1.0) * case.slower
    write_profile(_profile(name, seconds), folder / "profile.json")


def _profile(name: str, seconds: float) -> Profile:
    own = np.array([[[seconds]]])
    phase = Phase("the whole run", "whole", np.array([0]), {"wall_s": own, "cpu_s": own.copy()})
    return Profile(
        program="incore", run="1", reader="native", actual_s=seconds, processors=(Processor(0),),
        regions=(Region(name, "loops.c"),), phases=(phase,), status={"wall_s": "measured", "cpu_s": "measured"},
        language="c",
    )  # fmt: skip


def gaps_of(found: Advice) -> dict[str, float]:
    return {gap.name: gap.share for gap in found.gaps}


@pytest.mark.parametrize(
    ("bad", "good", "gap", "action"),
    [
        (Case("O1", "triad"), Case("O3", "triad"), "C", "A-20"),
        (Case("O3", "quotient"), Case("O3", "reciprocal"), "A", "P-1"),
        (Case("O1", "strided8", 6.0), Case("O3", "reciprocal"), "$", "P-3"),
        (Case("O3", "ddot"), Case("O3", "reciprocal"), "S", "P-2"),
    ],
)
def test_the_right_gap_grows_and_the_first_action_is_the_right_one(
    built: Path, bad: Case, good: Case, gap: str, action: str
) -> None:
    worse, better = advice(built, bad), advice(built, good)
    assert gaps_of(worse)[gap] * worse.profile.actual_s > gaps_of(better)[gap] * better.profile.actual_s
    assert worse.recommendations[0].action == action
    assert [bound.name for bound in worse.bounds if bound.seconds is not None][:5] == ["M", "MA", "MAC", "MACS", "I"]
    assert all(each.seconds >= -1e-9 for each in worse.gaps)
