"""Samples of perf: what the profile holds is what perf report prints of the same samples, to its two digits."""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from advisor.analysis import soundness
from advisor.formats import perf, perf_stat
from advisor.formats.perf import samples
from advisor.formats.perf.lines import StackFrame, parse_frame
from advisor.formats.perf.sites import MPI_LIBRARY, CodeRegion, find_site
from advisor.model.errors import InputError
from advisor.model.records import OTHER_PROGRAMS, Processor, Profile
from advisor.support import contract
from advisor.trace.events import Role

FOLDER = Path(__file__).parents[1] / "profiles" / "perf"
IMBALANCE = FOLDER / "faultlab-imbalance30"
OMP = FOLDER / "omp" / "perf.script.txt"
REPORTED = re.compile(r" +([\d.]+)%  \S+ +(\S+) +\[[.k]\] (.*?) *")
HEX = "7f0000001000"


def sample(*frames: str, pid: int = 7, tid: int = 7, time: float = 1.0, what: str = "1000000 cpu-clock") -> str:
    stack = "".join(f"\t{frame}\n" for frame in frames)
    return f"app {pid}/{tid} {time:.6f}: {what}: \n{stack}\n"


def written(path: Path, *parts: str) -> Path:
    path.write_text("".join(parts))
    return path


def notes(profile: Profile) -> set[str]:
    return {note.name for note in profile.notes}


def seconds(profile: Profile, measure: str = "wall_s") -> dict[str, list[float]]:
    phase = profile.phases[0]
    rows = phase.arrays[measure].sum(axis=2)
    found: dict[str, list[float]] = {}
    for region, row in zip(phase.regions.tolist(), rows, strict=True):
        name = profile.regions[region].name
        found[name] = [a + b for a, b in zip(found.get(name, [0.0] * len(row)), row.tolist(), strict=True)]
    return {name: [round(one, 9) for one in row] for name, row in found.items() if any(row)}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("case", ["faultlab-imbalance30", "npb-cg.W.2"])
def test_shares_of_functions_are_those_of_the_report(case: str, rank: int) -> None:
    script = samples.read_script(FOLDER / case / f"perf.script.rank{rank}.txt")
    found: Counter[tuple[str, str]] = Counter()
    for thread in script.threads.values():
        for (_, stack), (number, _) in thread.weight.items():
            frame = script.frames[stack[0]]
            found[(frame.object or "[unknown]").rsplit("/", 1)[-1], frame.symbol or ""] += int(number)
    report = (FOLDER / case / "expected.txt").read_text().split("# Total Lost Samples: 0")[rank + 1]
    rows = [match.groups() for match in map(REPORTED.fullmatch, report.splitlines()) if match]
    listed = [(share, place, symbol) for share, place, symbol in rows if not symbol.startswith("0x")]
    assert len(listed) > 5
    for share, place, symbol in listed:
        assert f"{100 * found[place, symbol] / script.samples:.2f}" == share, symbol


def test_the_profile_of_two_ranks() -> None:
    assert perf.advisor_sniff(IMBALANCE) == 1.0
    profile = perf.advisor_read(IMBALANCE)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert profile.program == "faultlab"
    assert profile.processors == (Processor(0), Processor(1))
    assert profile.ranks_expected == 2
    assert profile.paradigms == ("mpi",)
    assert profile.status["wall_s"] == "estimated"
    assert 0.8 < profile.actual_s < 0.9
    burnt = seconds(profile)["burn_flops"]
    assert burnt[0] / burnt[1] == pytest.approx(1.3 / 0.7, rel=0.1)
    assert profile.phases[0].arrays["wait_s"].sum(axis=(0, 2))[1] > 0.2
    assert "order of ranks" not in notes(profile)


def test_call_graphs_and_flat_samples_of_the_same_run_tell_the_same() -> None:
    """The directory holds both; the larger one, with call graphs, is read."""
    folder = FOLDER / "npb-cg.W.2"
    profile = perf.advisor_read(folder)
    flat = perf.advisor_read(folder / "perf.script.rank0.flat.txt")
    assert len(profile.processors) == 2
    assert seconds(flat)["conj_grad_"][0] == pytest.approx(seconds(profile)["conj_grad_"][0], rel=0.1)
    assert "period estimated" in notes(flat)
    assert "period estimated" not in notes(profile)


