"""Files of Extra-P are read, and damaged ones refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from scaling_reports import asked, table
from scaling_runs import Serving, runs

from advisor.model.errors import InputError, UsageError
from advisor_scaling import collect, command, extrap_files
from advisor_scaling.linear import expressions

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
# a comment
PARAMETER p
PARAMETER n
POINTS ( 1 8 ) ( 2 8 ) ( 4 8 ) ( 1 16 ) ( 2 16 ) ( 4 16 )
REGION main->solve
METRIC time
DATA 8 8.1
DATA 4 4.1
DATA 2 2.1
DATA 16 16.1
DATA 8 8.1
DATA 4 4.1
"""


def test_the_text_format_of_extra_p(tmp_path: Path) -> None:
    (path := tmp_path / "input.txt").write_text(TEXT)
    assert extrap_files.is_extrap_file(path)
    (found,) = collect.from_measurements(extrap_files.read_measurements(path), path)
    assert found.parameters == ("p", "n")
    assert found.values.shape == (1, 6, 2)
    assert found.series[0].name == "main->solve"
    models = table(command.run_scale(asked(paths=[path]), Serving([])), "Models")
    assert models["main->solve"][2].endswith("n * p^(-1)") or "p^(-1) * n" in models["main->solve"][2]


def test_the_json_formats_of_extra_p(tmp_path: Path) -> None:
    new = {"parameters": ["p"], "measurements": {"main": {"time": [
        {"point": [p], "values": [p * 2.0, p * 2.1]} for p in (1, 2, 4)]}}}  # fmt: skip
    old = {
        "parameters": [{"id": 1, "name": "p"}], "callpaths": [{"id": 1, "name": "main"}],
        "metrics": [{"id": 1, "name": "time"}],
        "coordinates": [{"id": p, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": p}]}
                        for p in (1, 2, 4)],
        "measurements": [{"id": 9, "coordinate_id": p, "callpath_id": 1, "metric_id": 1, "value": p * factor}
                         for p in (1, 2, 4) for factor in (2.0, 2.1)],
    }  # fmt: skip
    rows = [json.dumps({"params": {"p": p}, "callpath": "main", "metric": "time", "value": p * factor})
            for p in (1, 2, 4) for factor in (2.0, 2.1)]  # fmt: skip
    found = []
    for name, text in (("new", json.dumps(new)), ("old", json.dumps(old)), ("lines", "\n".join(rows))):
        (path := tmp_path / f"{name}.json").write_text(text)
        assert extrap_files.is_extrap_file(path)
        found.append({key: dict(points) for key, points in extrap_files.read_measurements(path).values.items()})
    assert found[0] == found[1] == found[2] == {("main", "time"): {(p,): [p * 2.0, p * 2.1] for p in (1.0, 2.0, 4.0)}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT + "DATA 1\n", "line 13: more DATA than the 6 POINTS"),
        (TEXT.replace("DATA 8 8.1", "DATA 8 x", 1), "line 7: expected numbers"),
        (TEXT.replace("DATA 8 8.1", "DATA 8 nan", 1), "line 7: expected finite numbers"),
        (TEXT.replace("( 4 16 )", "( 4 )"), "line 4: 11 numbers are not points of 2 parameters"),
        (TEXT.replace("METRIC", "METRICS"), "line 6: expected one of"),
        ("PARAMETER p\nPOINTS 1 2 3\n", "no measurements"),
        ('{"parameters": ["p"], "measurements": {"a": {"b": [{"point": [1]}]}}}', "no 'values'"),
        ('{"parameters": ["p"], "measurements": {"a": {"b": [{"point": [NaN], "values": [1]}]}}}', "not a number"),
        ('{"parameters": ["p"], "measurements": {"a": {"b": [{"point": [1, 2], "values": [1]}]}}}', "2 coordinates"),
        ('{"parameters": ["p"], "measurements": [', "not Extra-P's JSON"),
    ],
)
def test_damaged_files_of_extra_p(text: str, words: str, tmp_path: Path) -> None:
    (path := tmp_path / "input").write_text(text)
    with pytest.raises(InputError, match=words):
        extrap_files.read_measurements(path)


def test_other_files_are_not_claimed(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF", b"hello world\n", b'{"schema": "gapwatch/profile/1", "parameters": {}}'):
        (path := tmp_path / "file").write_bytes(content)
        assert not extrap_files.is_extrap_file(path)
    assert not extrap_files.is_extrap_file(tmp_path)


def test_what_begins_behind_a_knee_can_be_written_and_read_again() -> None:
    n = expressions.make_symbol("N")
    sympy = expressions.require_sympy()
    found = 2 * sympy.Piecewise((n**2, n > 4), (0, True)) + sympy.Min(n, 8) * sympy.ceiling(n / 3)
    again = expressions.parse_formula(expressions.format_expression(found), ["N"])
    for value in (1, 4, 4.5, 5, 100):
        assert float(again.subs({n: value})) == float(found.subs({n: value}))


def extra_p(tmp_path: Path, values: dict[float, float]) -> Path:
    """Return a file of Extra-P with one value at each N."""
    path = tmp_path / "file.txt"
    points = " ".join(f"{n:g}" for n in values)
    lines = (
        "PARAMETER N",
        f"POINTS {points}",
        "REGION solve",
        "METRIC time",
        *(f"DATA {v!r}" for v in values.values()),
    )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({100: 0.0, 200: 0.0, 400: 0.0, 800: 0.0}, "no value is above 0 at any point: solve"),
        ({100: -1.0, 200: -1.0, 400: -2.0, 800: -3.0}, "no value is above 0 at any point: solve"),
        ({0: 1.0, 200: 1.1, 400: 1.2, 800: 1.3}, "N is 0 at some points"),
    ],
)
def test_what_no_power_describes_is_refused(tmp_path: Path, values: dict[float, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        command.run_scale(asked(paths=[extra_p(tmp_path, values)]), Serving([]))


def test_a_time_of_zero_does_not_outweigh_all_others(tmp_path: Path) -> None:
    path = extra_p(tmp_path, {100: 1e-5, 200: 4e-5, 400: 1.6e-4, 800: 0.0, 1600: 0.0})
    study_of = collect.from_measurements(extrap_files.read_measurements(path), path)[0]
    assert study_of.scale[0].tolist() == pytest.approx([1e-5, 4e-5, 1.6e-4, 1e-5, 1e-5])
    found = table(command.run_scale(asked(paths=[path], predict=["N=3200"]), Serving([])), "Predictions")
    assert found["3200.0"][4] > 1e-6


def test_parameters_below_zero_are_told() -> None:
    profiles = [replace(each, parameters={**each.parameters, "level": 0}) for each in runs()]
    assert any("level" in note for note in collect.from_profiles(profiles).notes)
