"""Partitioned messages, one-sided epochs and files by MPI under the recorder. No time is asserted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from fact_sheets import collect_sheet
from recorded_runs import LIBRARIES, compile_program, record_run

from advisor.formats import recording
from advisor.trace import matching, nesting
from advisor.trace.events import Kind, Role

if TYPE_CHECKING:
    from pathlib import Path

SOME, ROUNDS = 3, 5


@pytest.mark.parametrize("library", LIBRARIES)
def test_epochs_and_partitions(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler, "-Wno-stringop-overflow"), "onesided.c")
    folder, out, err = record_run(tmp_path, *launcher, "-n", str(SOME), str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    calls = nesting.pair_calls(trace)
    assert (calls.leave >= 0).all()
    found = matching.match_messages(trace, calls)
    messages = int(out.split()[0])  # 0 where the library has no partitioned messages
    assert (len(found.send), found.unmatched_ends) == (messages, 0)
    number = Counter(trace.regions[region].name for region in calls.region.tolist())
    in_epochs = ("Put", "Get", "Accumulate", "Fetch_and_op", "Rput", "Win_post", "Win_start", "Win_complete",
                 "Win_wait", "Win_lock", "Win_flush", "Win_unlock", "Win_lock_all", "Win_unlock_all")  # fmt: skip
    assert {name: number[f"MPI_{name}"] for name in in_epochs} == dict.fromkeys(in_epochs, SOME * ROUNDS)
    assert number["MPI_Win_fence"] == 2 * SOME * ROUNDS
    if messages:
        assert number["MPI_Pready"] == 4 * messages
        assert number["MPI_Parrived"] > 0
    moved = trace.size[trace.kind == Kind.IO]
    assert int((moved == 400).sum()) == 4 * SOME
    assert any(name.endswith("onesided.out") for name in trace.files)
    assert {trace.regions[region].role for region in calls.region.tolist()} >= {Role.RMA, Role.IO}
    assert {region.file for region in trace.regions if region.role == Role.RMA} == {"onesided.c"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_single_elements_are_told_by_their_number_and_bytes(tmp_path: Path, library: str) -> None:
    compiler, _, launcher, _ = LIBRARIES[library]
    program = compile_program(tmp_path, (compiler,), "elements.c")
    folder, out, err = record_run(tmp_path, *launcher, "-n", "2", str(program))
    assert "recorded into" in err, err
    trace = recording.read_trace(folder)
    moved = np.flatnonzero(trace.kind == Kind.ONE_SIDED)
    assert len(moved) == 2 * int(out.split()[0])
    assert set(trace.size[moved].tolist()) == {8}
    half = len(moved) // 2
    assert trace.partner[moved].tolist() == [1] * half + [0] * half
    sheet = collect_sheet(recording.advisor_read(folder))
    found = max((site.values for site in sheet.sites), key=lambda values: values["comm.one_sided_per_iteration"])
    assert found["comm.mean_one_sided_B"] == 8
    assert found["comm.one_sided_per_iteration"] >= int(out.split()[0]) / 5  # unless the loop is one phase
