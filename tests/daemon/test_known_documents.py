"""Files in a watched directory that are no runs, and that plugins know: taken in as what they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import command_line as cli
from native_documents import PROFILES

ROOT = Path(__file__).parents[2]
COUPLING = PROFILES / "coupling" / "measured"


def watch(home: Path, folder: Path) -> str:
    done = cli.run(
        "watch", str(folder), "--once", "--format", "lines", "--state", str(home / "state"), home=home
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.decode().split())


def test_models_studies_and_workloads_are_what_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.copy(ROOT / "machine_models" / "a64fx.yaml", folder)
    shutil.copy(ROOT / "plugins" / "advisor_similarity" / "known" / "starter.json", folder / "oracle.json")
    data = "".join(f"DATA {64 / p}\n" for p in (2, 4, 8, 16, 32))
    (folder / "study.txt").write_text(f"PARAMETER p\nPOINTS 2 4 8 16 32\nREGION solve\nMETRIC time\n{data}")
    (folder / "notes.yaml").write_text("this: is nothing\n")
    (folder / "readme.txt").write_text("nothing\n")
    told = watch(tmp_path, folder)
    assert "a64fx.yaml is a model of the machine a64fx" in told
    assert "workloads of an oracle machine" in told
    assert "study.txt is a scaling study at 5 points (p = 2 to 32)" in told
    assert "notes.yaml" not in told
    assert "readme.txt" not in told
    assert watch(tmp_path, folder) == "", "each is told once"


def test_couplings_that_come_later_reach_the_advice_on_the_newest_run(tmp_path: Path) -> None:
    known = (path for path in sorted(COUPLING.rglob("*.json")) if "gapwatch/coupling/" in path.read_text()[:4096])
    results = next(known)
    program = json.loads(results.read_text())["program"]
    folder = tmp_path / "runs"
    folder.mkdir()
    run = json.loads((PROFILES / "fig4.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "program": program}))
    assert program in watch(tmp_path, folder)
    shutil.copy(results, folder / "x.coupling.json")
    told = watch(tmp_path, folder)
    assert "x.coupling.json is the couplings of" in told
    assert f"of {program} at" in told
    assert "run 1: " in told, "the run is advised on anew"
