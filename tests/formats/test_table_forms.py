"""Forms of timing tables that are described by templates: samples of each, damage, and what templates stand for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from damage import bit_flips, every_prefix

from advisor.analysis import bounds, gaps, loads
from advisor.formats import timing_tables
from advisor.formats.plain_text import PlainText
from advisor.formats.timing_tables.known_forms import FORMS
from advisor.formats.timing_tables.table_reading import parse_table
from advisor.formats.timing_tables.templates import compile_template, find_digits, parse_time
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.timing_tables.table_forms import TableForm
    from advisor.model.records import Profile

_LONG = 50_000
_CPMD = """ SUBROUTINE       CALLS             SELF TIME          TOTAL TIME
                            AVERAGE   MAXIMUM   AVERAGE   MAXIMUM
 cpmd                 1        0.50      0.60     20.00     20.00
 forces              51        9.00     11.00     19.50     19.60
 mp_sum             157       10.50     12.40     10.50     12.40
 ****************************************************************

   ELAPSED TIME :    0 HOURS  0 MINUTES 20.01 SECONDS
"""
_OPENMX = """                               Min_ID   Min_Time       Max_ID   Max_Time
   Total Computational Time =     9       64.000          0       64.100
   readfile                 =     3        3.000          0        4.000
   DFT                      =     0       59.500          0       59.500

*** In DFT ***

   Set_Hamiltonian          =     9       20.000          2       40.000
   Others                   =     0        1.000          1        1.000
"""
_OPENMC = """          MPI Processes: 2
 =======================>     TIMING STATISTICS     <=======================

 Total time for initialization     = 2.0000e+00 seconds
   Reading cross sections          = 1.5000e+00 seconds
 Total time in simulation          = 8.0000e+00 seconds
   Time in transport only          = 7.0000e+00 seconds
   Time in inactive batches        = 4.0000e+00 seconds
   Time in active batches          = 4.0000e+00 seconds
   Time synchronizing fission bank = 7.0000e-01 seconds
     SEND/RECV source sites        = 4.0000e-01 seconds
 Total time for finalization       = 0.0000e+00 seconds
 Total time elapsed                = 1.0000e+01 seconds
 Calculation Rate (inactive)       = 725.631 particles/second
"""
_QBOX = """<mpi_processes count="4">
  <timing name="iteration" min="    0.161" max="    0.168"/>
  <timing name="iteration" min="    0.161" max="    0.168"/>
<timing name="         charge" min="    2.000" max="    4.000"/>
<timing name="           gram" min="    1.000" max="    1.000"/>
<real_time> 7.18 </real_time>
"""
_ABACUS = """    Processor Number is 1

  |CLASS_NAME---------|NAME---------------|TIME(Sec)-----|CALLS----|AVG------|PER%-------
                                      total        4.0000        19     0.022   1.0e+02%
              HSolverPW               solve        2.0000         7     0.029       50.%
        LCAO_gen_fixedH     build_Nonlocal_beta_new1.0000   11        0.91      25.%
 ----------------------------------------------------------------------------------------
"""
_ORCA = """Timings for individual modules:

Sum of individual times         ...       70.000 sec (=   1.167 min)
GTO integral calculation        ...       40.000 sec (=   0.667 min)  57.1 %
SCF iterations                  ...       30.000 sec (=   0.500 min)  42.9 %
                             ****ORCA TERMINATED NORMALLY****
TOTAL RUN TIME: 0 days 0 hours 1 minutes 14 seconds 593 msec
"""
_WANNIER = """ Running in parallel on  8 CPUs
 |                             TIMING INFORMATION                            |
 *===========================================================================*
 |    Tag                                                Ncalls      Time (s)|
 |---------------------------------------------------------------------------|
 |overlap: read                                     :         1         3.000|
 |wann: main                                        :         1         5.000|
 *---------------------------------------------------------------------------*
"""
_SNAP = """     npey=     2
     npez=     2
     nthreads=     1
  Code Section                          Time (seconds)
 **************                        ****************
    Input                                1.0000E-01
    Solve                                7.0000E+00
       Inner Iterations                  6.5000E+00
          Transport Sweeps               6.0000E+00
  Total Execution time                   7.2434E+00

"""
_AMBER = """|    Read coords time is read here only
   5.  TIMINGS
--------------------------------------------------------------------------------

