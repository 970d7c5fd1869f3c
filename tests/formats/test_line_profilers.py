"""Profilers of lines (line_profiler, Scalene), and code that is known without a look into it."""

from __future__ import annotations

import json
import pickle
import pickletools
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from advisor.formats import call_stacks
from advisor.formats.call_stacks.call_path_builder import build_call_paths
from advisor.formats.call_stacks.known_code import classify_function
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.model.errors import InputError

HERE = Path(__file__).parents[1] / "profiles" / "call_stacks"
HEAD = "Line #      Hits         Time  Per Hit   % Time  Line Contents\n" + 62 * "=" + "\n"


def write_table(name: str, line: int, rows: str, total_s: float) -> str:
    return f"Total time: {total_s} s\nFile: run.py\nFunction: {name} at line {line}\n\n{HEAD}{rows}\n"


def test_lines_hold_what_they_call_once() -> None:
    """``pluck`` calls ``step``: the seconds of both are those of one run."""
    profile = call_stacks.advisor_read(HERE / "line_profiler.txt")
    assert profile.actual_s == pytest.approx(3.088, abs=1e-3)
    assert profile.phases[0].arrays["wall_s"].sum() == pytest.approx(profile.actual_s, rel=1e-3)
    inside = profile.counts["code.interpreted_s"].sum(axis=1)
    [line] = [region.line for region, seconds in zip(profile.regions, inside, strict=True) if seconds > 1]
    assert line == 10
    assert 0.8 < inside.sum() / profile.actual_s < 0.9


@pytest.mark.parametrize("lines", [("work(1)", "work(2)"), ("f(1) + g(2)",)])
def test_functions_called_by_several_lines_or_by_one_count_once(tmp_path: Path, lines: tuple[str, ...]) -> None:
    names = ("f", "g") if len(lines) == 1 else ("work",)
    row = "{:6} {:9} {:12} {:9} {:8}      {}\n"
    inner = (write_table(name, 1, row.format(2, 1, 1e6 / len(names), 1e6 / len(names), 100.0, "return np.sort(n)"),
             1 / len(names)) for name in names)  # fmt: skip
    calls = "".join(row.format(5 + n, 1, 1e6 / len(lines), 1e6 / len(lines), 100 / len(lines), one)
                    for n, one in enumerate(lines))  # fmt: skip
    (tmp_path / "run.txt").write_text("Timer unit: 1e-06 s\n\n" + "".join(inner) + write_table("main", 4, calls, 1))
    profile = call_stacks.advisor_read(tmp_path / "run.txt")
    assert profile.actual_s == pytest.approx(1)
    wall_s = dict(zip((region.line for region in profile.regions), profile.phases[0].arrays["wall_s"].sum(axis=(1, 2)),
                      strict=True))  # fmt: skip
    assert wall_s[2] == pytest.approx(1 / len(names))
    assert sum(wall_s.get(line, 0.0) for line in (5, 6)) == pytest.approx(0)


def test_lines_that_take_long_or_run_seldom_are_not_known(tmp_path: Path) -> None:
    rows = (
        "     2      2000      40000.0     20.0     57.1      f(x)\n"
        "     3        10      30000.0   3000.0     42.9      g(x)\n"
    )
    (tmp_path / "run.txt").write_text(f"Timer unit: 1e-06 s\n\n{write_table('main', 1, rows, 0.07)}")
    profile = call_stacks.advisor_read(tmp_path / "run.txt")
    assert "code.interpreted_s" not in profile.counts
    assert profile.phases[0].arrays["wall_s"].sum() == pytest.approx(0.07)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("     2       100        500.0     50.0    100.0      f(x)\n", "are not 500"),
        ("     2       100       5000.0     50.0    100.0      f(x)\n", "add up to"),
    ],
)
def test_contradicting_lines_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "run.txt").write_text(f"Timer unit: 1e-06 s\n\n{write_table('main', 1, rows, 0.05)}")
    with pytest.raises(InputError, match=message):
        call_stacks.advisor_read(tmp_path / "run.txt")


def test_times_in_few_digits(tmp_path: Path) -> None:
    """With nanoseconds line_profiler prints one digit of large numbers; those of each time are then better."""
    rows = "     2  22288100        2e+10    712.3    100.0      f(x)\n"
    (tmp_path / "run.txt").write_text(f"Timer unit: 1e-09 s\n\n{write_table('main', 1, rows, 15.8758)}")
    profile = call_stacks.advisor_read(tmp_path / "run.txt")
    assert profile.phases[0].arrays["wall_s"].sum() == pytest.approx(15.876, rel=1e-3)


def test_scalene_tells_interpreter_compiled_code_and_waiting() -> None:
    profile = call_stacks.advisor_read(HERE / "scalene.json")
    document = json.loads((HERE / "scalene.json").read_text())
    [file] = document["files"].values()
    parts = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
    python, native, idle = (sum(line[part] for line in file["lines"]) / 100 for part in parts)
    assert profile.program == "waves.py"
    assert profile.counts["code.interpreted_s"].sum() == pytest.approx(python * profile.actual_s)
    assert profile.counts["code.all_s"].sum() == pytest.approx((python + native) * profile.actual_s)
    assert profile.phases[0].arrays["os_s"].sum() == pytest.approx(idle * profile.actual_s)


