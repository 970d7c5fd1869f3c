"""Call stacks as people keep them: without a last line end, with fractions, in pyinstrument's other documents."""

from __future__ import annotations

import json
import marshal
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from wire_writing import write_message

from advisor.formats import benchmarks, call_stacks
from advisor.formats.call_stacks import cpuprofile
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from wire_writing import Field

    from advisor.model.records import Profile

PROFILES = Path(__file__).parents[1] / "profiles" / "call_stacks"
META = {"start_time": 1.7e9, "duration": 2.0, "sample_count": 3, "target_description": "Program: run.py"}
THREAD, MAIN, WORK = "MainThread\0<thread>\07", "main\0run.py\03", "work\0run.py\09"


def read_text(path: Path, text: str) -> Profile:
    path.write_text(text, newline="")
    assert call_stacks.advisor_sniff(path) is not None
    return call_stacks.advisor_read(path)


def seconds(profile: Profile) -> dict[str, float]:
    wall = profile.phases[0].arrays["wall_s"].sum(axis=(1, 2))
    rows = profile.phases[0].regions.tolist()
    return {profile.regions[row].name: float(value) for row, value in zip(rows, wall, strict=True) if value}


@pytest.mark.parametrize(
    ("text", "samples"),
    [
        ("a;b;c 1\na;b;d 4\na;b 5", 10),
        ("a;b;c 1\r\na;b;d 4\r\na;b 5\r\n", 10),
        ("a;b;c 31.5\na;b;d 0.25\na;b 5\n", 36.75),
        ("prog;main;solve 81\nprog;main;read 88\n", 169),
        ("a;b;c 1\na;b;d 4\na;b 5\na;b", 10),  # cut off
    ],
)
def test_folded_stacks(tmp_path: Path, text: str, samples: float) -> None:
    profile = read_text(tmp_path / "out.folded", text)
    assert profile.counts["samples"].sum() == samples
    assert any(note.name == "file may be cut off" for note in profile.notes) == (not text.endswith("\n"))


def test_speedscope_in_samples(tmp_path: Path) -> None:
    text = (PROFILES / "speedscope.json").read_text()
    counted = re.sub(r'"unit": ?"\w+"', '"unit": "samples"', text)
    assert "samples" in read_text(tmp_path / "own.speedscope.json", counted).counts


def test_other_texts_are_no_stacks(tmp_path: Path) -> None:
    for text in ("one; two 3\n", "a;b 1\n", "x 1\ny 2\nz 3\n"):
        (tmp_path / "notes.txt").write_text(text)
        assert call_stacks.advisor_sniff(tmp_path / "notes.txt") is None


def test_a_comparison_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="compares two profiles"):
        read_text(tmp_path / "diff.folded", "a;b;c 1 2\na;b;d 4 3\na;b 5 5\n")


def test_sessions_of_pyinstrument(tmp_path: Path) -> None:
    records: dict[str, Any] = META | {
        "frame_records": [[[THREAD, MAIN + "\1l4"], 0.5], [[THREAD, MAIN + "\1l4", WORK + "\1l9"], 1.5]]
    }
    tree = {"session": META, "frame_tree": {"identifier": MAIN, "time": 2.0, "children": [
        {"identifier": WORK, "time": 1.5, "children": []}]}}  # fmt: skip
    for document in (records, tree):
        profile = read_text(tmp_path / "s.pyisession", json.dumps(document))
        assert profile.program == "run.py"
        assert profile.actual_s == 2
        assert seconds(profile) == {"main": 0.5, "work": 1.5}


def test_threads_of_speedscope_run_beside_each_other(tmp_path: Path) -> None:
    thread = {"type": "sampled", "unit": "seconds", "startValue": 0, "endValue": 4, "samples": [[0], [1]]}
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "f"}, {"name": "g"}]},
        "profiles": [thread | {"name": name, "weights": weights} for name, weights in (("a", [3, 1]), ("b", [1, 3]))],
    }
    profile = read_text(tmp_path / "two.json", json.dumps(document))
    assert len(profile.processors) == 2
    assert all(region.threaded for region in profile.regions)