|    Read coords time           0.20 ( 9.09% of Total)
|                Build the list             0.08 (99.68% of List )
|             List time                  0.10 ( 5.00% of Nonbo)
|       Force time                 1.90 (95.00% of Runmd)
|    Runmd Time                 2.00 (90.90% of Total)
| Total time                 2.20 (100.0% of ALL  )
"""
_PARAFEM = """Number of processors used                              4
PROGRAM SECTION EXECUTION TIMES                  SECONDS  %TOTAL
Setup                                           0.300000   30.00
Solve equations                                 0.700000   70.00
Total execution time                            1.000000  100.00

"""
_CRYSTAL = """ TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT INPUT       TELAPSE        1.50 TCPU        0.20
 TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT SYMM        TELAPSE        4.00 TCPU        2.00
 TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT SYMM        TELAPSE        9.00 TCPU        7.00
 TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT END         TELAPSE        9.00 TCPU        7.00
"""
_EXCITING = """| MPI version using     32 processor(s)                                        =
- Timings (seconds)                                                            -
--------------------------------------------------------------------------------
 Calculation of potential                   :         9.00
 Disk reads/writes                          :        32.50
 Total time spent (seconds)                 :        68.20
"""
_TURBOMOLE = """     time in prepnos       cpu:  2 min 40 s  wall:  0 min 10 s  ratio: 16.0
     time in pretnos       cpu:  3 h 28 min  wall:  1 h  6 min  ratio: 3.2
         total  cpu-time :   3 hours 31 minutes and 47 seconds
         total wall-time :  1 hours 7 minutes and 10 seconds
"""
_CLOVERLEAF = """   Task Count      2
 Thread Count:     1
 Wall clock   0.5000000000
 Wall clock   2.0000000000

Profiler Output                 Time            Percentage
PdV                   :          1.2000         60.0000
Halo Exchange         :          0.6000         30.0000
Total                 :          1.8000         90.0000
The Rest              :          0.2000         10.0000
"""
_COMD = """Timing Statistics Across 16 Ranks:
        Timer        Rank: Min(s)       Rank: Max(s)      Avg(s)    Stdev(s)
_____________________________________________________________________________
total                3:   10.0000       0:   10.1000      10.0500       0.0100
  force              1:    7.0000       9:    8.5000       7.5000       0.5000
commReduce           9:    0.1000       1:    1.5000       0.9000       0.4000

"""
_NEKRS = """>>> runtime statistics (step= 30  totalElapsed= 44.2363s):
name                    time          abs%  rel%  calls
  solve                 8.00000e-01s  100.0
    min                 2.55411e-02s
    max                 6.43613e-02s
    flops/rank          2.60077e+10
    checkpointing       8.00000e-02s  10.0        3
    pressureSolve       4.80000e-01s  60.0        30
      preconditioner    4.00000e-01s  50.0  83.3  121

"""
_NALU = """Timing for Eq: MomentumEQS
         assemble --   \tavg: 118.0 \tmin: 112.0 \tmax: 128.0
linear iterations --  \tavg: 14.702 \tmin: 7 \tmax: 23
Timing for IO:
 io populate fd   --   \tavg: 0.006 \tmin: 0.006 \tmax: 0.007

Timing for Simulation: nprocs= 26
           main() --   \tavg: 200.5 \tmin: 200.5 \tmax: 200.5
nalu memory: total (over all cores) current/high-water mark=       2.81532 G      2.81534 G
"""
_EZTRACE = """MPI:
---
Thread P#0_T#780367552 -- total duration: 10000.000000 ms, time spent in mpi: 4000.000000 ms (40.000000 %)
\tMPI_WAITALL          :8 calls -- 3500.000000 ms (35.000000 % of the thread runtime)
\tMPI_ALLREDUCE        :4 calls -- 500.000000 ms (5.000000 % of the thread runtime)
Thread P#1_T#253856736 -- total duration: 10000.000000 ms, time spent in mpi: 1000.000000 ms (10.000000 %)
\tMPI_WAITALL          :8 calls -- 500.000000 ms (5.000000 % of the thread runtime)
\tMPI_ALLREDUCE        :4 calls -- 500.000000 ms (5.000000 % of the thread runtime)