@pytest.mark.parametrize(
    ("name", "file", "kind"),
    [
        ("runtime.mallocgc", "/usr/lib/go/src/runtime/malloc.go", "garbage"),
        ("runtime.gcBgMarkWorker.func2", "/usr/lib/go/src/runtime/mgc.go", "garbage"),
        ("strconv.Itoa", "/usr/lib/go/src/strconv/itoa.go", "text"),
        ("regexp.(*Regexp).doExecute", "/usr/lib/go/src/regexp/exec.go", "pattern"),
        ("main.mallocgc", "/home/me/main.go", None),
        ("java.util.regex.Matcher.find", None, "pattern"),
        ("deepcopy", "/usr/lib/python3.12/copy.py", "deep_copy"),
        ("deepcopy", "C:\\Python\\Lib\\copy.py", "deep_copy"),
        ("deepcopy", "/home/me/genes.py", None),
        ("get_data", "<frozen importlib._bootstrap_external>", "import"),
        ("{built-in method marshal.loads}", "~", "import"),
        ("{method 'findall' of 're.Pattern' objects}", "~", "pattern"),
        ("{method 'split' of 'str' objects}", "~", None),
        ("__ieee754_pow_fma", None, "math"),
        ("je_malloc", None, "allocation"),
        ("malloc", "/home/me/pool.c", None),
        ("solve", None, None),
    ],
)
def test_functions_that_many_programs_use_are_known_by_name(name: str, file: str | None, kind: str | None) -> None:
    assert classify_function(name, file) == kind


@pytest.mark.parametrize("name", ["a" + 40 * "@" + "\nx", 40 * "_avx512" + "!", 2000 * "_sse2_"])
def test_names_of_any_kind_are_soon_looked_at(name: str) -> None:
    assert classify_function(name, None) is None


