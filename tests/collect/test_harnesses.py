"""What ReFrame, Ramble and Adiak say of the build and the job of a run.

The documents have the layout of ReFrame 4.10 (a test that was run with ``--keep-stage-files``) and of Ramble's
``populate_inventory``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from daemon_runs import FIG4, profile

from advisor import pipeline
from advisor.collect.harnesses import find_record
from advisor.extension.host import load_plugins
from advisor.formats.caliper.run_globals import find_build, find_job

if TYPE_CHECKING:
    from pathlib import Path

INVENTORY = {
    "application_definition": "f0", "modifier_definitions": [], "attributes": [{"name": "variables", "digest": "aa"}],
    "inputs": [], "software": [{"name": "software/saxpy", "digest": "0123456789abcdef"}], "templates": [],
    "package_manager": [{"name": "spack", "version": "0.22.0", "digest": "bb"}],
}  # fmt: skip
TEST_CASE = {
    "__rfm_class__": "heat", "build_system": None, "executable": "./heat", "modules": ["cray/23.12", "heat/1.4"],
    "_rfm_display_name": "heat %size=128 %solver=cg", "_rfm_hashcode": "80a2e13e", "size": 128,
    "_job": {"_rfm_unique_name": "_SlurmJob", "_name": "rfm_heat_80a2e13e", "_jobid": "4712"},
}  # fmt: skip


def put(folder: Path, name: str, document: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return profile(folder / "run.json")


def advise(path: Path, top: Path) -> pipeline.Profile:
    host = load_plugins()
    [found] = host.find_profiles(path)
    return pipeline.read_recording(found, top, pipeline.Options(), host)


def test_the_software_of_an_experiment_is_its_build(tmp_path: Path) -> None:
    path = put(tmp_path / "saxpy" / "one", "ramble_inventory.json", INVENTORY)
    assert advise(path, tmp_path).build == "saxpy@0123456789ab"
    deep = profile(tmp_path / "saxpy" / "one" / "profiles" / "deep.json")
    assert advise(deep, tmp_path).build == "saxpy@0123456789ab", "of the directory above"
    two = {**INVENTORY, "software": [*INVENTORY["software"], {"name": "software/mpi", "digest": "ff"}]}
    more = put(tmp_path / "saxpy" / "two", "ramble_inventory.json", two)
    assert advise(more, tmp_path).build not in (None, "saxpy@0123456789ab")
    none = put(tmp_path / "saxpy" / "three", "ramble_inventory.json", {**INVENTORY, "software": []})
    assert advise(none, tmp_path).build is None


def test_a_test_tells_its_job_its_modules_and_its_parameters(tmp_path: Path) -> None:
    path = put(tmp_path / "stage", ".rfm_testcase.json", TEST_CASE)
    found = advise(path, tmp_path)
    assert (found.build, found.job) == ("cray/23.12; heat/1.4", "4712")
    assert {name: found.parameters[name] for name in ("size", "solver")} == {"size": 128.0, "solver": "cg"}
    built = {**TEST_CASE, "build_system": {"specs": ["heat@develop %gcc@13"]}}
    assert advise(put(tmp_path / "spack", ".rfm_testcase.json", built), tmp_path).build == "heat@develop %gcc@13"


def test_the_process_of_a_local_test_is_no_job_and_a_plain_test_has_no_build(tmp_path: Path) -> None:
    local = {**TEST_CASE, "modules": [], "_job": {"_rfm_unique_name": "_LocalJob", "_jobid": 8581}}
    found = advise(put(tmp_path, ".rfm_testcase.json", local), tmp_path)
    assert (found.build, found.job) == (None, None)


def test_what_the_user_states_goes_first(tmp_path: Path) -> None:
    path = put(tmp_path, "ramble_inventory.json", INVENTORY)
    (tmp_path / "gapwatch.json").write_text(json.dumps({"build": "mine", "parameters": {"size": 7}}), encoding="utf-8")
    (tmp_path / ".rfm_testcase.json").write_text(json.dumps(TEST_CASE), encoding="utf-8")
    assert advise(path, tmp_path).build == "mine"


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"software": 7}', '{"software": [{"name": 1}]}', "\0"])
@pytest.mark.parametrize("name", ["ramble_inventory.json", ".rfm_testcase.json"])
def test_what_is_no_record_says_nothing(tmp_path: Path, name: str, text: str) -> None:
    path = profile(tmp_path / "run.json")
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert find_record(path, tmp_path) is None
    assert advise(path, tmp_path).program == FIG4.get("program", path.stem)


def test_adiak_names_commit_and_job() -> None:
    told = {"Git Commit": "0a1b2c3d4e", "SLURM_JOBID": "4712", "user": "me"}
    assert (find_build(told), find_job(told)) == ("0a1b2c3d4e", "4712")
    assert find_build({"commit": "the last one"}) is None
    assert find_build({"git_hash": "0a1b2c3d4e-dirty"}) == "0a1b2c3d4e-dirty"
    assert find_job({"jobid": "x" * 200}) is None
    assert find_build({"committee": "0a1b2c3d4e"}) is None
