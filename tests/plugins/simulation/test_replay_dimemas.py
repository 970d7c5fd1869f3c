"""Dimemas and the replay on the same traces, at the same points, with the same model."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from replay_programs import Do, program

from advisor.formats.dimemas import advisor_trace
from advisor.model.errors import InputError
from advisor_simulation.replay import contended_replay, conversion, network_options, outcome
from advisor_simulation.replay.network import MEGABYTE, Network
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    from collections.abc import Callable

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
    # In BT one latency more is counted, whatever it is.
    assert errors.max() < (6e-4 if name == "npb-bt.S.4" else 1e-4)


def rewrite(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a trace whose records are changed, with places of its tasks that fit."""
    header, *lines = content.splitlines(keepends=True)
    kept = [change(line) for line in lines if not line.startswith(b"s:")]
    places: dict[int, int] = {}
    place = len(header)
    for line in kept:
        if re.match(rb"\d+:\d+:", line):
            places.setdefault(int(line.split(b":")[1]), place)
        place += len(line)
    header = re.sub(rb":1,\d+:", b":1,%d:" % place, header).rstrip().ljust(len(header) - 1) + b"\n"
    return header + b"".join(kept) + b"".join(b"s:%d:%d\n" % item for item in places.items())


def drop_events(line: bytes) -> bytes:
    return b"" if line.startswith(b"20:") else line


def shorten(line: bytes) -> bytes:
    """Return a burst without zeros at its end, and without a point where no decimals are left."""
    return re.sub(rb"^(1:\d+:\d+:\d+)(\.\d*?)0+\n$", rb"\1\2\n", line).replace(b".\n", b"\n")


def lengthen(line: bytes) -> bytes:
    return re.sub(rb"^(1:\d+:\d+:\d+\.\d+)\n$", rb"\g<1>00004\n", line)


@pytest.mark.parametrize("change", [drop_events, shorten, lengthen, lambda line: shorten(drop_events(line))])
@pytest.mark.parametrize("name", ["faultlab-sleep4imbalance50", "npb-bt.S.4"])
def test_calls_and_decimals_that_the_simulator_does_without_change_nothing(
    name: str, change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    content = gzip.decompress((CASES / name / "trace.dim.gz").read_bytes())
    found = []
    for number, text in enumerate((content, rewrite(content, change))):
        (tmp_path / f"{number}.dim").write_bytes(text)
        program = conversion.convert_trace(advisor_trace(tmp_path / f"{number}.dim"))
        assert not program.left_out
        found.append(contended_replay.replay_contended(program, machine(1e-6, 100.0, 16384.0)).time_s)
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_computation_before_the_first_call_counts(tmp_path: Path) -> None:
    """One task computes 2 s, the other 1 s and then waits for its message; nothing tells of calls."""
    records = [b"1:0:0:2\n2:0:0:1:0:8:0:0:0\n", b"1:1:0:1.5\n3:1:0:0:0:8:0:0:0\n"]
    header = b'#DIMEMAS:"two":1,%d:2(1,1),0\n'
    begin = len(header % 99)
    edges = [begin, begin + len(records[0]), begin + len(b"".join(records))]
    text = header % edges[2] + b"".join(records) + b"s:0:%d\ns:1:%d\n" % (edges[0], edges[1])
    (tmp_path / "two.dim").write_bytes(text)
    program = conversion.convert_trace(advisor_trace(tmp_path / "two.dim"))
    found = outcome.replay_program(program, Network(1e-3, 1e9))
    assert found.time_s == pytest.approx(2.0 + 1e-3 + 8e-9)
    assert found.compute_s.tolist() == [2.0, 1.5]


def test_a_link_is_lent_while_its_message_waits_for_the_other_node() -> None:
    """Rank 0's message to rank 2 waits for that node; what it sends to rank 3 meanwhile takes its link."""
    big, small = 100e6, 10e6
    many = program(
        [
            [
                Do(Op.BURST, 1e-3),
                Do(Op.ISEND, big, 1),
                Do(Op.ISEND, small, 2),
                Do(Op.SENT, link=1),
                Do(Op.SENT, link=2),
            ],
            [Do(Op.SEND, big, 0)],
            [Do(Op.RECV, link=0), Do(Op.RECV, link=1)],
            [Do(Op.RECV, link=2)],
        ],
        [(1, 2), (0, 2), (0, 3)],
    )
    network = Network(0.0, 1e9, eager_bytes=math.inf, links_in=1, links_out=1)
    found = contended_replay.replay_contended(many, network)
    assert found.clock[3] == pytest.approx(1e-3 + 0.01)
    assert found.clock[2] == pytest.approx(0.2)


def test_a_configuration_is_read() -> None:
    found = network_options.read_config(CASES / "cfg" / "4tasks_L10us_BW1000.cfg")
    expected = machine(1e-5, 1000.0, Network().eager_bytes)
    assert found == expected
    assert network_options.read_config(CASES / "cfg" / "2tasks_L0_BW100.cfg").bandwidth == 100 * 2**20


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
        network_options.read_config(changed)