3108471 events handled
"""
#: Program, text, ranks, seconds of the run, and mean seconds of some rows with all that they contain but other rows.
SAMPLES: dict[str, tuple[str, int, float, dict[str, float | None]]] = {
    "cpmd": (_CPMD, 2, 20.01, {"forces": 9.0, "mp_sum": 10.5}),
    "openmx": (_OPENMX, 10, 64.1, {"readfile": 3.9, "DFT": None, "Set_Hamiltonian": 38.0}),
    "qbox": (_QBOX, 4, 7.18, {"charge": 3.5, "gram": 1.0, "iteration": None}),
    "abacus": (_ABACUS, 1, 4.0, {"HSolverPW               solve": 2.0}),
    "orca": (_ORCA, 1, 74.593, {"SCF iterations": 30.0, "Sum of individual times": None}),
    "wannier90": (_WANNIER, 8, 5.0, {"overlap: read": 3.0}),
    "snap": (_SNAP, 4, 7.2434, {"Solve": 0.5, "Transport Sweeps": 6.0, "Inner Iterations": 0.5}),
    "amber": (_AMBER, 1, 2.2, {"Runmd Time": 0.1, "List time": 0.02, "Force time": 1.8, "Read coords time": 0.2}),
    "parafem": (_PARAFEM, 4, 1.0, {"Solve equations": 0.7}),
    "crystal": (_CRYSTAL, 1, 9.0, {"INPUT": 1.5, "SYMM": 7.5}),
    "exciting": (_EXCITING, 32, 68.2, {"Disk reads/writes": 32.5}),
    "turbomole": (_TURBOMOLE, 1, 4030.0, {"prepnos": 10.0, "pretnos": 3960.0}),
    "cloverleaf": (_CLOVERLEAF, 2, 2.0, {"PdV": 1.2, "Halo Exchange": 0.6, "The Rest": 0.2}),
    "comd": (_COMD, 16, 10.1, {"force": 7.5, "commReduce": 0.9}),
    "nekrs": (_NEKRS, 1, 0.8, {"pressureSolve": 0.08, "preconditioner": 0.4, "min": None}),
    "eztrace": (_EZTRACE, 2, 10.0, {"MPI_Waitall": 2.0, "MPI_Allreduce": 0.5}),
    "openmc": (
        _OPENMC,
        2,
        10.0,
        {"Time in transport only": 7.0, "Reading cross sections": 1.5, "Time in inactive batches": None},
    ),
    "nalu": (_NALU, 26, 200.5, {"Eq: MomentumEQS: assemble": 118.0, "IO: io populate fd": 0.006}),
}


def read_sample(text: str, tmp_path: Path) -> Profile:
    (tmp_path / "out").write_text(text)
    assert timing_tables.advisor_sniff(tmp_path / "out")
    return timing_tables.advisor_read(tmp_path / "out")


@pytest.mark.parametrize("name", SAMPLES)
def test_rows_are_those_of_the_text(name: str, tmp_path: Path) -> None:
    text, ranks, wall_s, rows = SAMPLES[name]
    profile = read_sample(text, tmp_path)
    assert profile.ranks == ranks
    assert profile.actual_s == pytest.approx(wall_s, rel=1e-3)
    wall = profile.phases[0].arrays["wall_s"][:, :, 0].mean(axis=1)
    found = {region.name: float(seconds) for region, seconds in zip(profile.regions, wall, strict=True)}
    assert {row: found.get(row) for row in rows if rows[row] is not None} == pytest.approx(
        {row: seconds for row, seconds in rows.items() if seconds is not None}, rel=1e-2
    )
    assert not [row for row in rows if rows[row] is None and row in found]


@pytest.mark.parametrize("name", SAMPLES)
def test_tables_that_are_cut_off_are_refused_or_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "sample").write_text(SAMPLES[name][0])
    every_prefix(tmp_path / "sample", tmp_path, timing_tables.advisor_read)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_bit_that_is_turned_over_never_ends_in_another_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "sample").write_text(SAMPLES[name][0])
    bit_flips(tmp_path / "sample", tmp_path, timing_tables.advisor_read)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("comd", "7.0000 ", "8.0000 ", "between the least and the most"),
        ("comd", "0.5000\n", "0.9000\n", "deviation"),
        ("comd", "       9: ", "      16: ", "more ranks than the 16"),
        ("cpmd", "9.00     11.00     19.50", "39.00     41.00     19.50", "all that it calls"),
        ("parafem", "0.700000 ", "0.400000 ", "are not 0.7 of the run"),
        ("orca", "GTO integral calculation        ...", "GTO integral calculation        :::", "no line"),
        ("cpmd", "ELAPSED", "ELAPSES", "the output ends before the run time"),
        ("comd", "total    ", "totals   ", "'total' is missing"),
        ("eztrace", "4000.000000 ms", "4900.000000 ms", "are not 40 %"),
        ("eztrace", ":4 calls -- 500.0", ":4 calls -- 800.0", "do not add up"),
        ("eztrace", "P#1_", "P#2_", "of 3 processes 2 are there"),
        ("eztrace", "P#1_", "P#0_", "several threads"),
    ],
)
def test_contradictions_are_refused(name: str, old: str, new: str, message: str, tmp_path: Path) -> None:
    text = SAMPLES[name][0]
    assert old in text
    with pytest.raises(InputError, match=message):
        read_sample(text.replace(old, new, 1), tmp_path)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("12.5", 12.5), ("1.5D+01", 15.0), ("0:07:08.5", 428.5), ("1-02:00:00", 93600.0), ("12:30", 750.0),
        ("0 days 0 hours 1 minutes 14 seconds 593 msec", 74.593), ("05m 18.732s", 318.732), ("3 h 28 min", 12480.0),
    ],
)  # fmt: skip
def test_times_in_all_forms(words: str, seconds: float, tmp_path: Path) -> None:
    assert parse_time(PlainText(tmp_path, (words,)), words, 0) == pytest.approx(seconds)


def test_blanks_of_a_template_stand_for_any_number() -> None:
    pattern = compile_template("|{indent}{name} {mean} ( {_}% of …")
    found = pattern.match("|      List time   0.08 (99.68% of Nonbo)")
    assert found is not None
    assert (found["indent"], found["name"], found["mean"]) == ("      ", "List time", "0.08")
    assert pattern.match("|      List time   x.08 (99.68% of Nonbo)") is None


@pytest.mark.parametrize("words", ["12 ns", "3 furlongs", "1 s 5 ns"])
def test_a_unit_that_is_not_known_is_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a unit of time"):
        parse_time(PlainText(tmp_path, (words,)), words, 0)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.tool)
@pytest.mark.parametrize("line", ["1" * _LONG, "a " + "1" * _LONG + "x", " " * _LONG + "x", "a 1.0 " * (_LONG // 6)])
def test_a_long_line_takes_no_more_than_its_length(form: TableForm, line: str) -> None:
    """A pattern that tries all ways to split such a line takes minutes of CPU time."""
    begin = time.process_time()
    for template in (*form.rows, *form.besides, form.begin, form.end or "{blank}"):
        compile_template(template).match(line)
    assert time.process_time() - begin < 20.0


@pytest.mark.parametrize(
    ("number", "digit"),
    [("1.25", 0.01), ("7", 1.0), ("2.00E+01", 0.1), ("1 h 2 min", 1.0), ("0E999", float("inf")), ("0.0E-999", 0.0)],
)
def test_the_last_digit_of_a_number(number: str, digit: float) -> None:
    assert find_digits(number) == pytest.approx(digit)


def test_the_row_in_which_ranks_differ_most_is_named(tmp_path: Path) -> None:
    told = {note.name: note.text for note in read_sample(_OPENMX, tmp_path).notes}
    assert any("they differ most in Set_Hamiltonian: 20.0 s to 40.0 s" in text for text in told.values())


def test_rows_that_are_called_once_keep_their_number(tmp_path: Path) -> None:
    text = PlainText(tmp_path, tuple(_CPMD.replace("  51  ", "  11  ").split("\n")))
    table = parse_table(text, next(form for form in FORMS if form.tool == "CPMD"))
    assert {row.name: row.calls for row in table.rows} == {"cpmd": 1.0, "forces": 11.0, "mp_sum": 157.0}


def test_statistics_of_eztrace_without_a_process_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no process"):
        read_sample(_EZTRACE.replace("Thread P#", "Process "), tmp_path)


def test_each_process_of_eztrace_is_a_rank(tmp_path: Path) -> None:
    """One rank works 6 s of 10, the other 9 s: they would take 7.5 s each."""
    profile = read_sample(_EZTRACE, tmp_path)
    summary = loads.summarize_loads(profile)
    found = gaps.attribute_gaps(profile, bounds.compute_bounds(profile, None, summary), summary)
    assert next(gap for gap in found if gap.name == "L").seconds == pytest.approx(1.5)