def test_google_benchmarks_of_every_version(tmp_path: Path) -> None:
    old = {"name": "BM_Sum", "iterations": 100, "real_time": 5e6, "cpu_time": 5e6, "time_unit": "ns"}
    (tmp_path / "old.json").write_text(json.dumps({"context": {"num_cpus": 4}, "benchmarks": [old]}))
    assert benchmarks.advisor_read(tmp_path / "old.json").actual_s > 0
    summed_up = [
        old | {"name": f"BM_Sum_{kind}", "run_name": "BM_Sum", "run_type": "aggregate", "aggregate_name": kind,
               "aggregate_unit": unit, "real_time": value, "time_unit": "ms"}
        for kind, unit, value in (("mean", "time", 6), ("median", "time", 5), ("cv", "percentage", 0.1))
    ]  # fmt: skip
    (tmp_path / "sum.json").write_text(json.dumps({"context": {}, "benchmarks": summed_up}))
    profile = benchmarks.advisor_read(tmp_path / "sum.json")
    assert [region.name for region in profile.regions] == ["BM_Sum"]
    assert seconds(profile) == seconds(benchmarks.advisor_read(tmp_path / "old.json"))


def test_functions_that_were_entered_before_the_profiler_was_switched_on(tmp_path: Path) -> None:
    """One call of ``g`` has no caller that cProfile knows."""
    outer, inner = ("run.py", 1, "f"), ("run.py", 9, "g")
    table = {outer: (1, 1, 0.5, 2.0, {}), inner: (11, 11, 1.5, 1.5, {outer: (10, 10, 1.25, 1.25)})}
    (tmp_path / "out.pstats").write_bytes(marshal.dumps(table))
    profile = call_stacks.advisor_read(tmp_path / "out.pstats")
    assert seconds(profile) == {"f": 0.5, "g": 1.5}
    table[inner] = (9, 9, 1.5, 1.5, {outer: (10, 10, 1.25, 1.25)})
    (tmp_path / "out.pstats").write_bytes(marshal.dumps(table))
    with pytest.raises(InputError, match="do not add up"):
        call_stacks.advisor_read(tmp_path / "out.pstats")


def test_functions_that_were_never_called_in_a_table_of_cprofile(tmp_path: Path) -> None:
    table = (
        "         2 function calls in 1.500 seconds\n\n   Ordered by: cumulative time\n\n"
        "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
        "        2    1.500    0.750    1.500    0.750 run.py:3(work)\n"
        "        0    0.000             0.000          run.py:9(idle)\n\n\n"
    )
    assert seconds(read_text(tmp_path / "table.txt", table)) == {"work": 1.5}


AUSTIN = """# austin: 3.4.1
# interval: 1000
# mode: wall

P7;T7 1500
P7;T7;main.py:<module>:3;main.py:solve:12 400000
P7;T7;main.py:<module>:4;/usr/lib/python3.8/threading.py:join:9 100000
P7;T9;main.py:work:20 450000
# duration: 505000
"""


