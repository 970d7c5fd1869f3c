"""Runs with devices over time: rows, seconds of spans, and what stands in the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from advisor.analysis.run_pictures import build_timeline
from advisor.formats.chrome_trace import advisor_read
from advisor.output.html.figures import build_timeline_figure
from advisor.trace.devices import timeline as device_timeline

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

from device_lab.faults import make_case
from device_lab.judge import write_traces


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    write_traces(make_case(11), found)
    return found


def test_rows_hold_the_seconds_of_their_devices(folder: Path) -> None:
    profile = advisor_read(folder)
    use = profile.devices
    assert use is not None
    assert use.timeline is not None
    rows, seconds = use.timeline.rows, use.timeline.seconds
    assert rows[:2] == ("rank 0 host", "rank 0 device")
    assert any("network" in row for row in rows)
    assert sum("stream" in row for row in rows) == 2 * len(use.devices)
    for number, device in enumerate(use.devices):
        row = seconds[rows.index(device)]
        assert row.sum() == pytest.approx(profile.actual_s, rel=1e-9)
        assert np.allclose(row.sum(axis=1), np.diff(use.timeline.edges_s))
        for level, name in enumerate(use.timeline.levels):
            assert row[:, level].sum() == pytest.approx(float(use.seconds[name][number]), abs=1e-9)
    hosts = seconds[[row.endswith("host") for row in rows]]
    assert (hosts.sum(axis=2) <= np.diff(use.timeline.edges_s) + 1e-9).all()


def test_many_devices_are_averaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_timeline, "ROWS", 2)
    profile = advisor_read(folder)
    use = profile.devices
    assert use is not None
    assert use.timeline is not None
    assert use.timeline.devices_per_row == -(-len(use.devices) // 2)
    assert len(use.timeline.rows) == 2
    assert use.timeline.seconds[0].sum() == pytest.approx(profile.actual_s, rel=1e-9)


def test_page_draws_the_gaps_of_devices(folder: Path) -> None:
    found = build_timeline(advisor_read(folder))
    assert found is not None
    figure = build_timeline_figure(found)
    assert figure.title == "Devices over time"
    assert {name for _, name, _ in figure.paths} >= {"compute", "communication", "data"}
    document = json.loads(figure.data)
    assert len(document["cells"]) == len(found.rows)
    assert len(document["cells"][0][0]) == len(document["kinds"]) == 9
