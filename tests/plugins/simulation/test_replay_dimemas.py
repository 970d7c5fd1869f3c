"""Dimemas and the replay on the same traces, at the same points, with the same model."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from advisor.formats.dimemas import advisor_trace
from advisor.model.errors import InputError
from advisor_simulation.replay import contended_replay, conversion, dimemas_config
from advisor_simulation.replay.network import MEGABYTE, Network

CASES = Path(__file__).parents[2] / "profiles" / "replay"
NAMES = sorted(path.name for path in CASES.iterdir() if (path / "trace.dim.gz").exists())
#: Without -S the trace says which sends are synchronous: all of these programs, none of the others.
SYNCHRONOUS = ("npb-lu.S.4", "npb-mg.S.2")


def machine(latency_s: float, bandwidth: float, eager_bytes: float) -> Network:
    """Return the machine of the configurations: messages of a task to itself cost nothing."""
    return Network(
        latency_s, bandwidth * MEGABYTE, intra_latency_s=0.0, intra_bandwidth=math.inf, eager_bytes=eager_bytes,
        links_in=1, links_out=1,
    )  # fmt: skip


@pytest.mark.parametrize("limit", ["rows", "rows_default_eager_limit"])
@pytest.mark.parametrize("name", NAMES)
def test_times_are_those_of_dimemas(name: str, limit: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.dim"
    trace.write_bytes(gzip.decompress((CASES / name / "trace.dim.gz").read_bytes()))
    program = conversion.convert_trace(advisor_trace(trace))
    expected = json.loads((CASES / name / "expected_dimemas.json").read_text())[limit]
    rows = expected if limit == "rows" else expected["rows"]
    eager = 16384.0 if limit == "rows" else -1.0 if name in SYNCHRONOUS else math.inf
    found = [contended_replay.replay_contended(program, machine(row[0], row[1], eager)).time_s for row in rows]
    errors = np.abs(np.array(found) / np.array([row[2] for row in rows]) - 1.0)
    assert np.median(errors) < 1e-3
    # Which of two messages that ask for one link at one moment goes first differs in BT where bandwidth is short.
    assert errors.max() < (0.06 if name == "npb-bt.S.4" else 1e-4)


def test_a_configuration_is_read() -> None:
    found = dimemas_config.read_config(CASES / "cfg" / "4tasks_L10us_BW1000.cfg")
    expected = machine(1e-5, 1000.0, Network().eager_bytes)
    assert found == expected
    assert dimemas_config.read_config(CASES / "cfg" / "2tasks_L0_BW100.cfg").bandwidth == 100 * 2**20


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("#DIMEMAS_CONFIGURATION", "something", "does not begin"),
        ('"environment information"', '"other information"', "no record"),
        ("0.000010000", "fast", "expected a number"),
        ("0.000010000", "-1", "from 0 on"),
        ("1 TASKS_PER_NODE", "random", "not known"),
        (", 1.0, 0.0, 0.0, 0,", ", 0.0, 0.0, 0.0, 0,", "speed"),
    ],
)
def test_a_damaged_configuration_is_refused(old: str, new: str, reason: str, tmp_path: Path) -> None:
    text = (CASES / "cfg" / "4tasks_L10us_BW1000.cfg").read_text()
    assert old in text
    changed = tmp_path / "machine.cfg"
    changed.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=reason):
        dimemas_config.read_config(changed)