def test_austin_tells_seconds_of_each_thread(tmp_path: Path) -> None:
    path = tmp_path / "program.austin"
    path.write_text(AUSTIN)
    assert call_stacks.advisor_sniff(path) is not None
    profile = call_stacks.advisor_read(path)
    assert profile.actual_s == pytest.approx(0.505)
    assert len(profile.processors) == 2
    names = [region.name for region in profile.regions]
    wall = profile.phases[0].arrays["wall_s"][:, :, 0]
    assert wall[names.index("solve")].tolist() == pytest.approx([0.4, 0.0])
    assert wall[names.index("work")].tolist() == pytest.approx([0.0, 0.45])
    asleep = profile.phases[0].arrays["os_s"][:, :, 0]
    assert asleep[names.index("join")].tolist() == pytest.approx([0.1, 0.0]), "waiting for a thread is no work"
    assert asleep.sum() == pytest.approx(0.1)
    assert "wait_s" not in profile.phases[0].arrays, "which thread waits for which is not sampled"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("# duration: 505000\n", "", "cut off"),
        ("duration: 505000", "duration: 50500", "a thread spends"),
        ("mode: wall", "mode: memory", "does not tell where time passed"),
        ("P7;T9;main", "P7 T9 main", "line 8"),
    ],
)
def test_austin_that_is_damaged_is_refused(old: str, new: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "program.austin"
    path.write_text(AUSTIN.replace(old, new))
    with pytest.raises(InputError, match=reason):
        call_stacks.advisor_read(path)


RPROF = """memory profiling: line profiling: sample.interval=20000
#File 1: fit.R
:100:20:3000:5:1#7 "solve" 1#3 "fit" "main"
:100:20:3000:5:"<GC>" "fit" "main"
:100:20:3000:5:"fit" "main"
"""


def test_samples_of_r(tmp_path: Path) -> None:
    for text in (RPROF, RPROF.replace(":100:20:3000:5:", "").replace("memory profiling: ", "")):
        profile = read_text(tmp_path / "Rprof.out", text)
        assert (profile.program, profile.language, profile.has_run_time) == ("R", "r", False)
        cpu = profile.phases[0].arrays["cpu_s"]
        assert cpu.sum() == pytest.approx(0.06)
        assert [region.name for region in profile.regions if region.name == "solve"]
    cut = read_text(tmp_path / "cut.out", RPROF[:-5])
    assert cut.phases[0].arrays["cpu_s"].sum() == pytest.approx(0.04)
    assert "file may be cut off" in {note.name for note in cut.notes}
    open_ended = RPROF.replace('"solve"', '"' + '\\"' * 100_000)
    for text, reason in ((RPROF.replace('"fit"', "fit"), "no stack"), (RPROF.split("#")[0], "no samples"),
                         (open_ended, "no stack")):  # fmt: skip
        with pytest.raises(InputError, match=reason):
            read_text(tmp_path / "Rprof.out", text)


def v8_profile() -> dict[str, Any]:
    def node(number: int, name: str, children: list[int], url: str = "file:///home/me/run.js") -> dict[str, Any]:
        call = {"functionName": name, "scriptId": "1", "url": url, "lineNumber": number, "columnNumber": 0}
        return {"id": number, "callFrame": call, "hitCount": 1, "children": children}

    nodes = [node(1, "(root)", [2, 4], ""), node(2, "main", [3, 5]), node(3, "solve", []), node(4, "(idle)", [], ""),
             node(5, "writeSync", [6], "node:fs"), node(6, "writeBuffer", [], "")]  # fmt: skip
    return {
        "nodes": nodes, "startTime": 5_000_000, "endTime": 6_000_000,
        "samples": [2, 3, 3, 4, 6], "timeDeltas": [10_000, 200_000, 300_000, 200_000, 100_000],
    }  # fmt: skip


def test_profiles_of_v8(tmp_path: Path) -> None:
    profile = read_text(tmp_path / "a.cpuprofile", json.dumps(v8_profile()))
    assert (profile.program, profile.language, profile.actual_s) == ("run.js", "javascript", 1.0)
    assert seconds(profile) == pytest.approx({"main": 0.2, "solve": 0.5, "sleep": 0.1, "writeSync": 0.1})
    cpu = profile.phases[0].arrays["cpu_s"]
    assert cpu.sum() == pytest.approx(0.7), "idle and writing are no computation"
    assert profile.phases[0].arrays["io_s"].sum() == pytest.approx(0.1)
    long = v8_profile() | {"samples": [2, 3] * 10_000, "timeDeltas": [10, 20] * 10_000}
    assert seconds(read_text(tmp_path / "long.cpuprofile", json.dumps(long)))["solve"] == pytest.approx(0.1, rel=1e-3)
    for changed, reason in (({"samples": [2, 9, 3, 4, 6]}, "no node 9"), ({"timeDeltas": [1]}, "1 times"),
                            ({"endTime": 5_100_000}, "damaged")):  # fmt: skip
        with pytest.raises(InputError, match=reason):
            read_text(tmp_path / "a.cpuprofile", json.dumps(v8_profile() | changed))


def test_stacks_of_v8_that_no_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpuprofile, "_MOST_FRAMES", 20_000)
    profile, count = v8_profile(), 300
    profile["nodes"] = [{**profile["nodes"][1], "id": n, "children": [n + 1]} for n in range(count)]
    profile |= {"samples": list(range(count)), "timeDeltas": [10] * count}
    with pytest.raises(InputError, match="more than 20,000 functions"):
        read_text(tmp_path / "a.cpuprofile", json.dumps(profile))


