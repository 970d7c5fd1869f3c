"""What samplers print as text: tables of pprof, reports and listings of perf."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.formats import call_stacks
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.model.records import Profile

PROFILES = Path(__file__).parents[1] / "profiles" / "call_stacks"


def read_text(path: Path, text: str) -> Profile:
    path.write_text(text, newline="")
    assert call_stacks.advisor_sniff(path) is not None
    return call_stacks.advisor_read(path)


def test_tables_of_pprof(tmp_path: Path) -> None:
    text = (PROFILES / "pprof-top.txt").read_text()
    profile = read_text(tmp_path / "top.txt", text)
    assert (profile.program, profile.actual_s, profile.language) == ("heat", 10.02, "go")
    known = dict(zip((r.name for r in profile.regions), profile.sum_by_region("cpu_s").sum(axis=1), strict=True))
    assert known["main.solve"] == pytest.approx(4.2)
    assert known["main.(*grid).update"] == pytest.approx(0.9)
    assert known["functions that are not listed"] == pytest.approx(0.5)
    assert sum(known.values()) == pytest.approx(8.8)  # not futex and the kernel, 1.0 s
    assert profile.counts["code.garbage_s"].sum() == pytest.approx(1.9)
    busy = read_text(tmp_path / "top.txt", text.replace("Duration: 10.02s", "Duration: 4.90s"))
    assert busy.actual_s == pytest.approx(4.9)
    assert "threads added up" in {note.name for note in busy.notes}
    old = "Total: 200 samples\n  150  75.0%  75.0%  150  75.0% solve\n   50  25.0% 100.0%  200 100.0% main\n"
    assert read_text(tmp_path / "old.txt", old).counts["samples"].sum(axis=1).tolist() == [150.0, 50.0]
    for changed, reason in (
        (text.replace("4.20s", "8.20s"), "42.86 % of all"),
        (text.replace("of 9.80s total", "of 0s total"), "no samples"),
        (text.split("      flat")[0] + "      flat  flat%   sum%        cum   cum%\n", "cut off"),
        (text.replace("Type: cpu", "Type: inuse_space"), "inuse_space"),
        (text.replace(" total\n", "\n"), "cut off"),
    ):
        with pytest.raises(InputError, match=reason):
            read_text(tmp_path / "top.txt", changed)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_texts_of_windows(tmp_path: Path, encoding: str) -> None:
    whole = read_text(tmp_path / "top.txt", (PROFILES / "pprof-top.txt").read_text())
    (tmp_path / "wide.txt").write_bytes((PROFILES / "pprof-top.txt").read_text().encode(encoding))
    assert call_stacks.advisor_sniff(tmp_path / "wide.txt") is not None
    wide = call_stacks.advisor_read(tmp_path / "wide.txt")
    assert (wide.program, wide.actual_s) == (whole.program, whole.actual_s)


def test_callers_in_a_table_of_pprof_count_once(tmp_path: Path) -> None:
    rule = "----------------------------------------------------------+-------------\n"
    head, rows = (PROFILES / "pprof-top.txt").read_text().split("cum%\n")
    lines = [re.sub(r"%  (\S)", r"%                | \1", line) for line in rows.splitlines()]
    context = "                                             4.20s   100% |   main.main\n"
    tree = head + "cum%   calls calls% + context\n" + rule + "".join(f"{context}{line}\n{rule}" for line in lines)
    profile = read_text(tmp_path / "tree.txt", tree)
    assert profile.sum_by_region("cpu_s").sum() == pytest.approx(8.8)


def test_instructions_of_perf(tmp_path: Path) -> None:
    text = (PROFILES / "perf-annotate.txt").read_text()
    profile = read_text(tmp_path / "annotate.txt", text)
    found = dict(zip((r.name for r in profile.regions), profile.counts["samples"].sum(axis=1), strict=True))
    assert found == {"solve": 812, "norm(double const*, int)": 203, "malloc": 51}
    assert not profile.has_run_time
    with pytest.raises(InputError, match="perf report"):
        read_text(tmp_path / "annotate.txt", re.sub(r" \(\d+ samples.*\)", "", text))


PERF_REPORT = """# Samples: 2K of event 'cycles:u'
# Event count (approx.): 1000000
#
# Children      Self  Command  Shared Object     Symbol
# ........  ........  .......  ................  ..............................
#
    97.00%     0.00%  heat     heat              [.] main
            |
            ---main
               |
               |--60.00%--solve(double const&, int)
    60.00%    60.00%  heat     heat              [.] solve(double const&, int)
    37.00%    36.50%  heat     libm-2.31.so      [.] exp

# Samples: 5  of event 'branches'
# Event count (approx.): 10
#
# Overhead  Command  Shared Object  Symbol
# ........  .......  .............  ......
#
   100.00%  heat     heat           [.] other
