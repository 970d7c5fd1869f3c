"""Counts of perf stat: each value is the one in the file, and what was not counted is unknown, not zero."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from advisor.analysis import soundness
from advisor.analysis.cache_counts import list_accesses, list_misses
from advisor.formats import perf_stat
from advisor.model.errors import InputError
from advisor.model.records import Processor, Profile
from advisor.support import contract

FOLDER = Path(__file__).parents[1] / "profiles" / "perf" / "stat"
CLOCK = "400.00,msec,task-clock,400000000,100.00,0.800,CPUs utilized\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def notes(profile: Profile) -> dict[str, float]:
    return {note.name: note.penalty for note in profile.notes}


def test_the_files_of_two_ranks() -> None:
    assert perf_stat.advisor_sniff(FOLDER) == 1.0
    profile = perf_stat.advisor_read(FOLDER)
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    assert profile.processors == (Processor(0), Processor(1))
    assert profile.ranks_expected == 2
    assert profile.started == "2026-11-21T00:57:31"
    rows = [(FOLDER / f"stat.rank{rank}.csv").read_text() for rank in (0, 1)]
    for event in ("context-switches", "page-faults", "cpu-migrations"):
        stated = [float(next(line for line in text.splitlines() if event in line).split(",")[0]) for text in rows]
        assert profile.counts[event].tolist() == [stated]
    assert not {"cycles", "instructions", "cache-misses"} & set(profile.counts), "unknown is not zero"
    assert {"not counted", "waiting hidden"} <= set(notes(profile))
    clocks = [float(text.split("msec,task-clock")[0].splitlines()[-1].rstrip(",")) for text in rows]
    assert (1e3 * profile.phases[0].arrays["cpu_s"]).ravel().tolist() == pytest.approx(clocks)


def test_json() -> None:
    profile = perf_stat.advisor_read(FOLDER / "stat.json")
    assert profile.actual_s == 0.001434177
    assert profile.counts["page-faults"].tolist() == [[179]]
    assert profile.phases[0].arrays["cpu_s"].ravel().tolist() == [pytest.approx(0.001148682)]
    assert "cycles" not in profile.counts


def test_the_run_time_follows_from_the_processors_in_use(tmp_path: Path) -> None:
    profile = perf_stat.advisor_read(written(tmp_path / "s.csv", CLOCK))
    assert profile.actual_s == pytest.approx(0.5)
    coarse = CLOCK.replace("0.800", "0.008")
    assert math.isnan(perf_stat.advisor_read(written(tmp_path / "s.csv", coarse)).actual_s)
    assert math.isnan(perf_stat.advisor_read(written(tmp_path / "s.csv", CLOCK.replace("CPUs", "x"))).actual_s)


def test_a_process_with_threads_has_the_time_of_its_run_and_hides_waiting(tmp_path: Path) -> None:
    profile = perf_stat.advisor_read(
        written(tmp_path / "s.csv", CLOCK.replace("0.800", "1.900") + "5,,faults,1,100.00,,\n")
    )
    assert profile.actual_s == pytest.approx(0.4 / 1.9)
    assert profile.phases[0].arrays["cpu_s"].ravel().tolist() == [pytest.approx(0.4 / 1.9)]
    assert profile.counts["faults"].tolist() == [[5]]
    assert {"several threads", "waiting hidden"} <= set(notes(profile))


TABLE = """the program's own output
# started on Mon Apr 14 12:53:58 2025


 Performance counter stats for './heat 1000' (3 runs):

          1,600.70 msec task-clock:u                     #    0.800 CPUs utilized            ( +-  0.03% )
                 0      context-switches                 #    0.000 /sec
    93,026,790,157      cycles                           #    5.167 GHz                      (83.30%)
                                                  #    0.00  stalled cycles per insn
   <not supported>      stalled-cycles-backend

            2.0010 +- 0.0021 seconds time elapsed  ( +-  0.11% )

       1.500352000 seconds user
       0.100000000 seconds sys

