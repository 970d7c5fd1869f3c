from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from native_documents import PROFILES

from advisor.collect import sidecar
from advisor.formats import native
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

FIGURE = native.advisor_read(PROFILES / "fig4.json")
ALL = {
    **{"schema": "gapwatch/sidecar/1", "build": "v1.3-2-gabc", "machine": "epyc", "host": "n17", "language": "fortran"},
    **{"cores": 64, "ranks_expected": 128, "source_root": "src", "parameters": {"n": 512, "solver": "cg"}},
}


def applied(folder: Path, said: object, **environment: str) -> Profile:
    (folder / "gapwatch.json").write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    return sidecar.apply_sidecar(FIGURE, folder / "profile", environment)


def test_a_sidecar_above_the_files_of_a_profile_counts_up_to_the_directory_that_was_named(tmp_path: Path) -> None:
    run = tmp_path / "outside" / "run" / "trace" / "files"
    run.mkdir(parents=True)
    (tmp_path / "gapwatch.json").write_text('{"build": "far"}')
    top = tmp_path / "outside" / "run"
    assert sidecar.read_sidecar(run / "log", top) is None
    (tmp_path / "outside" / "gapwatch.json").write_text('{"build": "beside"}')
    assert sidecar.read_sidecar(run / "log", top) == sidecar.Sidecar(build="beside")
    (run.parent / "gapwatch.json").write_text('{"build": "near"}')
    assert sidecar.read_sidecar(run / "log", top) == sidecar.Sidecar(build="near")


def test_a_profile_takes_what_its_sidecar_says(tmp_path: Path) -> None:
    profile = applied(tmp_path, ALL)
    assert (profile.build, profile.machine, profile.language) == ("v1.3-2-gabc", "epyc", "fortran")
    assert (profile.cores, profile.ranks_expected) == (64, 128)
    assert [processor.host for processor in profile.processors] == ["n17", "n17"]
    assert profile.parameters == {"n": 512, "solver": "cg"}
    assert profile.phases is FIGURE.phases


def test_what_the_sidecar_does_not_say_stays(tmp_path: Path) -> None:
    before = applied(tmp_path, {"build": "v1", "cores": 8, "parameters": {"n": 1, "m": 2}})
    (tmp_path / "gapwatch.json").write_text('{"parameters": {"n": 3}, "build": null}', encoding="utf-8")
    after = sidecar.apply_sidecar(before, tmp_path / "profile", {})
    assert (after.build, after.cores, after.parameters) == ("v1", 8, {"n": 3, "m": 2})


@pytest.mark.parametrize("said", ["P=1024 N=8192.5 machine=big", {"P": 1024, "N": 8192.5, "machine": "big"}])
def test_the_run_that_is_meant_is_text_or_an_object(tmp_path: Path, said: object) -> None:
    profile = applied(tmp_path, {"target": said, "parameters": {"n": 3}})
    assert profile.parameters == {"n": 3, "target": "P=1024 N=8192.5 machine=big"}


def applied_path(folder: Path, said: object) -> Path:
    (folder / "gapwatch.json").write_text(json.dumps(said), encoding="utf-8")
    return folder / "profile"


def test_the_environment_names_the_build_where_nobody_else_does(tmp_path: Path) -> None:
    named = {"GAPWATCH_BUILD": " v9 "}
    assert sidecar.apply_sidecar(FIGURE, tmp_path / "profile", named).build == "v9"
    assert sidecar.apply_sidecar(FIGURE, tmp_path / "profile", {"GAPWATCH_BUILD": " "}).build is None
    assert applied(tmp_path, {"build": "v1"}, **named).build == "v1"
    assert applied(tmp_path, {"cores": 2}, **named).build == "v9"


def test_a_directory_has_its_sidecar_inside_or_beside(tmp_path: Path) -> None:
    run = tmp_path / "run_trace"
    run.mkdir()
    assert sidecar.find_sidecar(run) is None
    (tmp_path / "gapwatch.json").write_text('{"build": "outer"}', encoding="utf-8")
    assert sidecar.read_sidecar(run) == sidecar.Sidecar(build="outer")
    (run / "gapwatch.json").write_text('{"build": "inner"}', encoding="utf-8")
    assert sidecar.read_sidecar(run) == sidecar.Sidecar(build="inner")


def test_the_source_root_is_relative_to_the_sidecar(tmp_path: Path) -> None:
    said = sidecar.read_sidecar(applied_path(tmp_path, {"source_root": "../src"}))
    assert said is not None
    assert said.source_root == tmp_path / "../src"


def test_a_profile_of_the_name_is_no_sidecar_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "gapwatch.json"
    path.write_bytes((PROFILES / "fig4.json").read_bytes())
    assert sidecar.read_sidecar(path) is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('{"build": "v1"', "gapwatch.json:1:15: Expecting ',' delimiter"),
        ({"buidl": "v1"}, "unknown key \"buidl\" (did you mean 'build'?)"),
        ({"build": 3}, "build: expected a string, found 3"),
        ({"build": " "}, "build: is empty"),
        ({"cores": 0}, "cores: expected an integer of at least 1"),
        ({"cores": "8"}, 'cores: expected an integer, found "8"'),
        ({"ranks_expected": 2.5}, "ranks_expected: expected an integer, found 2.5"),
        ({"parameters": {"n": None, "m": True}}, "parameters.m: expected a number, found true"),
        ({"schema": "gapwatch/sidecar/2"}, "did you mean 'gapwatch/sidecar/1'"),
        ('{"build": "a", "build": "b"}', 'the key "build" occurs twice'),
        ([], "expected an object"),
    ],
)
def test_a_mistake_in_the_sidecar_is_named(tmp_path: Path, said: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        applied(tmp_path, said)
    assert message in str(caught.value)
