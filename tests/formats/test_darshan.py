"""Darshan logs: every counter as darshan-parser prints it, and where it goes in a Profile."""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from darshan_logs import BTIO, IO, LOGS, log, read, shared, table, values

from advisor.analysis import soundness
from advisor.formats import darshan
from advisor.formats.darshan import cells, logs
from advisor.formats.darshan.profile import from_log
from advisor.model.errors import InputError
from advisor.model.records import CAUSE_CATEGORIES, Profile

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None,
    reason="needs the package darshan, which has wheels up to Python 3.12: pip install 'gapwatch[cluster]'",
)
CASES = sorted(path.parent.name for path in LOGS.glob("*/log.darshan"))
KINDS = {"READ_TIME": "read", "WRITE_TIME": "write", "META_TIME": "metadata"}


def printed(case: str) -> Iterator[list[str]]:
    """The lines of counters that darshan-parser printed: module, rank, record id, counter, value."""
    for line in (LOGS / case / "expected.txt").read_text().splitlines():
        fields = line.split("\t")
        if not line.startswith("#") and len(fields) >= 7 and not fields[0].startswith("HEATMAP"):
            yield fields


def header(case: str, name: str) -> str:
    lines = (LOGS / case / "expected.txt").read_text().splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith(f"# {name}: "))


def of_file(profile: Profile, interface: str, kind: str, name: str) -> float:
    """The I/O seconds of a kind of calls of an interface in files of that name."""
    causes = profile.causes
    assert causes is not None
    wanted = [
        n for n, region in enumerate(profile.regions) if region.name.startswith(interface) and kind in region.name
    ]
    files = [n for n, target in enumerate(causes.targets) if Path(target).name == name]
    rows = np.isin(causes.call, wanted) & np.isin(causes.target, files)
    return float(causes.seconds[rows].sum())


def seconds(profile: Profile, *words: str) -> float:
    """The I/O seconds of the regions whose names hold all of the words."""
    rows = [n for n, region in enumerate(profile.regions) if all(word in region.name for word in words)]
    return float(profile.phases[0].arrays["io_s"][rows].sum())


@pytest.mark.parametrize("case", CASES)
def test_every_counter_is_what_darshan_parser_prints(case: str) -> None:
    found = logs.read_log(LOGS / case / "log.darshan")
    rows = {
        (module, rank, key): n
        for module, each in found.tables.items()
        for n, (rank, key) in enumerate(zip(each.ranks.tolist(), each.ids.view(np.uint64).tolist(), strict=True))
    }
    compared = 0
    for module, rank, key, counter, value, *_ in printed(case):
        each = found.tables[module]
        name, n = counter.partition("_")[2], rows[module, int(rank), int(key)]
        if name.startswith("F_"):
            assert f"{each.times[name.removeprefix('F_')][n]:f}" == value, counter
        else:
            assert each.counters[name][n] == int(value), counter
        compared += 1
    assert compared > 50


@pytest.mark.parametrize("case", CASES)
def test_the_run_is_what_the_header_says(case: str) -> None:
    found = read(case)
    assert f"{found.actual_s:.4f}" == header(case, "run time")
    assert found.ranks == int(header(case, "nprocs"))
    assert found.program == Path(header(case, "exe").split()[0]).name
    assert found.run.split(".") == [header(case, "jobid"), header(case, "start_time")]


@pytest.mark.parametrize("case", CASES)
def test_seconds_of_each_file_are_those_printed(case: str) -> None:
    found = read(case)
    expected: dict[tuple[str, str, str], float] = defaultdict(float)
    for module, _, _, counter, value, file, *_ in printed(case):
        kind = KINDS.get(counter.partition("_F_")[2])
        if kind and module in ("POSIX", "STDIO"):
            expected[module, kind, Path(file).name] += float(value)
    assert expected
    for key, total in expected.items():
        assert of_file(found, *key) == pytest.approx(total, abs=1e-6), key


def test_totals_are_those_printed() -> None:
    lines = (line.split(": ") for line in (LOGS / IO / "expected.txt").read_text().splitlines())
    totals = {fields[0]: fields[1] for fields in lines if fields[0].startswith("total_POSIX")}
    found = read(IO)
    for name, kind in KINDS.items():
        assert f"{seconds(found, 'POSIX', kind):f}" == totals[f"total_POSIX_F_{name}"]
    rows = [region.name.startswith("POSIX") for region in found.regions]
    moved = int(totals["total_POSIX_BYTES_READ"]) + int(totals["total_POSIX_BYTES_WRITTEN"])
    assert found.counts["io_bytes"][rows].sum() == moved
    assert found.counts["io_unaligned_operations"][rows].sum() == int(totals["total_POSIX_FILE_NOT_ALIGNED"])


