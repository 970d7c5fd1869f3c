"""Profiles of call stacks: functions, seconds and calls are those that the tools' own files state."""

from __future__ import annotations

import gzip
import json
import math
import pstats
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gapwatch
from advisor.analysis import soundness
from advisor.formats import call_stacks
from advisor.formats.call_stacks import call_path_builder
from advisor.formats.call_stacks.call_path_builder import build_call_paths, classify_frame
from advisor.formats.call_stacks.known_code import count_known_code
from advisor.formats.call_stacks.marshal_reader import MarshalReader
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.model.errors import InputError
from advisor.model.records import OTHERS_UNRECORDED, Profile
from advisor.support import contract
from advisor.trace.callpaths.records import CallPathNode
from advisor.trace.events import Role

HERE = Path(__file__).parents[1] / "profiles" / "call_stacks"
FILES = ("cprofile.txt", "cprofile.pstats", "pyinstrument.json", "speedscope.json", "raw.folded")


def own_seconds(profile: Profile) -> dict[str, float]:
    found: dict[str, float] = {}
    for region, row in zip(profile.regions, profile.phases[0].arrays["wall_s"], strict=True):
        found[region.name] = found.get(region.name, 0.0) + float(row.sum())
    return found


@pytest.mark.parametrize("name", FILES)
def test_files_are_read(name: str) -> None:
    assert call_stacks.advisor_sniff(HERE / name)
    profile = call_stacks.advisor_read(HERE / name)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert {"inner", "solve", "main"} & {region.name.rsplit(".", 1)[-1] for region in profile.regions}


def test_calls_at_the_same_time_in_cprofiles_table(tmp_path: Path) -> None:
    """Of functions that call themselves, or run in several threads, the cumulative time holds one call at a time."""
    text = """         200 function calls (191 primitive calls) in 3.100 seconds

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
    90/81    2.000    0.022    1.500    0.019 {built-in method _winapi.WaitForMultipleObjects}
     45/0    0.900    0.020    0.000          {method 'control' of 'select.kqueue' objects}
       65    0.200    0.003    0.200    0.003 run.py:3(work)
"""
    (tmp_path / "out.txt").write_text(text)
    assert own_seconds(call_stacks.advisor_read(tmp_path / "out.txt"))["work"] == pytest.approx(0.2)
    for once, other in (("90/81", "   90"), ("45/0", "  45")):
        (tmp_path / "out.txt").write_text(text.replace(once, other))
        with pytest.raises(InputError, match="line"):
            call_stacks.advisor_read(tmp_path / "out.txt")


def test_a_window_waits_for_its_user() -> None:
    name = "{method 'mainloop' of '_tkinter.tkapp' objects}"
    assert classify_frame(Frame(name, "~")) == Role.OS
    assert not call_path_builder._waits_for_others(CallPathNode(name, Role.OS, "~"))


@pytest.mark.parametrize(
    "name",
    [
        "{method 'control' of 'select.kqueue' objects}",
        "<built-in method _winapi.WaitForMultipleObjects>",
        "{method 'poll' of 'select.poll' objects}",
    ],
)
def test_waits_for_others_are_no_work_and_are_told(name: str, tmp_path: Path) -> None:
    assert classify_frame(Frame(name, "~")) == Role.OS
    text = f"""         4 function calls in 3.000 seconds

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
        3    2.000    0.667    2.000    0.667 {name}
        1    1.000    1.000    3.000    3.000 run.py:3(work)
"""
    (tmp_path / "out.txt").write_text(text)
    profile = call_stacks.advisor_read(tmp_path / "out.txt")
    assert profile.phases[0].arrays["os_s"].sum() == pytest.approx(2)
    assert OTHERS_UNRECORDED in {note.name for note in profile.notes}
    text = gapwatch.load(tmp_path / "out.txt").to_text()
    assert "next: py-spy record --subprocesses --idle " in text, "nothing else records what is waited for"


def test_own_seconds_of_cprofile() -> None:
    profile = call_stacks.advisor_read(HERE / "cprofile.txt")
    assert profile.actual_s == pytest.approx(2.457)
    found = own_seconds(profile)
    assert found["<genexpr>"] == pytest.approx(1.060)
    assert found["{built-in method builtins.sum}"] == pytest.approx(0.912)
    inner = [region.name for region in profile.regions].index("inner")
    assert profile.regions[inner].line == 2
    assert profile.counts["calls"][inner].sum() == 240