def test_what_a_module_starts_when_it_is_loaded_is_the_programs_work(tmp_path: Path) -> None:
    files = ("/home/u/run.py", "<frozen importlib._bootstrap>", "/home/u/job.py", "/home/u/job.py")
    frames = [{"name": name, "file": file} for name, file in
              zip(("<module>", "_find_and_load", "<module>", "simulate"), files, strict=True)]  # fmt: skip
    profile = {"type": "sampled", "name": "t", "unit": "seconds", "startValue": 0, "endValue": 10,
               "samples": [[0, 1, 2, 3], [0, 1, 2]], "weights": [7, 3]}  # fmt: skip
    document = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames}}
    (tmp_path / "run.json").write_text(json.dumps(document | {"profiles": [profile]}))
    assert call_stacks.advisor_read(tmp_path / "run.json").counts["code.import_s"].sum() == pytest.approx(3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"elapsed_time_sec": 1e308}, "not the length of a run"), ({"files": {"p.py": {}}}, "holds no times")],
)
def test_odd_profiles_of_scalene_are_refused(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    document = json.loads((HERE / "scalene.json").read_text()) | changed
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        call_stacks.advisor_read(tmp_path / "run.json")


def test_the_outermost_function_that_tells_decides() -> None:
    """What ``fmt.Sprintf`` calls makes text, but the collector that an allocation starts collects."""
    go = "/go/src/x.go"
    stacks = {
        ("main.run", "fmt.Sprintf", "strconv.Itoa"): 2.0,
        ("main.run", "fmt.Sprintf", "runtime.mallocgc", "runtime.nextFreeFast"): 1.0,
        ("main.run", "main.sum"): 7.0,
    }
    found = StackProfile("pprof", "wall_s", {}, 10.0)
    for stack, seconds in stacks.items():
        found.add_spent(tuple(Frame(name, go) for name in stack), 0, seconds)
    counts = build_call_paths(found, HERE / "none").counts
    assert {name: float(np.sum(table)) for name, table in counts.items()} == {
        "code.all_s": 10.0, "code.known_s": 3.0, "code.text_s": 2.0, "code.garbage_s": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arrays", "made", "interpreted"),
    [
        (False, 0.0, 4.0),  # without arrays what a function takes itself is the interpreter's
        (True, 0.0, 0.0),  # it may add up whole arrays
        (True, 1e6, 4.0),  # between a million calls it can't
    ],
)
def test_operations_on_whole_arrays_are_not_the_interpreters(arrays: bool, made: float, interpreted: float) -> None:
    """cProfile counts them as time of the function that they stand in, and code compiled by Numba as well."""
    work, library = (Frame("work", "run.py", 1),), (Frame("{method 'dot' of 'numpy.ndarray' objects}", "~"),)
    spent = {work: [4.0], **({library: [1.0]} if arrays else {(Frame("{built-in method math.sqrt}", "~"),): [1.0]})}
    found = StackProfile("cProfile", "wall_s", spent, 5.0, calls={work: 2.0}, made={work: made})
    counts = build_call_paths(found, HERE / "none").counts
    assert counts["code.interpreted_s"].sum() == interpreted
    assert counts["code.known_s"].sum() == interpreted + 1.0


def write_statistics(path: Path, timings: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What ``kernprof -l`` writes: an object of line_profiler's class."""
    module = ModuleType("line_profiler._line_profiler")
    kept = type("LineStats", (), {"__module__": module.__name__})
    vars(module)["LineStats"] = kept
    monkeypatch.setitem(sys.modules, "line_profiler", ModuleType("line_profiler"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    statistics = kept()
    statistics.__dict__.update(timings=timings, unit=1e-6)
    path.write_bytes(pickle.dumps(statistics))
    return path


def test_statistics_tell_what_the_table_does() -> None:
    """The table and the statistics of one run; in both ``pluck`` calls ``step``."""
    table, statistics = (
        call_stacks.advisor_read(HERE / name) for name in ("line_profiler.txt", "waves_profiled.py.lprof")
    )
    assert call_stacks.advisor_sniff(HERE / "waves_profiled.py.lprof") == 1
    assert statistics.actual_s == pytest.approx(table.actual_s, abs=1e-5)
    assert {region.line for region in statistics.regions} == {region.line for region in table.regions}
    for name in ("code.interpreted_s", "code.all_s"):
        assert statistics.counts[name].sum() == pytest.approx(table.counts[name].sum(), abs=1e-4)


def test_statistics_of_python_2_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It numbers what it remembers from one, and writes texts as bytes."""
    timings = {("run.py", 1, "main"): [(2, 7, 1_500_000), (3, 7, 500_000)], ("run.py", 9, "cut"): [(10, 7, 900_000)]}
    path = write_statistics(tmp_path / "run.py.lprof", timings, monkeypatch)
    new = call_stacks.advisor_read(path)
    content = pickle.dumps(pickle.loads(path.read_bytes()), protocol=2)
    old, places = b"", [*(at or 0 for _, _, at in pickletools.genops(content)), len(content)]
    for (code, argument, _), begin, end in zip(pickletools.genops(content), places, places[1:], strict=False):
        if code.name in ("BINPUT", "BINGET") and isinstance(argument, int):
            old += content[begin : begin + 1] + bytes([argument + 1])
        elif code.name == "BINUNICODE" and isinstance(argument, str):
            old += b"U" + bytes([len(argument)]) + argument.encode("ascii")
        else:
            old += content[begin:end]
    assert b"U\x04main" in old
    path.write_bytes(old)
    read = call_stacks.advisor_read(path)
    assert read.actual_s == new.actual_s
    assert [region.name for region in read.regions] == [region.name for region in new.regions]


@pytest.mark.parametrize(("hits", "left_out", "seconds"), [(7, False, 2.0), (1, True, 2.0)])
def test_who_calls_whom_follows_from_how_often(
    hits: int, left_out: bool, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that took as long calls a function that was entered as often; else nobody knows."""
    timings = {
        ("run.py", 1, "main"): [(2, hits, 1_500_000), (3, 1, 500_000)],
        ("run.py", 9, "Mesh.cut"): [(10, 7, 1_200_000)],
    }
    profile = call_stacks.advisor_read(write_statistics(tmp_path / "run.py.lprof", timings, monkeypatch))
    assert profile.actual_s == pytest.approx(seconds)
    assert profile.phases[0].arrays["wall_s"].sum() == pytest.approx(seconds)
    assert ("functions left out" in {note.name for note in profile.notes}) is left_out
    assert ("Mesh.cut" in {region.name for region in profile.regions}) is not left_out


@pytest.mark.parametrize(
    ("timings", "message"),
    [
        ({}, "was run"),
        ({("run.py", 1, "main"): []}, "was run"),
        ({("run.py", 1, "main"): [(3, 1, 5), (2, 1, 5)]}, "order"),
        ({("run.py", 1, "main"): [(2, 0, 5)]}, "without"),
        ({"main": [(2, 1, 5)]}, "no function"),
        ([1], "no statistics"),
        ({("run.py", 1, "main"): [(2, 1, 5, open)]}, "damaged"),
    ],
)
def test_other_pickles_are_refused(
    timings: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=message):
        call_stacks.advisor_read(write_statistics(tmp_path / "run.py.lprof", timings, monkeypatch))


def test_pickles_call_nothing(tmp_path: Path) -> None:
    """What Python's own reader would run."""
    made = tmp_path / "made"
    code = b"\x80\x04\x8c\x1cline_profiler._line_profiler\x8c\x09LineStats\x93c" + b"os\nmkdir\n"
    (tmp_path / "run.lprof").write_bytes(code + b"\x8c" + bytes([len(str(made))]) + str(made).encode() + b"\x85R.")
    with pytest.raises(InputError):
        call_stacks.advisor_read(tmp_path / "run.lprof")
    assert not made.exists()