def test_each_rank_wrote_what_the_program_did() -> None:
    found = read(IO)
    write = [region.name for region in found.regions].index("POSIX write and sync")
    assert found.counts["io_operations"][write].tolist() == [1280, 1280]
    assert found.counts["io_bytes"][write].tolist() == [5242880, 5242880]
    assert found.counts["io_small_operations"][write].tolist() == [1280, 1280]
    assert found.counts["io_unaligned_operations"].sum() == 0
    assert found.phases[0].arrays["io_s"][write, :, 0] == pytest.approx([0.020679, 0.018881], abs=1e-6)
    assert found.status == {"wall_s": "measured", "io_s": "measured"}


@pytest.mark.parametrize("case", CASES)
def test_wall_time_of_each_rank_is_that_of_the_run_and_causes_hold_all_io(case: str) -> None:
    found = read(case)
    assert found.phases[0].arrays["wall_s"].sum(axis=(0, 2)) == pytest.approx(found.actual_s)
    assert found.causes is not None
    assert set(found.causes.category.tolist()) == {CAUSE_CATEGORIES.index("io")}
    assert found.causes.seconds.sum() == pytest.approx(found.phases[0].arrays["io_s"].sum())


def test_mpi_io_counts_no_second_of_posix_twice() -> None:
    tables = logs.read_log(LOGS / BTIO / "log.darshan").tables
    mpi, posix = (sum(float(tables[name].times[each].sum()) for each in KINDS) for name in ("MPI-IO", "POSIX"))
    found = read(BTIO)
    assert seconds(found, "MPI-IO") == pytest.approx(mpi - posix), "all of POSIX is below MPI-IO, helper files too"
    assert seconds(found, "POSIX") == pytest.approx(posix)
    names = {region.name for region in found.regions}
    assert {"MPI-IO collective read", "MPI-IO collective write", "MPI-IO metadata"} <= names


def test_mpi_io_keeps_what_posix_does_elsewhere() -> None:
    posix = table("POSIX", ids=[1, 2], READS=[4, 1], SIZE_READ_0_100=[4, 1], BYTES_READ=[40, 10], READ=[1.0, 8.0])
    mpi = table("MPI-IO", ids=[1], INDEP_READS=[2], INDEP_OPENS=[1], BYTES_READ=[40], READ=[3.0], META=[0.5])
    found = from_log(log({"POSIX": posix, "MPI-IO": mpi}), Path("log"))
    assert seconds(found, "MPI-IO independent read") == pytest.approx(2.0)
    assert seconds(found, "POSIX read") == pytest.approx(9.0)
    assert found.counts["io_operations"].sum() == 5, "what POSIX shows is counted there"
    alone = from_log(log({"MPI-IO": mpi}), Path("log"))
    assert seconds(alone, "MPI-IO") == pytest.approx(3.5)
    assert alone.counts["io_operations"].sum() == 2


def test_of_a_shared_file_the_rank_that_writes_for_all_is_found() -> None:
    found = read(BTIO)
    write = [region.name for region in found.regions].index("POSIX write")
    assert found.counts["io_operations"][write].tolist() == [14, 0, 0, 0], "rank 0 collects: cb_nodes is 1"
    assert found.phases[0].arrays["io_s"][write, 1:, 0] == pytest.approx(0.0, abs=1e-6)
    assert found.status["io_s"] == "estimated"
    collective = [n for n, region in enumerate(found.regions) if "collective" in region.name]
    assert found.counts["calls"][collective].sum(axis=1).tolist() == [48, 48], "reads and writes"


def test_traces_cut_short_cost_nothing() -> None:
    posix = table("POSIX", [0], None, READS=[1.0], READ=[1.0])
    found = from_log(log({"POSIX": posix}, partial=("DXT_POSIX",)), Path("log"))
    assert [(note.name, note.penalty) for note in found.notes] == [("traces cut short", 0.0)]