def test_statistics_are_those_that_python_reads() -> None:
    """Python's own reader trusts its input; here it checks ours on a file that it wrote itself."""
    theirs: Any = pstats.Stats(str(HERE / "cprofile.pstats"))
    paths = call_stacks.read_call_paths(HERE / "cprofile.pstats")
    assert paths.wall_s is not None
    assert paths.visits is not None
    ours = {
        (node.file, node.line or 0, node.name): (float(calls), float(seconds))
        for node, calls, seconds in zip(paths.nodes, paths.visits[:, 0], paths.wall_s[:, 0], strict=True)
    }
    assert ours == {key: (float(value[1]), value[2]) for key, value in theirs.stats.items()}
    assert paths.actual_s == pytest.approx(theirs.total_tt)


@pytest.mark.parametrize("name", ["cprofile.pstats", "cprofile.txt"])
def test_own_functions_of_python_are_in_the_interpreter(name: str) -> None:
    """cProfile times built-in functions apart; functions of libraries are not the program's own."""
    profile = call_stacks.advisor_read(HERE / name)
    inside = profile.counts["code.interpreted_s"].sum(axis=1)
    names = [region.name for region, seconds in zip(profile.regions, inside, strict=True) if seconds]
    assert set(names) <= {"<genexpr>", "solve", "inner", "write", "<module>", "main"}
    share = inside.sum() / profile.counts["code.all_s"].sum()
    assert 0.5 < share < 0.6
    assert "code.interpreted_s" not in call_stacks.advisor_read(HERE / "pyinstrument.json").counts


def test_code_of_libraries_is_not_the_programs_own() -> None:
    files = {
        "run.py": True, "/home/me/app/lib.py": True, "/usr/lib/python3.11/json/decoder.py": False, "~": False,
        "C:\\Python\\Lib\\site-packages\\numpy\\core.py": False, "<frozen importlib._bootstrap>": False,
        "<string>": True,
    }  # fmt: skip
    spent: dict[tuple[Frame, ...], list[float]] = {(Frame("f", file),): [1.0] for file in files}
    found = StackProfile("cProfile", "wall_s", spent, float(len(files)), calls=dict.fromkeys(spent, 1e6))
    nodes = build_call_paths(found, HERE / "none").nodes
    own = count_known_code(found, nodes, np.ones((len(nodes), 1)))["code.interpreted_s"][:, 0]
    assert dict(zip(files, own.astype(bool).tolist(), strict=True)) == files


def test_pyinstrument_is_a_tree() -> None:
    paths = call_stacks.read_call_paths(HERE / "pyinstrument.json")
    names = [node.name for node in paths.nodes]
    assert paths.nodes[paths.nodes[names.index("inner")].parent].name == "solve"
    assert paths.wall_s is not None
    assert paths.wall_s.sum() == pytest.approx(2.6026, rel=1e-3)
    assert (paths.program, paths.status) == ("work.py", "estimated")


def test_running_threads_alone_have_no_run_time() -> None:
    profile = call_stacks.advisor_read(HERE / "speedscope.json")
    assert not profile.has_run_time
    assert profile.phases[0].arrays["cpu_s"].sum() == pytest.approx(0.56)
    assert "CPU time only" in {note.name for note in profile.notes}


def test_folded_samples_are_no_seconds() -> None:
    profile = call_stacks.advisor_read(HERE / "raw.folded")
    assert not profile.has_run_time
    assert not profile.phases[0].arrays
    lines = [line.rsplit(" ", 1) for line in (HERE / "raw.folded").read_text().splitlines()]
    assert profile.counts["samples"].sum() == sum(int(count) for stack, count in lines if stack.strip())


def test_events_of_speedscope(tmp_path: Path) -> None:
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "solve", "file": "a.c", "line": 3}]},
        "profiles": [
            {
                "type": "evented", "name": "one", "unit": "milliseconds", "startValue": 0, "endValue": 900,
                "events": [
                    {"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 1, "at": 100},
                    {"type": "C", "frame": 1, "at": 700}, {"type": "C", "frame": 0, "at": 900},
                ],
            }
        ],
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(document))
    profile = call_stacks.advisor_read(tmp_path / "a.json")
    assert own_seconds(profile) == pytest.approx({"main": 0.3, "solve": 0.6})
    assert profile.actual_s == pytest.approx(0.9)
    assert profile.status["wall_s"] == "measured"