def test_threads_of_openmp() -> None:
    profile = perf.advisor_read(OMP)
    assert profile.processors == (Processor(0, 0, "node1"), Processor(0, 1, "node1"))
    assert profile.cores == 2
    assert profile.started == "2026-11-21T" + (profile.started or "")[11:]
    assert profile.paradigms == ("openmp",)
    body = next(region for region in profile.regions if region.name.startswith("main._omp_fn.0"))
    assert body.threaded
    waiting = [region.name for region in profile.regions if region.name == "OpenMP runtime"]
    assert waiting


def test_threads_without_call_graphs_of_their_parallel_regions() -> None:
    profile = perf.advisor_read(FOLDER / "lulesh.omp2" / "perf.script.txt")
    assert profile.program == "lulesh2.0"
    assert profile.processors == (Processor(0, 0), Processor(0, 1))
    assert {"programs left out", "helper threads", "period estimated"} <= notes(profile)
    assert OTHER_PROGRAMS not in notes(profile)  # they ran beside it, and held none of its cores


def frames(*lines: str) -> list[StackFrame]:
    found = [parse_frame(line.encode()) for line in lines]
    return [frame for frame in found if frame is not None]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{HEX} solve+0x10 (/bin/app)", StackFrame("solve", "/bin/app", False)),
        ("ffffffff816e1f36 do_syscall_64+0x71 ([kernel.kallsyms])", StackFrame("do_syscall_64", "[kernel.kallsyms]",
        True)),
        ("ffffffff816e1f36 do_syscall_64", StackFrame("do_syscall_64", None, True)),
        (f"{HEX} nf_hook+0x1 ([nf_conntrack])", StackFrame("nf_hook", "[nf_conntrack]", True)),
        (f"{HEX} __vdso_clock_gettime ([vdso])", StackFrame("__vdso_clock_gettime", "[vdso]", False)),
        (f"{HEX} [unknown] ([unknown])", StackFrame(None, None, False)),
        (f"{HEX} [unknown] (/lib/libgomp.so.1)", StackFrame(None, "/lib/libgomp.so.1", False)),
        (HEX, StackFrame(None, None, False)),
        ("add (/bin/app)", StackFrame("add", "/bin/app", False)),
        (f"{HEX} f(g<long>) [clone .cold]+0x2 (/bin/a b)", StackFrame("f(g<long>) [clone .cold]", "/bin/a b", False)),
        (f"{HEX} a::operator()(int) const (/x (deleted))", StackFrame("a::operator()(int) const", "/x (deleted)",
        False)),
        (f"{HEX} (/bin/app)", StackFrame(None, "/bin/app", False)),
        (f"{HEX} größe+0x0 (/bin/app)", StackFrame("größe", "/bin/app", False)),
    ],
)  # fmt: skip
def test_frames(line: str, expected: StackFrame) -> None:
    assert parse_frame(line.encode()) == expected


def test_inlined_functions_are_part_of_the_one_they_are_inlined_in() -> None:
    assert parse_frame(b"\t7f0000001000 f (inlined)\n") is None


