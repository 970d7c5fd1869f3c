"""``gapwatch replay`` from its options to its report, files and refusals."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.dom import minidom

import numpy as np
import pytest
from replay_programs import Do, halo, program
from replay_traces import trace_of

from advisor.analysis import machines
from advisor.cli import main
from advisor.formats import native
from advisor.model.errors import UsageError
from advisor_simulation.replay import (
    contended_replay,
    conversion,
    drawing,
    engine,
    outcome,
    rebuilding,
    study,
    study_report,
    sweeps,
)
from advisor_simulation.replay.network import Network, from_machine
from advisor_simulation.replay.program import Op

if TYPE_CHECKING:
    from collections.abc import Callable

PROFILES = Path(__file__).parents[2] / "profiles"
TRACE = str(PROFILES / "otf2" / "scorep-multiphase")
NETWORK = ("--latency", "10 us", "--bandwidth", "1 GB/s")


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*words: str, code: int = 0) -> str:
        assert main(["replay", *words]) == code
        shown = capsys.readouterr()
        return shown.err if code else shown.out

    return run


@pytest.fixture
def dimemas(tmp_path: Path) -> str:
    path = tmp_path / "trace.dim"
    path.write_bytes(gzip.decompress((PROFILES / "replay" / "npb-mg.S.2" / "trace.dim.gz").read_bytes()))
    return str(path)


def test_a_replay_is_told_exported_and_drawn(said: Callable[..., str], tmp_path: Path) -> None:
    profile, picture = tmp_path / "replayed.json", tmp_path / "replayed.svg"
    text = said(TRACE, *NETWORK, "--export", str(profile), "--picture", str(picture))
    assert "801 ms on a network of latency 10.0 us, 1000 MB/s" in text
    assert "176 latencies and 2,637,344 bytes are not" in text
    assert native.advisor_read(profile).actual_s == pytest.approx(0.801167, rel=1e-5)
    drawn = minidom.parseString(picture.read_text())
    assert len(drawn.getElementsByTagName("polyline")) == 1
    assert {each.getAttribute("y") for each in drawn.getElementsByTagName("rect")} == {"24", "46", "63"}


def test_the_picture_holds_all_times(tmp_path: Path) -> None:
    found = outcome.replay_program(halo(128, 6), Network(1e-5, 1e8))
    row = np.arange(128) // 2
    parts = drawing.compute_shares(found, row, 64)
    spent = parts.sum(axis=2) * found.time_s / drawing.COLUMNS * 2
    assert spent[0].sum() == pytest.approx(found.compute_s.sum(), rel=1e-9)
    assert spent[2].sum() == pytest.approx(found.waits.seconds.sum(), rel=1e-9)
    assert "ranks 126-127" in drawing.draw_timeline(found)


def test_a_sweep_is_the_same_for_one_seed(said: Callable[..., str], tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.json" for number in range(3)]
    for file, seed in zip(files, ("1", "1", "2"), strict=True):
        said(TRACE, "--sweep", "30", "--seed", seed, "--export", str(file))
    first, again, other = (json.loads(file.read_text())["rows"] for file in files)
    assert len(first) == 30
    assert first == again
    assert first != other


def test_models_over_ranks_are_told_with_what_is_not_significant(said: Callable[..., str], tmp_path: Path) -> None:
    traces = []
    for ranks in (2, 4, 8):
        some = halo(ranks, 8, work_s=8e-3 / ranks, size=1000.0)
        plan = engine.prepare_program(some, Network(1e-6, 1e9))
        trace = rebuilding.rebuild_trace(
            some, engine.operation_ends(plan, engine.replay_steps(plan, Network(1e-6, 1e9)), some)
        )
        traces.append(conversion.convert_trace(trace))
    found = study.run_study(traces, Network(), sweeps.Ranges((0.0, 2e-5), (1e9, 1e10)), 40, 1)
    parts = study_report.build_fit_parts(found, [16], Network(1e-6, 1e9))
    text = str(parts)
    assert "N.S." in text
    assert "±" in text
    assert said(TRACE, TRACE, "--fit", code=2).startswith("gapwatch: two of the traces have the same number of ranks")


def test_costs_and_calibration_are_told(said: Callable[..., str]) -> None:
    assert "serialization  77.1 %" in said(TRACE, "--costs")
    assert "predicted half" in said(TRACE, "--calibrate")
    assert "is not to be believed" in said(str(PROFILES / "otf2" / "eztrace-lu"), "--calibrate")


def test_a_trace_of_dimemas_needs_a_network(said: Callable[..., str], dimemas: str) -> None:
    assert "name a network: --latency, --bandwidth, --ideal" in said(dimemas, code=2)
    cfg = str(PROFILES / "replay" / "cfg" / "2tasks_L0_BW100.cfg")
    assert "on a network of latency 0 s, 104.858 MB/s, 1 link a node" in said(dimemas, "--dimemas", cfg)


def test_no_network_is_found_for_calls_that_were_not_timed(said: Callable[..., str], dimemas: str) -> None:
    assert "this recording holds none" in said(dimemas, "--calibrate", code=2)
    assert "name a network" in said(dimemas, "--costs", code=2)
    assert "On the critical path" in said(dimemas, "--costs", *NETWORK)


def test_one_number_of_ranks_gives_no_line_over_them(said: Callable[..., str], dimemas: str) -> None:
    text = said(dimemas, "--fit", "--sweep", "20")
    assert "T = alpha + beta L + gamma / BW at each number of ranks" in text
    assert "slope" not in text


def test_numbers_of_things_are_written_out(said: Callable[..., str], dimemas: str) -> None:
    one = str(PROFILES / "dimemas" / "npb-mg.S.1" / "trace.dim")
    assert "on 1 rank\n" in said(one, "--ideal")
    text = said(dimemas, "--sweep", "20")
    assert "o 10.0 GB/s" in text
    assert "e+" not in text.split("Every point")[1]
    assert "MiB/s" not in text


def test_a_trace_of_paraver_is_replayed(said: Callable[..., str]) -> None:
    path = str(PROFILES / "paraver" / "faultlab-imbalance30" / "trace.prv")
    assert "with the recorded times of its calls" in said(path)
    assert "infinite bandwidth" in said(path, "--ideal")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--rank-ratio", "2=0.5"), "the run has ranks 0 to 1"),
        (("--region-ratio", "nowhere=0.5"), "there is bounds, "),
        (("--latency", "5 us", "--bandwidth", "0 B/s"), "--bandwidth must be above 0"),
        (("--machine", "ibm-sp2-p2sc"), "names no latency of a network; add --latency"),
        (("--sweep", "0"), "at least 1 point"),
        (("--sweep", "5", "--picture", "x.svg"), "--picture draws a single replay"),
        (("--collectives", "allreduce=magic"), "expected dimemas, today"),
        (("--sweep", "5", "--latencies", "5 us"), "two values from low to high"),
        (("--predict", "64"), "--predict belongs to --fit"),
        (("--fit", "--predict", "64"), "traces at two numbers of ranks at least"),
        ((TRACE, "--fit", "--predict", "0"), "numbers of ranks from 1 on"),
        (("--grid",), "--grid belongs to --sweep"),
        (("--latencies", "0..5 us"), "--latencies belongs to --sweep"),
        (("--ideal", "--latency", "5 us"), "leave out --latency"),
        (("--picture", "line.png"), "a name that ends in .svg"),
        (("--costs", "--calibrate"), "ask one at a time"),
        (("--costs", "--export", "x.json"), "leave out --costs"),
    ],
)
def test_options_that_make_no_sense_are_refused(said: Callable[..., str], words: tuple[str, ...], reason: str) -> None:
    assert reason in " ".join(said(TRACE, *words, code=2).split())


def test_a_machine_model_gives_latency_and_bandwidth() -> None:
    found = from_machine(machines.load_machine("ncube-3200"))
    assert (found.latency_s, found.bandwidth) == (5e-4, 364e3)
    assert from_machine(machines.load_machine("ibm-sp2-p2sc"), 4e-5).bandwidth == 150e6
    with pytest.raises(UsageError, match="no latency and no bandwidth"):
        from_machine(machines.load_machine("x86-64"))


def test_the_application_takes_what_it_takes_in_dimemas() -> None:
    """256 ranks, 100 steps, one link in and out of each node: Dimemas says 0.117844 s."""
    network = Network(5e-6, 1e9, intra_latency_s=0.0, intra_bandwidth=math.inf, links_in=1, links_out=1)
    assert contended_replay.replay_contended(halo(256, 100), network).time_s == pytest.approx(0.117844, rel=0.05)


def test_a_receive_of_any_source_keeps_the_order_of_the_recording() -> None:
    """What came first in the recorded run comes first in the replay, also where the other would be there sooner."""
    first = [Do(Op.SEND, 8.0, 0)]
    second = [Do(Op.BURST, 1e-3), Do(Op.SEND, 8.0, 1)]
    some = program([first, second, [Do(Op.RECV, link=0), Do(Op.RECV, link=1)]], [(0, 2), (1, 2)])
    network = Network(1e-6, 1e9)
    plan = engine.prepare_program(some, network)
    again = conversion.convert_trace(
        rebuilding.rebuild_trace(some, engine.operation_ends(plan, engine.replay_steps(plan, network), some))
    )
    receives = np.flatnonzero(again.op == Op.RECV)
    assert again.source[again.link[receives]].tolist() == [0, 1]
    late = outcome.replay_program(again, Network(1e-6, 1e9, rank_ratios={1: 0.0}))
    assert again.source[late.program.link[receives]].tolist() == [0, 1]


def test_a_persistent_request_is_a_message_for_each_start() -> None:
    left = [Do(op, 8.0, k) for k in range(3) for op in (Op.ISEND, Op.SENT)]
    right = [Do(op, 0.0, k) for k in range(3) for op in (Op.IRECV, Op.DONE)]
    some = program([left, right], [(0, 1)] * 3)
    plan = engine.prepare_program(some, Network(1e-6, 1e9))
    trace = rebuilding.rebuild_trace(
        some, engine.operation_ends(plan, engine.replay_steps(plan, Network(1e-6, 1e9)), some)
    )
    one_request = replace(trace, request=np.where(trace.request > 0, np.uint64(7), np.uint64(0)))
    again = conversion.convert_trace(one_request)
    assert [again.link[again.op == op].tolist() for op in (Op.ISEND, Op.SENT, Op.IRECV, Op.DONE)] == [[0, 1, 2]] * 4


def test_a_packed_trace_of_extrae_replays_to_its_own_time(tmp_path: Path) -> None:
    found = conversion.convert_trace(trace_of(PROFILES / "paraver" / "npb-mg.S.2", tmp_path / "unpacked"))
    assert found.end_s is not None
    assert outcome.replay_recorded(found, Network()).time_s == pytest.approx(float(found.end_s.max()), rel=1e-12)


def test_a_table_says_how_many_of_its_rows_are_shown(said: Callable[..., str]) -> None:
    text = said(TRACE, *NETWORK)
    assert "The critical path by region and call, the 12 longest of 17" in text


def test_one_point_has_no_plural(said: Callable[..., str]) -> None:
    text = said(TRACE, "--sweep", "1", "--latencies", "0..0 us", "--bandwidths", "1 GB/s..1 GB/s")
    assert "Run time at 1 point\n" in text
    assert "the largest of 1 plane, found by 1 replay;" in text