def test_built_in_functions_by_name() -> None:
    known = {
        "{built-in method time.sleep}": Role.OS,
        "{built-in method builtins.input}": Role.OS,
        "<built-in method raw_input>": Role.OS,
        "{method 'input' of 'lexer.Lexer' objects}": Role.USER,
        "{method 'acquire' of '_thread.lock' objects}": Role.OMP_LOCK,
        "{method 'write' of '_io.BufferedWriter' objects}": Role.IO,
        "{method 'Allreduce' of 'mpi4py.MPI.Comm' objects}": Role.ALL_TO_ALL,
        "{built-in method builtins.sum}": Role.USER,
    }
    assert {name: classify_frame(Frame(name, "~")) for name in known} == known
    assert classify_frame(Frame("write", "heat.py", 9)) == Role.USER, "a function of the program, whatever it is called"


def test_packed_files(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress((HERE / "pyinstrument.json").read_bytes()))
    assert call_stacks.advisor_sniff(tmp_path / "a.json.gz") == 1.0
    assert call_stacks.advisor_read(tmp_path / "a.json.gz").actual_s == pytest.approx(2.604, rel=1e-3)


def test_hostile_marshal(tmp_path: Path) -> None:
    for content in (b"", b"{", b"\xfb", b"{" * 100, b")\xff" * 50, b"r\xff\xff\xff\x7f", b"u\xff\xff\xff\x7f", b"c"):
        with pytest.raises(InputError):
            MarshalReader(tmp_path / "x", content).read_object()


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    for n, text in enumerate(
        ("a 1\nb 2\nc 3\n", '{"a": 1}', "", "x;y\nz;w\n", "x; 1; 2\ny; 3; 4\nz; 5; 6\n", "1 2\n3 4\n5 6\n")
    ):
        path = tmp_path / str(n)
        path.write_text(text)
        assert call_stacks.advisor_sniff(path) is None


def test_pprof_samples_are_those_that_speedscope_reads() -> None:
    """The snapshot of speedscope's own test: 110 ms in duffcopy, 480 ms in alpha of 1.5 s; the run took 1.91 s."""
    assert call_stacks.advisor_sniff(HERE / "go.prof")
    profile = call_stacks.advisor_read(HERE / "go.prof")
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    cpu = profile.phases[0].arrays["cpu_s"].sum(axis=(1, 2))
    found = {region.name: float(value) for region, value in zip(profile.regions, cpu, strict=True)}
    assert found["main.alpha"] == pytest.approx(0.48)
    assert found["runtime.duffcopy"] == pytest.approx(0.11)
    assert sum(found.values()) == pytest.approx(1.48), "two samples are in runtime.usleep, the system's"
    assert profile.actual_s == pytest.approx(1.911739507)
    assert profile.language == "go"


def test_threads_of_pprof_are_told_by_their_labels() -> None:
    profile = call_stacks.advisor_read(HERE / "threads.pb")
    assert [processor.thread for processor in profile.processors] == [0, 1]
    assert profile.program == "heat"
    cpu = profile.phases[0].arrays["cpu_s"][:, :, 0]
    rows = [region.name for region in profile.regions]
    assert cpu[rows.index("solve")].tolist() == [3.0, 0.0]
    main = [number for number, name in enumerate(rows) if name == "main"]
    assert cpu[main].sum(axis=0).tolist() == [0.0, 2.0]


def test_profiles_of_memory_tell_no_time(tmp_path: Path) -> None:
    content = (HERE / "threads.pb").read_bytes().replace(b"cpu", b"mem").replace(b"nanoseconds", b"bytes......")
    (tmp_path / "heap.pb").write_bytes(content)
    with pytest.raises(InputError, match="does not tell where time passed"):
        call_stacks.advisor_read(tmp_path / "heap.pb")


def test_pprof_that_is_cut_off_names_the_byte(tmp_path: Path) -> None:
    (tmp_path / "cut.pb").write_bytes((HERE / "threads.pb").read_bytes()[:-3])
    with pytest.raises(InputError, match="damaged: a number without an end"):
        call_stacks.advisor_read(tmp_path / "cut.pb")


def write_pprof(path: Path, kinds: list[tuple[str, str]], values: list[int], duration_ns: int) -> Path:
    """Write a profile of one sample of one function."""
    strings = ["", "main", *(word for kind in kinds for word in kind)]

    def pack(number: int, content: bytes | int) -> bytes:
        if isinstance(content, bytes):
            return bytes([number << 3 | 2]) + varint(len(content)) + content
        return bytes([number << 3]) + varint(content)

    def varint(value: int) -> bytes:
        more = b""
        while value > 0x7F:
            more, value = more + bytes([value & 0x7F | 0x80]), value >> 7
        return more + bytes([value])

    body = b"".join(pack(1, pack(1, strings.index(kind)) + pack(2, strings.index(unit))) for kind, unit in kinds)
    body += pack(2, pack(1, 1) + b"".join(pack(2, value) for value in values))
    body += pack(4, pack(1, 1) + pack(4, pack(1, 1))) + pack(5, pack(1, 1) + pack(2, 1))
    body += b"".join(pack(6, text.encode()) for text in strings) + pack(10, duration_ns)
    path.write_bytes(body)
    return path


