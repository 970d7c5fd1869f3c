"""``gapwatch convert``: each format as the tool reads it that it is made for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest

from advisor import pipeline
from advisor.cli.convert import TARGETS
from advisor.cli.entry import main
from advisor.extension import host
from advisor.formats import table_writers, timeline_writers
from advisor.formats.table_rows import iterate_batches
from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.model.records import Profile

PROFILES = Path(__file__).parents[1] / "profiles"
TRACE = PROFILES / "otf2" / "scorep-multiphase"
TOTALS = PROFILES / "fig4.json"
THREADS = PROFILES / "otf2" / "scorep-threads"
SCHEMAS = Path(__file__).parents[1] / "schemas"


def convert(source: Path, target: str, folder: Path) -> Path:
    path = folder / f"run.{target}"
    assert main(["convert", str(source), "--to", target, "-o", str(path)]) == 0
    return path


def read(source: Path) -> Profile:
    return pipeline.read_chosen_run([source], pipeline.Options(), host.load_plugins())[0]


def seconds(profile: Profile, measure: str = "work_s") -> float:
    return sum(float(phase.arrays[measure].sum()) for phase in profile.phases if measure in phase.arrays)


def document(path: Path, schema: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(found, json.loads((SCHEMAS / schema).read_text()))
    return found


@pytest.mark.parametrize("source", [TRACE, TOTALS], ids=["trace", "totals"])
def test_pandas_reads_the_table(source: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    frame = pandas.read_csv(convert(source, "pandas", tmp_path))
    profile = read(source)
    for measure in profile.status:
        if measure in frame:
            assert frame[measure].sum() == pytest.approx(seconds(profile, measure))
    assert set(frame["rank"]) == {processor.rank for processor in profile.processors}
    assert list(frame["phase"].unique()) == list(dict.fromkeys(phase.name for phase in profile.phases))


def test_pyarrow_reads_the_same_table(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason='needs pyarrow: pip install "pyarrow>=14"')
    table = parquet.read_table(convert(TRACE, "parquet", tmp_path))
    rows = [dict(zip(columns, row, strict=True)) for columns in iterate_batches(read(TRACE))
            for row in zip(*columns.values(), strict=True)]  # fmt: skip
    assert table.to_pylist() == rows
    assert table.schema.metadata[b"gapwatch.program"].decode() == read(TRACE).program


def test_without_pyarrow_the_message_is_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_writers.importlib.util, "find_spec", lambda name: None)
    assert main(["convert", str(TOTALS), "--to", "parquet", "-o", str(tmp_path / "run.parquet")]) == 2
    assert 'pip install "pyarrow>=14"' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", [TRACE, TOTALS, THREADS], ids=["trace", "totals", "threads"])
def test_hatchet_reads_the_tree(source: Path, tmp_path: Path) -> None:
    hatchet = pytest.importorskip("hatchet", reason="needs hatchet: pip install llnl-hatchet")
    path = convert(source, "hatchet", tmp_path)
    graph = hatchet.GraphFrame.from_caliper(str(path))
    frame = graph.dataframe
    assert frame.index.is_unique
    assert graph.filter(lambda row: row["time"] > 0).dataframe["time"].sum() == pytest.approx(frame["time"].sum())
    profile = read(source)
    first = (
        "wall_s" if any("wall_s" in phase.arrays for phase in profile.phases) else next(iter(profile.phases[0].arrays))
    )
    assert frame["time"].sum() == pytest.approx(seconds(profile, first))
    assert {phase.name for phase in profile.phases} | {region.name for region in profile.regions} >= set(
        frame["name"]
    ) - {profile.program}


def test_of_threads_each_node_has_one_row_a_processor(tmp_path: Path) -> None:
    written = json.loads(convert(THREADS, "hatchet", tmp_path).read_text(encoding="utf-8"))
    profile = read(THREADS)
    assert written["columns"][:3] == ["Node order", "path", "mpi.rank"]
    assert written["processors"] == [processor.name for processor in profile.processors]
    pairs = [(row[1], row[2]) for row in written["data"]]
    assert len(set(pairs)) == len(pairs) == len(written["nodes"]) * len(profile.processors)
    assert sum(row[3] for row in written["data"]) == pytest.approx(seconds(profile, "wall_s"))


def test_our_own_reader_of_caliper_reads_the_tree(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    convert(TRACE, "hatchet", tmp_path).rename(path)
    found = read(path)
    assert found.reader == "caliper"
    assert found.ranks == read(TRACE).ranks


def test_chrome_events_nest_and_cover_the_trace(tmp_path: Path) -> None:
    events = document(convert(TRACE, "chrome-trace", tmp_path), "chrome-trace.json")["traceEvents"]
    trace = host.load_plugins().read_trace(host.load_plugins().find_profiles(TRACE)[0])
    begins = [event for event in events if event["ph"] == "B"]
    assert len(begins) == int((trace.kind == Kind.ENTER).sum())
    assert len(begins) == sum(event["ph"] == "E" for event in events)
    depth: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], float] = {}
    for event in events:
        if event["ph"] == "M":
            continue
        place = event["pid"], event["tid"]
        depth[place] = depth.get(place, 0) + (1 if event["ph"] == "B" else -1)
        assert depth[place] >= 0
        assert event["ts"] >= last.get(place, 0.0)
        last[place] = event["ts"]
    assert set(depth.values()) == {0}
    assert len(depth) == len(trace.locations)


def test_totals_have_no_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(TOTALS), "--to", "chrome-trace", "-o", str(tmp_path / "run.json")]) == 2
    assert "--to speedscope shows those" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_speedscope_shows_events_or_totals(tmp_path: Path) -> None:
    timeline = document(convert(TRACE, "speedscope", tmp_path), "speedscope.json")
    for profile in timeline["profiles"]:
        stack: list[int] = []
        for event in profile["events"]:
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
            assert 0 <= event["at"] <= profile["endValue"]
        assert not stack
    totals = document(convert(TOTALS, "speedscope", tmp_path), "speedscope.json")
    found = read(TOTALS)
    assert sum(sum(profile["weights"]) for profile in totals["profiles"]) == pytest.approx(seconds(found))


def test_native_is_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    assert main(["convert", str(TRACE), "--to", "native", "-o", str(path)]) == 0
    assert seconds(read(path), "wall_s") == pytest.approx(seconds(read(TRACE), "wall_s"))


@pytest.mark.parametrize("folder", ["callgrind", "cachegrind", "gprof"])
def test_native_keeps_runs_without_a_run_time(folder: str, tmp_path: Path) -> None:
    source = min(one for one in (PROFILES / folder).iterdir() if one.is_dir())
    found, again = read(source), read(convert(source, "native", tmp_path))
    assert not found.has_run_time
    assert not again.has_run_time
    assert found.counts.keys() == again.counts.keys()
    assert [phase.arrays.keys() for phase in found.phases] == [phase.arrays.keys() for phase in again.phases]


@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"native"}))
def test_counts_without_seconds_are_said_to_fit_native_only(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = PROFILES / "callgrind" / "small"
    assert main(["convert", str(source), "--to", target, "-o", str(tmp_path / "run")]) == 2
    assert "holds counts and no seconds: --to native keeps those" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_calls_that_never_end_are_closed(tmp_path: Path) -> None:
    trace = host.load_plugins().read_trace(host.load_plugins().find_profiles(TRACE)[0])
    from dataclasses import replace

    kind = trace.kind.copy()
    kind[np.flatnonzero(kind == Kind.LEAVE)[::3]] = Kind.TEAM_END  # a third of the ends is lost
    path = tmp_path / "trace.json"
    timeline_writers.write_chrome_trace(replace(trace, kind=kind), path)
    events = document(path, "chrome-trace.json")["traceEvents"]
    assert sum(event["ph"] == "B" for event in events) == sum(event["ph"] == "E" for event in events)


def test_every_target_is_tried_here() -> None:
    text = Path(__file__).read_text()
    assert all(f'"{target}"' in text for target in TARGETS)