def test_threads_added_up_by_go_run_beside_each_other(tmp_path: Path) -> None:
    """Two threads ran for one second each: the run took one, and its functions have their shares of it."""
    texts = ["", "cpu", "nanoseconds", "main.solve", "main.go", "main.main"]
    functions: list[Field] = [(5, [(1, n), (2, name), (4, 4)]) for n, name in ((1, 3), (2, 5))]
    locations: list[Field] = [(4, [(1, n), (4, [(1, n)])]) for n in (1, 2)]
    samples: list[Field] = [(2, [(1, 1), (2, 1_500_000_000)]), (2, [(1, 2), (2, 500_000_000)])]
    kinds: list[Field] = [(1, [(1, 1), (2, 2)])]
    strings: list[Field] = [(6, text) for text in texts]
    path = tmp_path / "cpu.pb"
    path.write_bytes(write_message([*kinds, *samples, *locations, *functions, *strings, (10, 1_000_000_000)]))
    profile = call_stacks.advisor_read(path)
    assert profile.actual_s == pytest.approx(1.0)
    assert profile.phases[0].arrays["cpu_s"].sum() == pytest.approx(1.0)
    assert {"threads added up", "waiting hidden"} <= {note.name for note in profile.notes}


def test_functions_that_two_threads_are_in_take_longer_than_one_call(tmp_path: Path) -> None:
    """Python counts the second call as recursion, and its seconds in the function itself alone."""
    read = ("~", 0, "<method 'read' of '_io.TextIOWrapper' objects>")
    path = tmp_path / "a.pstats"
    path.write_bytes(marshal.dumps({read: (179, 181, 1.43, 0.1, {})}))
    assert call_stacks.advisor_read(path).actual_s == pytest.approx(1.43)
    path.write_bytes(marshal.dumps({read: (181, 181, 1.43, 0.1, {})}))
    with pytest.raises(InputError, match="impossible numbers"):
        call_stacks.advisor_read(path)


def test_a_text_with_returns_in_its_lines_is_no_stack(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("name;value;unit\rfish;2;kg\rbird;3;kg 15", newline="")
    assert call_stacks.advisor_sniff(tmp_path / "table.csv") is None


def test_a_thread_that_waits_for_others_says_so(tmp_path: Path) -> None:
    lock = ("~", 0, "<method 'acquire' of '_thread.lock' objects>")
    work = ("run.py", 3, "work")
    for waits, told in ((0.02, False), (1.0, True)):
        (tmp_path / "a.pstats").write_bytes(marshal.dumps({lock: (1, 1, waits, waits, {}), work: (1, 1, 1.0, 1.0, {})}))
        notes = {note.name for note in call_stacks.advisor_read(tmp_path / "a.pstats").notes}
        assert ("others not recorded" in notes) == told


TABLE = """
   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
        1    0.100    0.100    2.000    2.000 run.py:1(<module>)
      900    1.500    0.002    1.700    0.002 run.py:9(solve)
      900    0.200    0.000    0.200    0.000 {built-in method math.fsum}
"""


def test_a_table_of_cprofile_without_its_sums(tmp_path: Path) -> None:
    """People keep the table alone: the longest function is the run, and what the table lacks is a region."""
    profile = read_text(tmp_path / "out.txt", TABLE + "\n")
    assert profile.actual_s == 2.0
    assert seconds(profile)["functions that are not listed"] == pytest.approx(0.2)
    assert "functions left out" in {note.name for note in profile.notes}


def test_a_table_of_cprofile_whose_last_line_has_no_end(tmp_path: Path) -> None:
    head = "   1801 function calls in 2.000 seconds\n"
    assert read_text(
        tmp_path / "out.txt", head + TABLE.replace("{built-in method math.fsum}\n", "run.py:3(fsum)")
    ).notes
    with pytest.raises(InputError, match="cut off"):
        read_text(tmp_path / "out.txt", head + TABLE.rstrip("}\n"))