@pytest.mark.parametrize(
    ("kinds", "values", "duration_ns", "wall_s"),
    [
        ([("Wall time", "\u03bcs")], [2_000_000], 2_000_000_000, 2.0),
        ([("samples", "count"), ("cpu-time", "nanoseconds")], [200, 2_000_000_000], 4_000_000_000, 4.0),
        ([("cpu", "nanoseconds")], [2_040_000_000], 2_000_000_000, 2.04),  # the sampler's clock is the faster one
        ([("cpu", "nanoseconds")], [2_000_000_000], 1_708_078_386_293_000_000, math.nan),  # a time of day
        ([("wall", "nanoseconds")], [2_000_000_000], 0, math.nan),
    ],
)
def test_pprof_kinds_and_durations(
    kinds: list[tuple[str, str]], values: list[int], duration_ns: int, wall_s: float, tmp_path: Path
) -> None:
    profile = call_stacks.advisor_read(write_pprof(tmp_path / "one.pb", kinds, values, duration_ns))
    assert profile.actual_s == pytest.approx(wall_s, nan_ok=True)


def test_pprof_of_locks_is_refused(tmp_path: Path) -> None:
    path = write_pprof(tmp_path / "block.pb", [("contentions", "count"), ("delay", "nanoseconds")], [3, 10**9], 10**9)
    with pytest.raises(InputError, match="does not tell where time passed"):
        call_stacks.advisor_read(path)


@pytest.mark.parametrize(("last", "whole"), [("{method 'update' of 'dict' objects}", True), ("{method 'upd", False)])
def test_a_table_whose_last_line_is_of_a_built_in_is_whole_without_a_return(
    last: str, whole: bool, tmp_path: Path
) -> None:
    text = f"""         4 function calls in 3.000 seconds

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
        1    1.000    1.000    3.000    3.000 run.py:3(work)
        3    2.000    0.667    2.000    0.667 {last}"""
    (tmp_path / "out.txt").write_text(text)
    if whole:
        assert call_stacks.advisor_read(tmp_path / "out.txt").actual_s == pytest.approx(3)
    else:
        with pytest.raises(InputError, match="the file is cut off"):
            call_stacks.advisor_read(tmp_path / "out.txt")


def python_2(value: object) -> bytes:
    """Return a value as Python 2 marshals it: texts are bytes, names are stored once and referred to."""
    interned: dict[str, int] = {}

    def write(one: object) -> bytes:
        if isinstance(one, dict):
            return b"{" + b"".join(write(key) + write(each) for key, each in one.items()) + b"0"
        if isinstance(one, tuple):
            return b"(" + struct.pack("<i", len(one)) + b"".join(map(write, one))
        if isinstance(one, int):
            return b"i" + struct.pack("<i", one)
        if isinstance(one, float):
            return b"g" + struct.pack("<d", one)
        assert isinstance(one, str)
        if one in interned:
            return b"R" + struct.pack("<i", interned[one])
        if one.startswith("/"):  # no name
            return b"s" + struct.pack("<i", len(one)) + one.encode()
        interned[one] = len(interned)
        return b"t" + struct.pack("<i", len(one)) + one.encode()

    return write(value)


def test_statistics_of_python_2(tmp_path: Path) -> None:
    main, solve = ("/me/heat.py", 1, "<module>"), ("/me/heat.py", 9, "solve")
    built_in = ("~", 0, "<sum>")
    statistics = {
        main: (1, 1, 0.25, 2.0, {}),
        solve: (4, 4, 1.5, 1.75, {main: (4, 4, 1.5, 1.75)}),
        built_in: (8, 8, 0.25, 0.25, {solve: (8, 8, 0.25, 0.25)}),
    }
    (tmp_path / "heat.prof").write_bytes(python_2(statistics))
    assert call_stacks.advisor_sniff(tmp_path / "heat.prof") == 0.8
    profile = call_stacks.advisor_read(tmp_path / "heat.prof")
    assert own_seconds(profile) == {"<module>": 0.25, "solve": 1.5, "<sum>": 0.25}
    (tmp_path / "bad.prof").write_bytes(python_2(statistics).replace(b"R\x01", b"R\x09"))
    with pytest.raises(InputError, match="there is no text 9"):
        call_stacks.advisor_read(tmp_path / "bad.prof")