"""


def test_shares_of_a_report_of_perf(tmp_path: Path) -> None:
    uncounted = PERF_REPORT.replace("# Event count (approx.): 1000000\n", "")
    profile = read_text(tmp_path / "report.txt", uncounted)
    assert (profile.program, profile.has_run_time) == ("heat", False)
    found = dict(zip((r.name for r in profile.regions), profile.counts["samples"].sum(axis=1), strict=True))
    assert {name: count for name, count in found.items() if count} == pytest.approx(
        {"solve(double const&, int)": 1200, "exp": 730, "functions that are not listed": 70}
    )
    flat = PERF_REPORT.split("\n\n", 1)[1]
    assert read_text(tmp_path / "flat.txt", flat).counts["samples"].sum() == 5
    branches = read_text(tmp_path / "flat.txt", flat)
    assert "no samples of time" in {note.name for note in branches.notes}
    many = uncounted.replace("36.50%", "36.90%") + "".join(
        f"     0.01%     0.01%  heat     heat              [.] f{n}\n" for n in range(400)
    )
    assert read_text(tmp_path / "many.txt", many.split("\n\n")[0] + many.split("other\n")[1]).phases
    long = uncounted.replace("heat              [.] exp", "heat" + "  x" * 20_000)
    assert read_text(tmp_path / "long.txt", long).counts["samples"].sum() == pytest.approx(2000)
    for text, reason in (
        (PERF_REPORT.replace("36.50%", "46.50%"), "add up"),
        (PERF_REPORT[:250], "cut off"),
        (PERF_REPORT.replace("2K", "2.0.0K"), "not a number"),
    ):
        with pytest.raises(InputError, match=reason):
            read_text(tmp_path / "report.txt", text)


@pytest.mark.parametrize(
    ("event", "count", "header", "seconds"),
    [
        ("cpu-clock", 2_000_000_000, "", 2.0),
        ("cycles:u", 6_000_000_000, "", 2.0),  # at the usual 3 GHz
        ("cpu_core/cycles/u", 6_000_000_000, "# cpudesc : Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz\n#\n", 2.5),
    ],
)
def test_seconds_of_a_report_of_perf(tmp_path: Path, event: str, count: int, header: str, seconds: float) -> None:
    text = header + PERF_REPORT.replace("cycles:u", event).replace("1000000", str(count))
    profile = read_text(tmp_path / "report.txt", text)
    assert profile.phases[0].arrays["cpu_s"].sum() == pytest.approx(seconds)
    assert ("cycles without times" in {note.name for note in profile.notes}) == ("cycles" in event)
    for unknown in (text.replace(event, "stalled-cycles-frontend"), text.replace("2K", "99")):
        assert "samples" in read_text(tmp_path / "report.txt", unknown).counts


def test_a_clock_whose_count_is_that_of_its_samples_tells_no_time(tmp_path: Path) -> None:
    clock = PERF_REPORT.replace("cycles:u", "cpu-clock")
    assert read_text(tmp_path / "a.txt", clock.replace("1000000", "2000000000")).sum_by_region("cpu_s").sum() > 0
    counted = read_text(tmp_path / "b.txt", clock.replace("1000000", "2000"))
    assert "samples" in counted.counts
    assert not counted.sum_by_region("cpu_s").any()


@pytest.mark.parametrize(
    ("columns", "rows", "names"),
    [
        ("Overhead  Symbol", "    60.00%  [.] solve(int)\n    40.00%  [k] clear\n", {"solve(int)": 1200, "clear": 800}),
        (
            "Overhead  Shared Object  Symbol",
            "    60.00%  heat  [.] solve(int)\n    40.00%  libm-2.31.so   [.] exp\n",
            {"solve(int)": 1200, "exp": 800},
        ),
        (
            "Overhead  Command  Shared Object",
            "    60.00%  heat     heat\n    40.00%  heat     libm-2.31.so    \n",
            {"[heat]": 1200, "[libm-2.31.so]": 800},
        ),
        (
            "Children      Self  Symbol            Shared Object  IPC   [IPC Coverage]",
            "    60.00%    60.00%  [.] Heat::solve(int)  heat  -      -    \n"
            "    40.00%    40.00%  [k] clear  [k]  1.2\n",
            {"Heat::solve(int)": 1200, "clear": 800},
        ),
        ("Children      Self  Command", "    60.00%    60.00%  heat 1\n    40.00%    40.00%  mpirun\n", {
            "[heat 1]": 1200, "[mpirun]": 800,
        }),
    ],
)  # fmt: skip
def test_reports_of_perf_by_other_columns(tmp_path: Path, columns: str, rows: str, names: dict[str, float]) -> None:
    text = f"$ perf report --stdio --sort x\n# Samples: 2K of event 'branches'\n#\n# {columns}\n# ....\n#\n{rows}\n"
    profile = read_text(tmp_path / "report.txt", text)
    found = dict(zip((r.name for r in profile.regions), profile.counts["samples"].sum(axis=1), strict=True))
    assert found == pytest.approx(names)