def test_a_log_is_told_by_its_content(tmp_path: Path) -> None:
    for case in CASES:
        assert darshan.advisor_sniff(LOGS / case / "log.darshan") == 1.0
        assert darshan.advisor_sniff(LOGS / case / "expected.txt") is None
    assert darshan.advisor_sniff(LOGS) is None
    other = tmp_path / "log.darshan"
    other.write_bytes(b"2.06\0\0\0\0" + bytes(100))
    assert darshan.advisor_sniff(other) is None


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=re.escape('pip install "gapwatch[cluster]"')):
        darshan.advisor_read(LOGS / IO / "log.darshan")


def examples() -> list[Path]:
    """The logs of formats 3.10 and 3.21, with traces, Lustre and HDF5, that the package brings along."""
    spec = importlib.util.find_spec("darshan")
    folders = spec.submodule_search_locations if spec else None
    return sorted({path.name: path for folder in folders or () for path in Path(folder).rglob("*.darshan")}.values())


def test_logs_of_older_formats_are_read() -> None:
    found = [darshan.advisor_read(path) for path in examples()]
    assert len(found) >= 5
    for profile in found:
        soundness.check_profile(profile)
        assert profile.phases[0].arrays["io_s"].sum() > 0
        assert profile.causes is not None
        assert profile.counts["io_bytes"].sum() == profile.causes.bytes.sum()


def test_dxt_tells_forcing_to_storage_from_writing() -> None:
    found = from_log(
        log(
            {
                "POSIX": table(
                    "POSIX", WRITES=[10], BYTES_WRITTEN=[1000], SIZE_WRITE_0_100=[10], FSYNCS=[3], WRITE=[2.0]
                )
            },
            traced={(1, 0): logs.TracedFile(0, 10, 0.0, 0.5)},
        ),
        Path("log"),
    )
    assert (seconds(found, "POSIX write"), seconds(found, "POSIX sync")) == (0.5, 1.5)
    assert values(found)["io.fsync_share"] == pytest.approx(0.75)


def test_a_shared_file_is_divided_as_its_fastest_and_slowest_rank_tell() -> None:
    found = cells.build_cells(shared(4), "POSIX")
    each = found.seconds.sum(axis=1)
    assert each == pytest.approx([0.625, 0.25, 3.0, 0.625], rel=1e-3)
    assert found.seconds.sum(axis=0) == pytest.approx([0.0, 4.0, 0.5])
    assert found.bytes[:, 1].tolist() == [600, 400, 1600, 600]
    assert found.operations[:, 1].tolist() == [6, 4, 16, 6]


def test_the_heat_map_tells_the_bytes_of_each_rank() -> None:
    heat = {("POSIX", rank): (0, moved) for rank, moved in enumerate((0, 400, 1600, 1200))}
    found = cells.build_cells(shared(4, heat), "POSIX")
    assert found.bytes[:, 1].tolist() == [0, 400, 1600, 1200]
    wrong = {key: (0, 10 * moved[1]) for key, moved in heat.items()}
    assert cells.build_cells(shared(4, wrong), "POSIX").bytes[:, 1].tolist() == [600, 400, 1600, 600]


def test_many_shared_files_on_many_ranks_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CELL_LIMIT", 8)
    many = table("POSIX", ranks=[-1] * 5, WRITES=[4] * 5, SIZE_WRITE_0_100=[4] * 5, BYTES_WRITTEN=[40] * 5,
                 WRITE=[5.0, 1.0, 4.0, 2.0, 3.0])  # fmt: skip
    found = from_log(log({"POSIX": many}, 4), Path("log"))
    assert found.causes is not None
    assert found.causes.targets == ("other shared files", "file 1", "file 3")
    assert found.counts["io_bytes"].sum() == 200
    assert found.phases[0].arrays["io_s"].sum() == pytest.approx(15.0)


def test_what_keeps_a_log_from_being_complete_is_said() -> None:
    posix = table("POSIX", WRITES=[1], SIZE_WRITE_0_100=[1], WRITE=[-2.0])
    found = from_log(log({"POSIX": posix}, version="3.10", partial=("POSIX",), modules=("POSIX", "DAOS")), Path("log"))
    names = {note.name for note in found.notes if note.penalty > 0}
    assert names == {"files left out", "whole seconds", "negative counters", "interfaces left out"}


def test_a_run_without_any_file_has_no_io() -> None:
    found = from_log(log({}, 2), Path("log"))
    soundness.check_profile(found)
    assert found.phases[0].arrays["io_s"].sum() == 0
    assert darshan.advisor_findings(found) == ()
