"""The forms of timing tables that are known: see ``table_forms`` for the templates."""

from __future__ import annotations

from typing import Final

from advisor.formats.timing_tables.table_forms import TableForm

#: What the calls of CP2K's wrapper of MPI do.
_MP: Final = (
    ("mp_(sum|max|min|alltoall|allgather)", "ALL_TO_ALL"), ("mp_(bcast|scatter)", "ONE_TO_ALL"),
    ("mp_gather", "ALL_TO_ONE"), ("mp_sync", "BARRIER"), ("mp_(wait|test)", "WAIT"), ("mp_sendrecv", "SENDRECV"),
    ("mp_i(send|recv)", "POST"), ("mp_send", "SEND"), ("mp_recv", "RECV"), ("mp_(win_|rget)", "RMA"),
    ("mp_file_", "IO"), ("mp_", "COMM_OTHER"), ("", "USER"),
)  # fmt: skip

FORMS: Final = (
    TableForm(
        tool="Nalu-Wind", program="naluX", language="cxx", marker=b"\nnalu memory: total (over all cores)",
        begin="Timing for Eq: {name}", end="Timing for Simulation: …", section="Timing for {name}",
        rows=("{name} -- avg: {mean} min: {least} max: {most}",), besides=("linear iterations --…",),
        wall=("main() -- avg: {_} min: {_} max: {wall}",), ranks=("Timing for Simulation: nprocs= {ranks}",),
    ),
    TableForm(
        tool="Teuchos", language="cxx", marker=b"TimeMonitor results over ", begin="TimeMonitor results over {_} {_}",
        end="====…", ranks=("TimeMonitor results over {ranks} {_}",),
        rows=("{name} {least} ({_}) {mean} ({calls}) {most} ({_}) {_} ({_})", "{name} {mean} ({calls})"),
    ),
    TableForm(
        tool="Caliper", language="cxx", marker=b"Min time/rank Max time/rank Avg time/rank Time %",
        begin="Path Min time/rank Max time/rank Avg time/rank Time %…", nesting="apart",
        rows=("{name} {least} {most} {mean} {share} …", "{name} {least} {most} {mean} {share}"),
    ),
    TableForm(
        tool="deal.II", language="cxx", marker=b"| Total wallclock time elapsed ",
        begin="| Total wallclock time elapsed …", end="+----…",
        rows=(
            "| {name} | {calls} | {mean}s | {_} |",
            "| {name} | {calls} | {least}s {least_at} | {mean}s | {most}s {most_at} |",
            "| {name} | {calls} | {least}s | {mean}s | {most}s |",
        ),
        wall=("| Total wallclock time elapsed since start | {wall}s |…",
              "| Total wallclock time elapsed | {_} {_} | {_} | {wall}s {_} |",
              "| Total wallclock time elapsed | {_} | {_} | {wall}s |"), averages=True,
    ),
    TableForm(
        tool="CP2K", program="cp2k", language="fortran", marker=b" T I M I N G ", begin="- T I M I N G -", end="-----…",
        rows=("{name} {calls:hits} {_} {mean} {most} {inclusive} {inclusive_most}",), nesting="apart", roles=_MP,
        ranks=("GLOBAL| Total number of message passing processes {ranks}",), hides_waiting=False,
        threads=("GLOBAL| Number of threads for this process {threads}",), run="GLOBAL| Project name {words:word}",
        started="{_} {_} {_} {_} PROGRAM STARTED AT {words:text}", finish="{_} {_} {_} {_} PROGRAM ENDED AT…",
    ),
    TableForm(
        tool="FMS", language="fortran", marker=b"Tabulating mpp_clock statistics across ", whole="Total runtime",
        begin="Tabulating mpp_clock statistics across {_} PEs...", end="MPP_STACK high water mark…",
        ranks=("Tabulating mpp_clock statistics across {ranks} PEs...",),
        rows=("{name} {calls:hits} {least} {most} {mean} {deviation} {fraction} {_} {first} {last}",
              "{name} {least} {most} {mean} {deviation} {fraction} {_} {first} {last}"),
    ),
    TableForm(
        tool="ESMF", language="fortran", marker=b"Mean (s)    Min (s)     Min PET Max (s)     Max PET",
        begin="Region PETs PEs Count Mean (s) Min (s) Min PET Max (s) Max PET", whole="[ESMF]", nesting="indented",
        rows=("{indent}{name} {on} {_} {calls} {mean} {least} {least_at} {most} {most_at}",),
        roles=((r"\[\S+-TO-\S+\]", "COMM_OTHER"),),
    ),
    TableForm(
        tool="ABINIT", program="abinit", language="fortran", marker=b"\n-<BEGIN_TIMER mpi_nprocs = ",
        begin="-<BEGIN_TIMER mpi_nprocs = {_} omp_nthreads = {_} mpi_rank = 0>", end="-<END_TIMER>", nesting="apart",
        rows=("- {name} {_:number} {_:number} {mean} {share} {calls:_} …",),
        besides=("- cpu_time = …", "-"), sum="- subtotal {_} {_} {sum} …",
        wall=("- cpu_time = {_} wall_time = {wall}",), cpu="- cpu_time = {cpu}, …",
        ranks=("-<BEGIN_TIMER mpi_nprocs = {ranks}, …",),
        threads=("-<BEGIN_TIMER mpi_nprocs = {_} omp_nthreads = {threads}, …",),
    ),
    TableForm(
        tool="CPMD", program="cpmd", language="fortran", marker=b"SUBROUTINE       CALLS             SELF TIME ",
        begin="SUBROUTINE CALLS SELF TIME TOTAL TIME", end="****…", nesting="apart",
        rows=("{name} {calls} {mean} {most} {inclusive} {inclusive_most}",), wall=("ELAPSED TIME : {wall:time}",),
    ),
    TableForm(
        tool="OpenMX", program="openmx", language="c", marker=b"Min_ID   Min_Time       Max_ID   Max_Time",
        begin="Min_ID Min_Time Max_ID Max_Time", whole="Total Computational Time", end="Others = …",
        rows=("{name} = {least_at} {least} {most_at} {most}",), besides=("*** In {_} ***",),
        threads=("The number of threads in each node for OpenMP parallelization is {threads}.",),
    ),
    TableForm(
        tool="Qbox", program="qb", language="cxx", marker=b'<timing name="', ranks=('<mpi_processes count="{ranks}">',),
        rows=('<timing name=" {name}" min=" {least}" max=" {most}"/>',),
        besides=('<timing name="iteration…',), wall=("<real_time> {wall} </real_time>",),
    ),
    TableForm(
        tool="ABACUS", program="abacus", language="cxx", marker=b"|CLASS_NAME---------|NAME---------------|TIME(Sec)",
        begin="|CLASS_NAME{_}", end="----…", whole="total", ranks=("Processor Number is {ranks}",),
        rows=("{name}{dots}{mean} {calls} {_} {share} %",),
    ),
    TableForm(
        tool="ORCA", program="orca", language="cxx", marker=b"Timings for individual modules:", nesting="apart",
        begin="Timings for individual modules:", end="****ORCA TERMINATED NORMALLY****",
        rows=("{name} ... {mean} sec (= {_} min) {_} %",), besides=("Sum of individual times…",),
        wall=("TOTAL RUN TIME: {wall:time}",), ranks=("* Program running with {ranks} parallel MPI-processes *",),
    ),
    TableForm(
        tool="Wannier90", program="wannier90", language="fortran", marker=b"|    Tag                                 ",
        begin="| TIMING INFORMATION |", end="*----…", rows=("|{name} : {calls} {mean}|",), nesting="apart",
        besides=("*====…",), ranks=("Running in parallel on {ranks} CPUs",),
    ),
    TableForm(
        tool="SNAP", program="snap", language="fortran", marker=b"Code Section                          Time (seconds)",
        begin="Code Section Time (seconds)", whole="Total Execution time", rows=("{indent}{name} {mean}",),
        nesting="indented", ranks=("npey= {ranks}", "npez= {ranks}"), threads=("nthreads= {threads}",),
    ),
    TableForm(
        tool="Amber", program="sander", language="fortran", marker=b"\n|    Read coords time ", whole="Total time",
        begin="5. TIMINGS", end="| Total time …", nesting="indented upwards",
        rows=("|{indent}{name} {mean} ( {_}% of …",),
    ),
    TableForm(
        tool="ParaFEM", language="fortran", marker=b"PROGRAM SECTION EXECUTION TIMES ", whole="Total execution time",
        begin="PROGRAM SECTION EXECUTION TIMES SECONDS %TOTAL", nesting="apart", rows=("{name} {mean} {share}",),
        ranks=("Number of processors used {ranks}",),
    ),
    TableForm(
        tool="CRYSTAL", program="crystal", language="fortran", marker=b" TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT END ",
        rows=("{_} {name} TELAPSE {mean} TCPU {_}",),
        wall=("TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT END TELAPSE {wall} TCPU {_}",),
        cpu="TTTTTTTTTTTTTTTTTTTTTTTTTTTTTT END TELAPSE {_} TCPU {cpu}", cumulative=True, nesting="apart",
        ranks=("PROCESS {_} OF {ranks} WORKING",),
    ),
    TableForm(
        tool="exciting", program="exciting", language="fortran", marker=b"\n- Timings (seconds)  ",
        begin="- Timings (seconds) -", rows=("{name} : {mean}",), wall=("Total time spent (seconds) : {wall}",),
        end="Total time spent (seconds) …", ranks=("| MPI version using {ranks} processor(s) …",),
    ),
    TableForm(
        tool="Turbomole", language="fortran", marker=b" total wall-time : ",
        rows=("time in {name} cpu: {_:time} wall: {mean:time} ratio: {_}",),
        wall=("total wall-time : {wall:time}",),
    ),
    TableForm(
        tool="CloverLeaf", language="fortran", marker=b"Profiler Output                 Time            Percentage",
        begin="Profiler Output Time Percentage", rows=("{name} : {mean} {share}",), end="The Rest : …",
        besides=("Total : …",), wall=("Wall clock {wall}",), nesting="apart",
        ranks=("Task Count {ranks}",), threads=("Thread Count: {threads}",),
    ),
    TableForm(
        tool="CoMD", program="CoMD", language="c", marker=b"Rank: Min(s)       Rank: Max(s)      Avg(s)    Stdev(s)",
        begin="Timing Statistics Across {_} Ranks:", end="{blank}", whole="total",
        ranks=("Timing Statistics Across {ranks} Ranks:",),
        rows=("{indent}{name} {least_at}: {least} {most_at}: {most} {mean} {deviation}",),
    ),
    TableForm(
        tool="OpenMC", program="openmc", language="cxx", marker=b"==>     TIMING STATISTICS     <==",
        begin="=======================> TIMING STATISTICS <=======================", end="Total time elapsed = …",
        whole="Total time elapsed", nesting="indented",
        rows=("{indent}{name} = {mean} seconds",), besides=("Time in inactive batches = …",
        "Time in active batches = …", "Calculation Rate…"), roles=(("SEND/RECV", "COMM_OTHER"), ("writing", "IO"),
        ("Reading", "IO"), ("", "USER")), ranks=("MPI Processes: {ranks}",), threads=("OpenMP Threads: {threads}",),
    ),
    TableForm(
        tool="nekRS", program="nekrs", language="cxx", marker=b">>> runtime statistics (step=",
        begin=">>> runtime statistics (step= …", end="{blank}", rows=("{indent}{name} {mean}s…",),
        besides=("min {_}", "max {_}", "flops…", "throughput…"), whole="solve", nesting="indented",
    ),
)  # fmt: skip
