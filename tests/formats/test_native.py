from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from native_documents import FULL, PROFILES, changed, written
from profile_strategies import plain, profiles

from advisor.formats import native, native_writer
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import Profile

SCHEMA = jsonschema.Draft202012Validator(native.load_schema())

# Reading


def test_the_figures_of_the_paper_are_two_synchronized_regions_each() -> None:
    figure = native.advisor_read(PROFILES / "fig4.json")
    assert [phase.name for phase in figure.phases] == ["region 1", "region 2"]
    assert [phase.kind for phase in figure.phases] == ["parallel", "parallel"]
    assert figure.actual_s == 47
    assert figure.phases[0].arrays["work_s"].tolist() == [[[10, 5], [5, 6]]]
    assert figure.phases[1].arrays["work_s"].tolist() == [[[10, 15], [15, 16]]]
    assert native.advisor_read(PROFILES / "fig5.json").actual_s == 60


def test_everything_that_a_document_states_is_read(tmp_path: Path) -> None:
    profile = native.advisor_read(written(tmp_path, FULL))
    stated: Any = plain(profile)
    for name in ("program", "run", "reader", "actual_s", "build", "started", "machine", "cores", "language", "status"):
        assert stated[name] == FULL[name]
    assert profile.paradigms == ("mpi", "openmp")
    assert profile.parameters == {"n": 4096, "solver": "cg"}
    assert [processor.name for processor in profile.processors] == ["rank 0", "rank 0 thread 1"]
    assert (profile.regions[0].file, profile.regions[0].line, profile.regions[0].threaded) == ("heat.c", 12, True)
    assert profile.phases[0].arrays["wall_s"].shape == (2, 2, 2)
    assert profile.phases[1].arrays["wall_s"].tolist() == [[[0.5], [0.25]]]
    assert profile.counts["messages"].tolist() == [[0, 0], [16, 12]]
    assert profile.causes is not None
    assert profile.causes.kinds == ("late sender",)
    assert profile.notes[0].collect == "date"


def test_measures_of_regions_without_synchronization_make_one_whole_phase(tmp_path: Path) -> None:
    regions = [{"name": "a", "wall_s": [1, 2]}, {"name": "b", "wall_s": [3, 4]}]
    document = {**changed("phases", to=None), "regions": regions, "causes": None, "status": None}
    profile = native.advisor_read(written(tmp_path, document))
    assert not profile.has_phases
    assert profile.phases[0].arrays["wall_s"].tolist() == [[[1], [2]], [[3], [4]]]


def test_measures_beside_the_regions_are_cut_into_phases_where_they_are_synchronized(tmp_path: Path) -> None:
    document = {**changed("phases", to=None), "causes": None, "wall_s": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]}
    whole = native.advisor_read(written(tmp_path, document))
    assert whole.phases[0].arrays["wall_s"].shape == (2, 2, 2)
    phases = native.advisor_read(written(tmp_path, {**document, "synchronized": True})).phases
    assert [phase.arrays["wall_s"].tolist() for phase in phases] == [[[[1, 2], [3, 4]]], [[[5, 6], [7, 8]]]]
    assert [phase.regions.tolist() for phase in phases] == [[0], [1]]


def test_a_measure_with_a_missing_value_is_absent_and_noted(tmp_path: Path) -> None:
    document = changed("phases", 0, "os_s", 1, 0, 1, to=None)
    profile = native.advisor_read(written(tmp_path, document))
    assert set(profile.phases[0].arrays) == {"wall_s"}
    assert [note.text for note in profile.notes if note.name == "missing values"] == [
        "phases[0].os_s holds null, so it is left out"
    ]


def test_null_is_the_same_as_leaving_out(tmp_path: Path) -> None:
    optional = [name for name in FULL if name not in ("schema", "program", "run", "actual_s", "processors", "regions")]
    optional.remove("phases")
    nothing = native.advisor_read(written(tmp_path, {**FULL, **dict.fromkeys(optional)}))
    left_out = native.advisor_read(written(tmp_path, {key: FULL[key] for key in FULL if key not in optional}))
    assert plain(nothing) == plain(left_out)


def test_a_byte_order_mark_is_no_part_of_the_document(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(FULL).encode())
    assert native.advisor_sniff(path) == 1
    assert native.advisor_read(path).program == "heat"


# Writing


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@settings(max_examples=60, deadline=None)
@given(profile=profiles())
def test_what_is_written_is_read_back(suffix: str, profile: Profile) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"run{suffix}")
        native_writer.write_profile(profile, path)
        assert [entry.name for entry in Path(folder).iterdir()] == [path.name]
        assert native.advisor_sniff(path) == 1
        assert plain(native.advisor_read(path)) == plain(profile)


@settings(max_examples=40, deadline=None)
@given(profile=profiles())
def test_what_is_written_fits_the_schema(profile: Profile) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.json")
        native_writer.write_profile(profile, path)
        SCHEMA.validate(json.loads(path.read_text(encoding="utf-8")))


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    profile = native.advisor_read(PROFILES / "fig4.json")
    profile.phases[0].arrays["work_s"][0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="JSON"):
        native_writer.write_profile(profile, tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


# Recognising


def test_recognises_by_content_and_not_by_name(tmp_path: Path) -> None:
    native_writer.write_profile(native.advisor_read(PROFILES / "fig4.json"), tmp_path / "run.npz")
    (tmp_path / "trace.otf2").write_bytes((PROFILES / "fig4.json").read_bytes())
    (tmp_path / "archive").write_bytes((tmp_path / "run.npz").read_bytes())
    (tmp_path / "other.json").write_text('{"schema": "somebody/else/1"}', encoding="utf-8")
    (tmp_path / "empty.json").write_bytes(b"")
    np.savez(tmp_path / "other.npz", profile=np.array("a string"), work=np.zeros(3))
    sure = {entry.name: native.advisor_sniff(entry) for entry in tmp_path.iterdir()}
    assert sure == {
        **{"run.npz": 1, "trace.otf2": 1, "archive": 1},
        **{"other.json": None, "empty.json": None, "other.npz": None},
    }
    assert native.advisor_sniff(tmp_path) is None


def test_recognises_a_document_whose_keys_are_sorted(tmp_path: Path) -> None:
    document = {**FULL, "notes": [{"name": "long", "text": "x" * 9_999}] * 20}
    path = written(tmp_path, json.dumps(document, sort_keys=True))
    assert native.advisor_sniff(path) == 1


def test_a_later_version_is_recognised_and_named(tmp_path: Path) -> None:
    path = written(tmp_path, changed("schema", to="gapwatch/profile/2"))
    assert native.advisor_sniff(path) == 1
    with pytest.raises(InputError, match=r"gapwatch/profile/2.*too old"):
        native.advisor_read(path)


@pytest.mark.parametrize("name", ["fig4.json", "fig5.json"])
def test_the_schema_accepts_our_examples(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(native.load_schema())
    SCHEMA.validate(json.loads((PROFILES / name).read_text(encoding="utf-8")))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a file"):
        native.advisor_read(tmp_path)