more output
"""


def test_the_table_for_people(tmp_path: Path) -> None:
    path = written(tmp_path / "log.txt", TABLE)
    assert perf_stat.advisor_sniff(path) == 1.0
    profile = perf_stat.advisor_read(path)
    soundness.check_profile(profile)
    assert (profile.program, profile.actual_s, profile.started) == ("heat", 2.001, "2025-04-14T12:53:58")
    assert profile.phases[0].arrays["cpu_s"].ravel().tolist() == [pytest.approx(1.500352)]
    assert profile.counts["cycles"].tolist() == [[93026790157]]
    assert {"counted part of the time", "not counted"} <= set(notes(profile))


@pytest.mark.parametrize("clock", ["1,600,700,000     ", "1,600.700000     ", "1,600.70 msec"])
def test_clocks_without_a_unit_are_nanoseconds_or_milliseconds_with_decimals(tmp_path: Path, clock: str) -> None:
    text = TABLE.replace("1,600.70 msec", clock).replace("2.0010 +-", "0.5000 +-")
    profile = perf_stat.advisor_read(written(tmp_path / "log.txt", text))
    assert profile.phases[0].arrays["cpu_s"].ravel().tolist() == [pytest.approx(1.500352 / 3.2014)]
    assert "several threads" in notes(profile)


def test_the_longest_table_of_a_log_in_any_notation(tmp_path: Path) -> None:
    german = TABLE.replace("./heat", "mpirun -n 2 heat").replace(",", "~").replace(".", ",").replace("~", ".")
    assert "2,0010" in german
    profile = perf_stat.advisor_read(written(tmp_path / "log.txt", TABLE.replace("2.0010", "0.9010") + german))
    assert profile.actual_s == 2.001
    assert profile.program == "heat"
    assert "several runs" in notes(profile)
    assert "wall_s" not in profile.phases[0].arrays, "ranks were added up"


def test_tables_cut_off_or_damaged(tmp_path: Path) -> None:
    profile = perf_stat.advisor_read(written(tmp_path / "log.txt", TABLE[: TABLE.index("2.0010")]))
    assert profile.actual_s == pytest.approx(1.6007 / 0.8), "by the processors in use"
    assert "table cut off" in notes(profile)
    with pytest.raises(InputError, match="is not a line"):
        perf_stat.advisor_read(written(tmp_path / "log.txt", TABLE.replace("cycles ", "? ")))


@pytest.mark.parametrize(
    ("text", "counts", "note"),
    [
        (
            "5,,cycles:u,10,60.00,,\n7,,cycles:k,10,100.00,,\n",
            {"cycles:u": 5, "cycles:k": 7},
            "counted part of the time",
        ),
        ("5;;cycles;10;100.00;;\n", {"cycles": 5}, "few counts"),
        ("     1.000000,5,,cycles,10,100.00,,\n     2.000000,6,,cycles,10,100.00,,\n", {"cycles": 11}, "few counts"),
        ("CPU0,5,,cycles,10,100.00,,\nCPU1,6,,cycles,10,100.00,,\n", {"cycles": 11}, "whole machine"),
        ("S0,2,5,,cycles,10,100.00,,\nS1,2,6,,cycles,10,100.00,,\n", {"cycles": 11}, "whole machine"),
        ("5,,cycles,0.12%,10,100.00,,\n", {"cycles": 5}, "few counts"),
        ("5,,cycles,10,100.00,0.5,insn per cycle\n,,,,,0.1,stalled\n", {"cycles": 5}, "few counts"),
        ("0,,major-faults,10,100.00,,\n<not counted>,,cycles,0,100.00,,\n", {"major-faults": 0}, "not counted"),
    ],
)
def test_forms(tmp_path: Path, text: str, counts: dict[str, float], note: str) -> None:
    path = written(tmp_path / "s.csv", "# started on Sat Nov 21 00:57:28 2026\n\n" + text)
    assert perf_stat.advisor_sniff(path) == 1.0
    profile = perf_stat.advisor_read(path)
    soundness.check_profile(profile)
    assert {name: float(table.sum()) for name, table in profile.counts.items()} == counts
    assert note in notes(profile)


def test_an_event_that_only_one_rank_has_is_left_out_and_noted(tmp_path: Path) -> None:
    written(tmp_path / "s.rank0.csv", CLOCK + "5,,cycles,10,100.00,,\n")
    written(tmp_path / "s.rank1.csv", CLOCK)
    profile = perf_stat.advisor_read(tmp_path)
    assert "cycles" not in profile.counts
    assert notes(profile)["events missing"] > 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CLOCK + "what\n", "is not a line of perf stat"),
        (CLOCK[:-3], "cut off"),
        (CLOCK.replace("400.00", "-400.00"), "is not a line"),
        (CLOCK.replace("400.00", "nan"), "is not a line"),
        (CLOCK.replace("100.00", "1e5"), "expected a number"),
        ("<not supported>,,cycles,0,100.00,,\n", "no event was counted"),
        ("# started on Sat Nov 21 00:57:28 2026\n", "no event was counted"),
        ('{"counter-value" : "5", "unit" : "", "event" : 7}\n', "expected an event"),
        ('{"counter-value" : "5", "unit" : \n', "is not a line of JSON"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        perf_stat.advisor_read(written(tmp_path / "s", text))


def test_a_last_line_without_newline_as_perf_writes_it(tmp_path: Path) -> None:
    path = written(tmp_path / "s", CLOCK + "<not supported>,,branch-misses,0,100.00,,")
    assert perf_stat.advisor_read(path).actual_s == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["stat.rank0.csv", "stat.json"])
def test_turned_bits_and_lost_ends_do_no_harm(tmp_path: Path, name: str) -> None:
    content = (FOLDER / name).read_bytes()
    tried = [content[:length] for length in range(len(content))]
    for bit in range(0, 8 * len(content), 5):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        tried.append(bytes(changed))
    refused = 0
    for damaged in tried:
        (tmp_path / "s").write_bytes(damaged)
        try:
            found = perf_stat.advisor_read(tmp_path / "s")
        except InputError:
            refused += 1
            continue
        contract.check_value(found, Profile)
        soundness.check_profile(found)
    assert refused > 0.4 * len(content)


def test_only_its_own_files_are_claimed() -> None:
    claimed = {path for path in FOLDER.parents[1].rglob("*") if perf_stat.advisor_sniff(path) is not None}
    assert claimed - {FOLDER} == {FOLDER / name for name in ("stat.rank0.csv", "stat.rank1.csv", "stat.json")}


def test_files_whose_names_number_nothing_are_runs_of_their_own(tmp_path: Path) -> None:
    for size in ("2k", "16k"):
        (tmp_path / f"{size}-small.txt").write_text(TABLE)
    assert perf_stat.advisor_sniff(tmp_path) is None
    for rank in range(2):
        (tmp_path / f"rank{rank}.txt").write_text(TABLE)
    assert perf_stat.advisor_sniff(tmp_path) == 1.0
    assert len(perf_stat.advisor_read(tmp_path).processors) == 2


CYCLES = """ Performance counter stats for './heat':

     {cycles}      cpu-cycles
       246,000,000      L1-dcache-loads
        56,000,000      L1-dcache-load-misses

       0.200000000 seconds time elapsed