@pytest.mark.parametrize(
    ("stack", "region", "kernel"),
    [
        (["1000 f (/app)", "1001 main (/app)"], CodeRegion("f"), False),
        (["ffffffff81000000 clear_page ([k])", "1000 f (/app)"], CodeRegion("f"), True),
        (["ffffffff81000000 clear_page ([k])"], CodeRegion("kernel"), True),
        (["1000 memcpy (/libc.so.6)", "1001 PMPI_Allreduce (/libmpi.so.40)", "1002 f (/app)"],
         CodeRegion("MPI_Allreduce", Role.ALL_TO_ALL, CodeRegion("f")), False),
        (["1000 x (/libmpi.so.40)", "1001 MPI_Send (/libmpi.so.40)", "1002 mpi_send_ (/m.so)", "1003 g (/app)"],
         CodeRegion("MPI_Send", Role.SEND, CodeRegion("g")), False),
        (["ffffffff81000000 sys_poll ([k])", "1000 poll (/libc.so.6)", "1001 [unknown] (/x/mca_btl_tcp.so)"],
         CodeRegion(MPI_LIBRARY, Role.COMM_OTHER), True),
        (["1000 opal_progress"], CodeRegion(MPI_LIBRARY, Role.COMM_OTHER), False),
        (["1000 gomp_team_barrier_wait_end (/libgomp.so.1)", "1001 main (/app)"],
         CodeRegion("gomp_team_barrier_wait_end", Role.OMP_BARRIER, CodeRegion("main")), False),
        (["1000 GOMP_critical_start (/libgomp.so.1)"], CodeRegion("GOMP_critical_start", Role.OMP_LOCK), False),
        (["1000 body (/app)", "1001 GOMP_parallel (/libgomp.so.1)", "1002 main (/app)"],
         CodeRegion("body", Role.OMP_PARALLEL), False),
        (["1000 f (/app)", "1001 main._omp_fn.3 (/app)"],
         CodeRegion("f", Role.USER, CodeRegion("main._omp_fn.3", Role.OMP_PARALLEL)), False),
        (["ffffffff81000000 vfs_write ([k])", "1000 __GI___libc_write (/libc.so.6)", "1001 dump (/app)"],
         CodeRegion("write", Role.IO, CodeRegion("dump")), True),
        (["1000 read (/app)"], CodeRegion("read"), False),
        (["1000 [unknown] (/lib/libblas.so.3)", "1001 solve (/app)"], CodeRegion("unknown code in libblas.so.3"),
        False),
        ([], CodeRegion("kernel"), False),
    ],
)  # fmt: skip
def test_what_a_stack_tells(stack: list[str], region: CodeRegion, kernel: bool) -> None:
    lines = [line.replace("([k])", "([kernel.kallsyms])") for line in stack]
    assert find_site(frames(*lines)) == (region, kernel)


def test_time_in_the_kernel_is_no_time_of_the_application(tmp_path: Path) -> None:
    path = written(tmp_path / "s", sample(f"{HEX} f (/app)"),
                   sample("ffffffff81000000 zero ([kernel.kallsyms])", f"{HEX} f (/app)", time=1.001))  # fmt: skip
    profile = perf.advisor_read(path)
    assert seconds(profile) == {"f": [0.002]}
    assert seconds(profile, "cpu_s") == {"f": [0.001]}
    assert profile.actual_s == pytest.approx(0.002), "a sample stands for the time before it"


def test_cycles_count_as_the_time_between_samples(tmp_path: Path) -> None:
    parts = [sample(f"{HEX} f (/app)", time=1 + 0.001 * n, what="2000000 cycles:u") for n in range(11)]
    late = sample(f"{HEX} g (/app)", time=1.5, what="4000000 cycles:u")
    profile = perf.advisor_read(written(tmp_path / "s", *parts, late))
    assert seconds(profile) == {"f": [0.011], "g": [0.002]}
    assert "period estimated" in notes(profile)


def test_other_events_are_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "s", sample(f"{HEX} f (/app)"), sample(f"{HEX} g (/app)", time=2.0),
                   sample(f"{HEX} g (/app)", time=2.1, what="5000 cache-misses:u"))  # fmt: skip
    profile = perf.advisor_read(path)
    assert profile.counts["cache-misses"].sum() == 5000
    names = [region.name for region in profile.regions]
    assert profile.counts["cache-misses"][names.index("g"), 0] == 5000
    assert seconds(profile) == {"f": [0.001], "g": [0.001]}


def test_samples_without_times_have_cpu_time_only(tmp_path: Path) -> None:
    text = "".join(sample(f"{HEX} f (/app)") for _ in range(3)).replace("1.000000: ", "")
    profile = perf.advisor_read(written(tmp_path / "s", text))
    assert math.isnan(profile.actual_s)
    assert profile.phases[0].arrays.keys() == {"cpu_s"}
    assert seconds(profile, "cpu_s") == {"f": [0.003]}


