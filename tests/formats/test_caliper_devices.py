"""A program of devices of which Caliper saw the host alone is never called healthy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from advisor import pipeline
from advisor.extension.host.plugin_host import load_plugins
from advisor.formats.caliper.call_path_builder import note_unseen_devices
from advisor.formats.caliper.metrics import parse_meaning
from advisor.model.records import DEVICES_UNSEEN
from advisor.trace.callpaths.records import CallPathNode
from advisor.trace.events import Role

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("told", "function", "model"),
    [
        ({"cuda_compiler_version": "10.2.89"}, "main", "CUDA"),
        ({"libraries": "[/lib64/libc.so.6,/opt/rocm/lib/libamdhip64.so.5]"}, "main", "HIP"),
        ({}, "cudaDeviceSynchronize", "CUDA"),
        ({"compiler": "g++-10", "relationship": "none", "libraries": "[/lib64/libcudd.so]"}, "cuboid", None),
    ],
)
def test_models_of_devices(told: dict[str, str], function: str, model: str | None) -> None:
    found = note_unseen_devices(told, [CallPathNode(function, Role.USER)])
    assert [note.text.split(",")[0].rpartition(" ")[2] for note in found] == ([model] if model else [])


@pytest.mark.parametrize(("told", "verdict"), [({}, "nothing significant"), ({"cuda.version": "12"}, None)])
def test_no_verdict_on_the_host_alone(tmp_path: Path, told: dict[str, str], verdict: str | None) -> None:
    document = {
        "data": [[5.0, 0], [3.0, 1]],
        "columns": ["time", "path"],
        "column_metadata": [{"is_value": True}, {"is_value": False}],
        "nodes": [{"label": "solve", "column": "path"}, {"label": "assemble", "column": "path"}],
        **told,
    }
    (tmp_path / "region_profile.json").write_text(json.dumps(document))
    advice = pipeline.advise([tmp_path], pipeline.Options(), load_plugins())
    assert advice.verdict == (verdict or "insufficient evidence")
    assert (DEVICES_UNSEEN in {note.name for note in advice.grade.notes}) == (verdict is None)


@pytest.mark.parametrize(
    ("name", "inclusive", "unit_s"),
    [
        ("inclusive#scale#sum#cupti.host.duration", True, 1.0),
        ("scale#sum#cupti.host.duration", False, 1.0),
        ("sum#rocm.host.duration", False, 1e-9),
        ("sum#cupti.activity.duration", None, None),
    ],
)
def test_the_time_of_the_host_beside_activities(name: str, inclusive: bool | None, unit_s: float | None) -> None:
    """What Caliper calls the host's duration is the time of a region; that of activities is the device's."""
    found = parse_meaning(name)
    assert (found and found.inclusive, found and found.unit_s) == (inclusive, unit_s)
    assert found is None or found.unit_stated
