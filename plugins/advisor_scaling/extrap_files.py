"""Measurements in the formats of Extra-P, as studies by metric: its text, all of its JSON, TALPAS, and experiments."""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from advisor.model.errors import InputError

Point = tuple[float, ...]
SIZE_LIMIT: Final = 64 << 20
_ZIP: Final = b"PK\x03\x04"
_INNER: Final = "experiment.json"
#: A line of TALPAS: JSON with semicolons where commas belong; those inside of strings stay.
_TALPAS: Final = re.compile(r'\s*\{\s*"parameters"\s*:\s*\{[^{}]*\}\s*[;,]')
_SEPARATOR: Final = re.compile(r'"(?:[^"\\]|\\.)*"|;')
_WORDS: Final = ("PARAMETER", "POINTS", "REGION", "METRIC", "DATA", "EXPERIMENT")


@dataclass(slots=True)
class Measurements:
    """Values by (region, metric) and point; ``parameters`` in the order of the coordinates of a point."""

    parameters: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], dict[Point, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP


def _is_experiment(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return _INNER in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def _experiment(path: Path) -> str:
    """Return the document in an experiment that Extra-P saved; ``InputError`` where it is damaged or too large."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_INNER).file_size > SIZE_LIMIT:
                raise InputError(path, f"unpacks to more than {SIZE_LIMIT >> 20} MB")
            with archive.open(_INNER) as inner:
                return inner.read(SIZE_LIMIT).decode("utf-8")
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, UnicodeDecodeError, NotImplementedError) as error:
        raise InputError(path, f"no experiment of Extra-P: {error}") from None


def is_extrap_file(path: Path) -> bool:
    """Return whether the file is in one of Extra-P's formats."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    if head.startswith(_ZIP):
        return _is_experiment(path)
    if head.lstrip()[:1] == b"{":
        lines = b'"params"' in head and b'"value"' in head
        legacy = b'"callpaths"' in head or b'"coordinates"' in head
        return lines or legacy or b'"measurements"' in head or (b'"parameters"' in head and b"gapwatch/" not in head)
    words = [line.split()[0] for line in head.splitlines() if line.split() and not line.startswith(b"#")]
    return bool(words) and words[0] in (b"PARAMETER", b"EXPERIMENT") and set(words[:-1]) <= {w.encode() for w in _WORDS}


def read_measurements(path: Path) -> Measurements:
    """Return what the file holds; ``InputError`` with the place of what is wrong with it."""
    if path.stat().st_size > SIZE_LIMIT:
        raise InputError(path, f"larger than {SIZE_LIMIT >> 20} MB")
    text = _experiment(path) if _is_zip(path) else path.read_text(encoding="utf-8", errors="surrogateescape")
    found = _read_json(path, text) if text.lstrip().startswith("{") else _read_text(path, text)
    if not found.values:
        raise InputError(path, "no measurements in it")
    return found


def _read_text(path: Path, text: str) -> Measurements:
    found = Measurements()
    points: list[Point] = []
    region, metric, at = "", "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        word, rest = (*line.split(maxsplit=1), "", "")[:2]
        if not word or word.startswith("#"):
            continue
        place = f"line {number}"
        if word == "PARAMETER":
            found.parameters += rest.split()
        elif word == "POINTS":
            # `( 1 2 ) ( 1 4 )` or, for one parameter, `1 2 4` as tuples
            parameters = len(found.parameters)
            if parameters == 0:
                raise InputError(path, "POINTS before any PARAMETER", place)
            numbers = _parse_numbers(path, place, rest.replace("(", " ").replace(")", " ").replace(",", " "))
            if len(numbers) % parameters:
                raise InputError(path, f"{len(numbers)} numbers are not points of {parameters} parameters", place)
            points += [tuple(numbers[at : at + parameters]) for at in range(0, len(numbers), parameters)]
        elif word in ("REGION", "METRIC"):
            region, metric = (rest.strip(), metric) if word == "REGION" else (region, rest.strip())
            at = 0
        elif word == "DATA":
            if at >= len(points):
                raise InputError(path, f"more DATA than the {len(points)} POINTS", place)
            found.values[region, metric][points[at]] += _parse_numbers(path, place, rest)
            at += 1
        elif word != "EXPERIMENT":
            raise InputError(path, f"expected one of {', '.join(_WORDS)}, not {word[:40]!r}", place)
    return found


def _parse_numbers(path: Path, place: str, text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError as error:
        raise InputError(path, f"expected numbers: {error}", place) from None
    if not all(map(math.isfinite, numbers)):
        raise InputError(path, "expected finite numbers", place)
    return numbers


def _read_json(path: Path, text: str) -> Measurements:
    try:
        found = Measurements()
        for region, metric, point, values in _iterate_rows(text, found):
            place = tuple(float(each) for each in point)
            if len(place) != len(found.parameters):
                raise ValueError(f"a point has {len(place)} coordinates for {len(found.parameters)} parameters")
            numbers = [float(value) for value in values]
            if not all(map(math.isfinite, (*numbers, *place))):
                raise ValueError("expected finite numbers")
            found.values[region, metric][place] += numbers
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"no {error} where Extra-P has one" if isinstance(error, KeyError) else str(error)
        raise InputError(path, f"not Extra-P's JSON: {reason}") from None
    return found


def _iterate_rows(text: str, found: Measurements) -> Iterator[tuple[str, str, Any, Any]]:
    """Return region, metric, point and values of each row of any of the layouts."""
    lines = [line for line in text.split("\n") if line.strip()]
    if _TALPAS.match(lines[0]):
        lines = [_SEPARATOR.sub(lambda part: "," if part[0] == ";" else part[0], line) for line in lines]
    if '"params"' in lines[0] or _TALPAS.match(lines[0]):
        return _iterate_line_rows([json.loads(line, parse_constant=_refuse_constant) for line in lines], found)
    root = json.loads(text, parse_constant=_refuse_constant)
    return _iterate_legacy_rows(root, found) if "callpaths" in root else _iterate_current_rows(root, found)


def _iterate_line_rows(rows: list[Any], found: Measurements) -> Iterator[tuple[str, str, Any, Any]]:
    key = "params" if "params" in rows[0] else "parameters"
    found.parameters += [str(name) for name in rows[0][key]]
    for row in rows:
        point = [row[key][name] for name in found.parameters]
        values = row["value"] if isinstance(row["value"], list) else [row["value"]]
        yield str(row.get("callpath", "")), str(row.get("metric", "")), point, values


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _iterate_current_rows(root: Any, found: Measurements) -> Iterator[tuple[str, str, Any, Any]]:  # noqa: ANN401
    found.parameters += [str(name) for name in root["parameters"]]
    for region, metrics in root["measurements"].items():
        for metric, rows in metrics.items():
            for row in rows:
                point = row["point"] if "point" in row else row["coordinate"]
                kept = row.get("values") or "median" not in row
                yield region, metric, point, row["values"] if kept else _repeats(row)


def _repeats(row: Any) -> list[float]:  # noqa: ANN401
    """Return values with the least, median and most that an experiment keeps where it dropped the values."""
    least, median, most = float(row["minimum"]), float(row["median"]), float(row["maximum"])
    return [least, median, most] if least < most else [median]


def _iterate_legacy_rows(root: Any, found: Measurements) -> Iterator[tuple[str, str, Any, Any]]:  # noqa: ANN401
    parameters = sorted(root["parameters"], key=lambda each: each["id"])
    found.parameters += [str(parameter["name"]) for parameter in parameters]
    regions = {each["id"]: str(each["name"]) for each in root["callpaths"]}
    metrics = {each["id"]: str(each["name"]) for each in root["metrics"]}
    coordinates = {each["id"]: _parse_coordinate(each, parameters) for each in root["coordinates"]}
    for row in root["measurements"]:
        point = coordinates[row["coordinate_id"]]
        yield regions[row["callpath_id"]], metrics[row["metric_id"]], point, [row["value"]]


def _parse_coordinate(row: Any, parameters: Any) -> list[float]:  # noqa: ANN401
    pairs = {pair["parameter_id"]: pair["parameter_value"] for pair in row["parameter_value_pairs"]}
    return [float(pairs[parameter["id"]]) for parameter in parameters]