@pytest.mark.parametrize(("header", "each_s"), [("", 1 / 3e9), ("# cpudesc : Xeon CPU @ 2.50GHz\n", 1 / 2.5e9)])
def test_cycles_without_times_take_the_clock_of_the_processor(tmp_path: Path, header: str, each_s: float) -> None:
    begin = f"# ========\n# captured on : Mon Nov 30 10:00:00 2026\n{header}# ========\n#\n"
    text = "".join(sample(f"{HEX} f (/app)", what="3000000 armv8_pmuv3/cycles/u") for _ in range(200))
    profile = perf.advisor_read(written(tmp_path / "s", begin, text.replace("1.000000: ", "")))
    assert seconds(profile, "cpu_s") == {"f": [pytest.approx(200 * 3e6 * each_s)]}
    assert "cycles without times" in notes(profile)
    assert math.isnan(profile.actual_s)


def test_processes_of_one_file_are_ranks_by_their_ids(tmp_path: Path) -> None:
    nine = [sample(f"{HEX} f (/app)", pid=9, tid=9, time=time) for time in (1.0, 1.1)]
    path = written(tmp_path / "s", *nine, sample(f"{HEX} f (/app)", time=1.1))
    profile = perf.advisor_read(path)
    assert seconds(profile) == {"f": [0.001, 0.002]}
    assert {"order of ranks", "waiting hidden"} <= notes(profile)


def test_other_programs_and_their_time_are_left_out(tmp_path: Path) -> None:
    other = sample(f"{HEX} f (/bin/sh)", pid=3, tid=3).replace("app ", "a shell ")
    profile = perf.advisor_read(
        written(tmp_path / "s", other, *[sample(f"{HEX} f (/app)", time=1 + n) for n in range(2)])
    )
    assert profile.program == "app"
    assert len(profile.processors) == 1
    assert seconds(profile) == {"f": [0.002]}


def test_times_in_the_header_tell_that_samples_are_missing(tmp_path: Path) -> None:
    text = OMP.read_text()
    parts = text.split("\n\n")
    cut = written(tmp_path / "s", "\n\n".join(parts[:-3]) + "\n\n")
    assert "samples missing" in notes(perf.advisor_read(cut))
    assert "samples missing" not in notes(perf.advisor_read(OMP))


