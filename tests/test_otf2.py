"""Reading OTF2 archives: real traces of EZTrace and Score-P, and damaged ones."""

from pathlib import Path

import numpy as np
import pytest

from advisor.errors import InputError
from advisor.readers.otf2 import advisor_sniff, read_trace
from advisor.traces.events import Kind, Role

TRACES = Path(__file__).parent / "profiles" / "otf2"


def test_eztrace_with_duplicate_definitions_is_read_in_full() -> None:
    trace = read_trace(TRACES / "eztrace-imbalance")
    assert [(location.rank, location.thread) for location in trace.locations] == [(0, 0), (1, 0)]
    assert trace.tool == "EZTrace"
    assert trace.program == "faultlab_so"
    names = {trace.regions[index].name for index in np.unique(trace.region).tolist() if index >= 0}
    assert {"phase1", "phase2", "MPI_Barrier", "MPI_Allreduce", "Working"} <= names
    assert sum(region.name == "phase1" for region in trace.regions) == 1
    collective = trace.kind == Kind.COLLECTIVE
    assert {trace.communicators[index] for index in np.unique(trace.comm[collective]).tolist()} == {(0, 1)}


def test_threads_of_a_rank_are_told_apart() -> None:
    trace = read_trace(TRACES / "scorep-threads")
    assert [(location.rank, location.thread, location.host) for location in trace.locations] == [
        (0, 0, "vm"),
        (0, 1, "vm"),
    ]
    parallel = next(region for region in trace.regions if region.role == Role.OMP_PARALLEL)
    assert parallel.line == 186
    assert np.count_nonzero(trace.kind == Kind.FORK) == 20
    assert set(trace.size[trace.kind == Kind.FORK].tolist()) == {2}


def test_a_place_without_an_archive_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no OTF2 archive"):
        read_trace(tmp_path)
    assert advisor_sniff(tmp_path) is None
    assert advisor_sniff(TRACES / "eztrace-io") == 1.0