"""


@pytest.mark.parametrize(
    ("cycles", "cpu_s"),
    [
        ("  540,000,000", 0.2),  # 0.18 s at 3 GHz: a processor of 2.7 GHz that works all the time
        ("  900,000,000", 0.2),  # … and one of 4.5 GHz
        ("2,400,000,000", 0.2),  # several, each of which works for as long as the run takes
        ("  200,000,000", None),  # slow, or idle for most of the time: nobody knows
    ],
)
def test_cycles_tell_the_time_of_a_processor_without_its_clock(
    tmp_path: Path, cycles: str, cpu_s: float | None
) -> None:
    profile = perf_stat.advisor_read(written(tmp_path / "stat.txt", CYCLES.format(cycles=cycles)))
    assert ("cycles without times" in notes(profile)) == (cpu_s is not None)
    if cpu_s is None:
        assert "cpu_s" not in profile.phases[0].arrays
    else:
        assert profile.actual_s == 0.2
        assert profile.phases[0].arrays["cpu_s"].ravel().tolist() == [pytest.approx(cpu_s)]


def test_cycles_alone_are_seconds_at_the_usual_rate(tmp_path: Path) -> None:
    profile = perf_stat.advisor_read(written(tmp_path / "s.csv", "1500000000,,cycles,1,100.00,,\n"))
    assert not profile.has_run_time
    assert profile.phases[0].arrays["cpu_s"].ravel().tolist() == [pytest.approx(0.5)]


def test_misses_of_caches_are_facts(tmp_path: Path) -> None:
    written(tmp_path / "stat.txt", CYCLES.format(cycles="540,000,000"))
    profile = perf_stat.advisor_read(tmp_path / "stat.txt")
    accesses, misses = list_accesses(profile.counts), list_misses(profile.counts, "L1")
    assert accesses is not None
    assert misses is not None
    assert (accesses.sum(), misses.sum()) == (246e6, 56e6)
    assert list_misses(profile.counts, "LL") is None