def test_what_perf_record_wrote_is_refused_with_the_command(tmp_path: Path) -> None:
    data = tmp_path / "perf.data.rank0"
    data.write_bytes(b"PERFILE2" + bytes(100))
    assert perf.advisor_sniff(data) == 0.5
    with pytest.raises(InputError, match=r"perf script .* -i perf\.data\.rank0 > perf\.data\.rank0\.txt"):
        perf.advisor_read(data)
    written(tmp_path / "out.txt", sample(f"{HEX} f (/app)"))
    assert perf.advisor_sniff(data) is None, "its samples lie beside it"


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        (sample(f"{HEX} f (/app)") + "what is this\n", "line 4", "is not a sample"),
        (sample(f"{HEX} f /app").replace("\t", "  "), "line 2", "is not a sample"),
        ("# nothing\n", None, "no samples"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, place: str | None, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        perf.advisor_read(written(tmp_path / "s", text))
    assert caught.value.place == place


@pytest.mark.parametrize("cut", [1, 5])
def test_what_editors_trim_is_read(tmp_path: Path, cut: int) -> None:
    text = sample(f"{HEX} f (/app)") + sample(f"{HEX} g (/app)", time=1.001)
    profile = perf.advisor_read(written(tmp_path / "s", text[:-cut]))
    assert sum(row[0] for row in seconds(profile).values()) == pytest.approx(0.002)
    assert "file may be cut off" in notes(profile)


def test_packed_samples(tmp_path: Path) -> None:
    (tmp_path / "s.gz").write_bytes(gzip.compress(OMP.read_bytes()))
    assert perf.advisor_sniff(tmp_path / "s.gz") == 1
    assert seconds(perf.advisor_read(tmp_path / "s.gz")) == seconds(perf.advisor_read(OMP))
    (tmp_path / "s.gz").write_bytes(gzip.compress(OMP.read_bytes())[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        perf.advisor_read(tmp_path / "s.gz")


def test_idle_processors_are_no_program(tmp_path: Path) -> None:
    idle = [sample("ffffffff81000000 idle ([kernel.kallsyms])", pid=0, tid=0, time=1 + 0.001 * n) for n in range(9)]
    mine = [sample(f"{HEX} f (/app)", time=1 + 0.001 * n) for n in range(5)]
    path = written(tmp_path / "s", *idle, *mine)
    profile = perf.advisor_read(path)
    assert profile.program == "app"
    assert seconds(profile) == {"f": [0.005]}
    assert "idle processors" in notes(profile)
    with pytest.raises(InputError, match="idle"):
        perf.advisor_read(written(tmp_path / "s", *idle))


def test_periods_of_one_cycle_do_not_set_the_rate(tmp_path: Path) -> None:
    """Perf begins with a period of one cycle and raises it: these first samples take as long as an interrupt."""
    first = [sample(f"{HEX} f (/app)", time=1 + 1e-5 * n, what="1 cycles:u") for n in range(9)]
    then = [sample(f"{HEX} f (/app)", time=1.001 + 0.001 * n, what="2000000 cycles:u") for n in range(8)]
    profile = perf.advisor_read(written(tmp_path / "s", *first, *then))
    assert seconds(profile)["f"][0] == pytest.approx(profile.actual_s) == pytest.approx(0.008, rel=0.01)


def test_names_of_threads_may_hold_numbers_and_stacks_no_tabs(tmp_path: Path) -> None:
    text = sample(f"{HEX} f (/app)").replace("app 7/7", "FS Broker 5906 7/7").replace("\t", "")
    profile = perf.advisor_read(written(tmp_path / "s", text, text.replace("1.0", "1.1")))
    assert profile.program == "FS Broker 5906"
    assert seconds(profile) == {"f": [0.002]}


def test_a_long_name_survives(tmp_path: Path) -> None:
    name = "f<" + "x" * 5000 + "> [with T = int]"
    profile = perf.advisor_read(
        written(tmp_path / "s", *[sample(f"{HEX} {name}+0x1 (/app)", time=1 + n) for n in range(2)])
    )
    assert [region.name for region in profile.regions] == [name]


def test_only_its_own_files_are_claimed() -> None:
    mine = {path for path in FOLDER.rglob("*") if path.name.startswith("perf.script")}
    claimed = {path for path in FOLDER.parent.rglob("*") if perf.advisor_sniff(path) is not None}
    assert {path for path in claimed if path.is_file() and "together" not in path.parts} == mine
    assert {path.name for path in claimed if path.is_dir()} == {"faultlab-imbalance30", "npb-cg.W.2"}
    assert all(perf_stat.advisor_sniff(path) is None for path in mine)


def test_lines_of_logs_are_no_samples(tmp_path: Path) -> None:
    wrf = written(tmp_path / "rsl.out.0000", "taskid: 0 hostname: c601\nQuilting with   1 groups of   0 I/O tasks.\n")
    assert perf.advisor_sniff(wrf) is None


def test_damage_within_a_sample_is_noticed(tmp_path: Path) -> None:
    """Between two samples nothing tells that more should follow, unless perf printed its header."""
    content = OMP.read_bytes()
    whole = perf.advisor_read(OMP)
    lengths = np.random.default_rng(1).integers(0, len(content) - 1, 150).tolist()
    for length in lengths:
        (tmp_path / "s").write_bytes(content[:length])
        try:
            found = perf.advisor_read(tmp_path / "s")
        except InputError:
            continue
        assert {"samples missing", "file may be cut off"} & notes(found) or seconds(found) == seconds(whole), length


def test_turned_bits_do_no_harm(tmp_path: Path) -> None:
    content = (FOLDER / "npb-cg.W.2" / "perf.script.rank0.txt").read_bytes()
    refused = 0
    for bit in np.random.default_rng(2).integers(0, 8 * len(content), 300).tolist():
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "s").write_bytes(changed)
        try:
            found = perf.advisor_read(tmp_path / "s")
        except InputError:
            refused += 1
            continue
        contract.check_value(found, Profile)
        soundness.check_profile(found)
    assert refused > 5
