"""The recorded fault cases: complete, listed, small, undisturbed, and free of the machine they were recorded on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from yaml_files import read_yaml

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "profiles" / "faults"
DEMO = ROOT / "examples" / "demo"
LISTED = read_yaml(ROOT / "examples" / "faults" / "cases.yaml")
DEMONSTRATED = read_yaml(ROOT / "examples" / "faults" / "demo.yaml")
PLACES = [(case, RECORDED / case["name"]) for case in LISTED] + [(case, DEMO) for case in DEMONSTRATED]
each_case = pytest.mark.parametrize(("case", "place"), PLACES, ids=[case["name"] for case, _ in PLACES])

#: Where what a rank was given is what it takes: a core for each, and no threads with shares of their own.
UNDISTURBED = [
    place for case, place in PLACES if case.get("threads", 1) == 1 and "oversubscribed" not in case["faults"]
]

MACHINE = (b"/home/", b"/root", b"/tmp", b"/work", b"/usr", b"/var", b"/build")
#: Regions that work and nothing else.
COMPUTING = ("serial_part", "compute_fluxes", "update_cells", "update_edges")


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def read(place: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((place / name).read_text(encoding="utf-8"))
    return document


def by_rank(truth: dict[str, Any], key: str, regions: tuple[str, ...]) -> list[float]:
    """Return the seconds of each rank in the regions."""
    tables = [truth[key][region] for region in regions if region in truth[key]]
    return [sum(sum(table[rank]) for table in tables) for rank in range(truth["ranks"])]


def test_every_recording_is_listed_once() -> None:
    names = [case["name"] for case in LISTED]
    assert len(names) == len(set(names)) >= 40
    assert sorted(names) == sorted(path.name for path in RECORDED.iterdir())


def test_single_faults_come_in_three_strengths_and_there_are_doubles_and_controls() -> None:
    strengths: dict[str, set[str]] = {}
    for case in LISTED:
        if len(case["faults"]) == 1 and "strength" in case:
            strengths.setdefault(case["faults"][0], set()).add(case["strength"])
    assert len([fault for fault, found in strengths.items() if found == {"5 %", "15 %", "40 %"}]) >= 12
    assert len([case for case in LISTED if len(case["faults"]) == 2]) >= 10
    assert {case["ranks"] for case in LISTED if not case["faults"]} >= {1, 2, 4}


@each_case
def test_a_recording_is_complete(case: dict[str, Any], place: Path) -> None:
    archive = place / "stencil_trace"
    assert (archive / "eztrace_log.otf2").is_file()
    assert (archive / "eztrace_log.def").is_file()
    locations = case["ranks"] * case.get("threads", 1)
    assert len(list((archive / "eztrace_log").glob("*.evt"))) == locations
    assert {path.name for path in place.iterdir()} == {"stencil_trace", "truth.json", "gapwatch.json"}


@each_case
def test_the_truth_is_that_of_the_listed_flags(case: dict[str, Any], place: Path) -> None:
    truth = read(place, "truth.json")
    flags = shlex.split(case["flags"])
    assert truth["arguments"] == [*flags, "--threads", str(case.get("threads", 1))]
    assert truth["ranks"] == case["ranks"]
    assert truth["threads"] == case.get("threads", 1)
    for name, value in zip(flags[::2], flags[1::2], strict=True):
        assert str(truth["options"][name.removeprefix("--")]) in (value, str(float(value) if "." in value else value))


@each_case
def test_the_sidecar_tells_what_the_trace_does_not(case: dict[str, Any], place: Path) -> None:
    sidecar = read(place, "gapwatch.json")
    assert set(sidecar) == {"build", "cores", "language", "ranks_expected", "parameters"}
    assert sidecar["ranks_expected"] == case["ranks"]
    assert sidecar["cores"] == case.get("cores", case["ranks"] * case.get("threads", 1))
    flags = shlex.split(case["flags"])
    assert sidecar["parameters"]["iters"] == int(flags[flags.index("--iters") + 1])
    assert set(sidecar["parameters"]) <= {"iters", "base", "work", "halo"}


def test_runs_of_the_same_program_name_the_same_build() -> None:
    builds = {case["name"]: read(place, "gapwatch.json")["build"] for case, place in PLACES}
    assert len({builds[name] for name in builds if name.startswith("repeat-")}) == 1
    assert builds["clean-2"] == builds["clean-4"] != builds["imbalance-15"] != builds["imbalance-40"]


@pytest.mark.parametrize("place", UNDISTURBED, ids=[place.name for place in UNDISTURBED])
def test_the_program_took_the_time_that_it_was_given(place: Path) -> None:
    truth = read(place, "truth.json")
    given = by_rank(truth, "injected_s", COMPUTING)
    asleep = by_rank(truth, "injected_os_s", COMPUTING)
    taken = by_rank(truth, "measured_wall_s", COMPUTING)
    for work, sleep, wall in zip(given, asleep, taken, strict=True):
        assert work + sleep <= wall <= 1.05 * (work + sleep) + 0.005


@each_case
def test_nothing_names_the_machine(case: dict[str, Any], place: Path) -> None:
    named = [(case["name"], path.name) for path in files(place) for word in MACHINE if word in path.read_bytes()]
    assert not named


def test_the_recordings_are_small() -> None:
    sizes = {case["name"]: sum(path.stat().st_size for path in files(place)) for case, place in PLACES}
    assert max(sizes.values()) <= 64_000
    assert sum(sizes.values()) <= 4_000_000


def test_repeats_differ_only_in_what_was_measured() -> None:
    repeats = [read(place, "truth.json") for case, place in PLACES if case["name"].startswith("repeat-")]
    assert len(repeats) == 5
    assert all(truth["injected_s"] == repeats[0]["injected_s"] for truth in repeats)
    assert len({truth["loop_wall_s"] for truth in repeats}) == 5
