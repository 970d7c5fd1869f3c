"""What Extra-P reads: its texts, every layout of JSON, TALPAS, and the experiments that it saves."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from advisor.model.errors import InputError
from advisor_scaling import collect, extrap_files

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "PARAMETER\tp\nPOINTS\t(1)\t(2)\t(4)\nREGION\tmain\nMETRIC\ttime\nDATA\t1 1.1\nDATA\t2 2.1\nDATA\t4 4.1\n"
TALPAS = "".join(
    f'{{"parameters":{{"p":{p}}};"metric":"time";"callpath":"a;b";"value":{p + repeat / 10}}}\n'
    for p in (1, 2, 4)
    for repeat in (0, 1)
)
LINES = "\n".join(f'{{"params":{{"p":{p}}},"metric":"time","callpath":"main","value":[{p},{p}.1]}}' for p in (1, 2, 4))
LEGACY = {
    "callpaths": [{"id": 1, "name": "x" * 5000}],
    "coordinates": [
        {"id": n, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": p}]} for n, p in enumerate((1, 2, 4))
    ],
    "measurements": [
        {"callpath_id": 1, "metric_id": 1, "coordinate_id": n, "value": float(p)} for n, p in enumerate((1, 2, 4))
    ],
    "metrics": [{"id": 1, "name": "time"}],
    "parameters": [{"id": 1, "name": "p"}],
}
EXPERIMENT = {
    "Extra-P": "4.2.0",
    "parameters": ["p"],
    "measurements": {
        "main": {
            "time": [
                {"coordinate": [float(p)], "median": p + 0.05, "mean": p + 0.05, "minimum": p, "maximum": p + 0.1}
                | {"std": 0.05, "values": None}
                for p in (1, 2, 4)
            ]
        }
    },
}


def written(folder: Path, kind: str) -> Path:
    texts = {"text": TEXT, "talpas": TALPAS, "lines": LINES, "legacy": json.dumps(LEGACY, indent=4)}
    file = folder / f"{kind}.file"
    if kind in texts:
        file.write_text(texts[kind])
        return file
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("experiment.json", json.dumps(EXPERIMENT))
    return file


@pytest.mark.parametrize("kind", ["text", "talpas", "lines", "legacy", "experiment"])
def test_every_format_makes_a_study(tmp_path: Path, kind: str) -> None:
    file = written(tmp_path, kind)
    assert extrap_files.is_extrap_file(file)
    (study,) = collect.from_measurements(extrap_files.read_measurements(file), file)
    assert study.points[:, 0].tolist() == [1.0, 2.0, 4.0]


def test_semicolons_in_names_stay(tmp_path: Path) -> None:
    found = extrap_files.read_measurements(written(tmp_path, "talpas"))
    assert list(found.values) == [("a;b", "time")]
    assert found.values["a;b", "time"][2.0,] == [2.0, 2.1]


def test_an_experiment_without_values_has_its_spread(tmp_path: Path) -> None:
    found = extrap_files.read_measurements(written(tmp_path, "experiment"))
    assert found.values["main", "time"][4.0,] == pytest.approx([4.0, 4.05, 4.1])


def test_damaged_experiments_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "experiment")
    whole = file.read_bytes()
    assert not extrap_files.is_extrap_file(tmp_path / "nothing")
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        if extrap_files.is_extrap_file(file):
            try:
                extrap_files.read_measurements(file)
            except InputError:
                continue
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("other.json", "{}")
    assert not extrap_files.is_extrap_file(file)
