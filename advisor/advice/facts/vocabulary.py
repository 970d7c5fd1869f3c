"""The vocabulary of the rules: every fact with its unit, inputs and formula.

``docs/facts.md`` is made from this table (``facts.document``). Values are computed in ``values`` and, for facts of
plugins, by their own ``compute``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from advisor.analysis.measures import MISSING, recording_command
from advisor.model.records import Profile
from advisor.trace.events import Trace

Value = float | str | bool
Unit = Literal["s", "B", "share", "ratio", "count", "name", "yes/no"]
Scope = Literal["run", "phase"]
Compute = Callable[[Profile, int | None], Value | None]
TraceCompute = Callable[[Profile, Trace, int | None], Value | None]

#: The dimension of ``advisor.model.units`` in which thresholds of a unit are written; the others are plain numbers.
DIMENSIONS: Final[Mapping[Unit, str]] = {"s": "time", "B": "size", "share": "share"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One word of the vocabulary.

    ``needs`` names the arrays and counts of a Profile that the fact is computed from, ``command`` records them
    (``{launch}`` stands for what starts all ranks, ``mpirun -n 4``). ``compute`` is for facts of plugins: it returns
    the value in a phase (an index into ``Profile.phases``) or, with None, in the run; None where it is unknown.
    ``of_trace`` does the same from the events of the run, and is unknown where there are none.
    ``finding`` names kind, subject and measure of a finding whose number is the value in a run of which it was made;
    what only the history of a program tells is known in this way.
    """

    name: str
    unit: Unit
    scope: Scope
    needs: tuple[str, ...]
    command: str
    formula: str
    compute: Compute | None = None
    of_trace: TraceCompute | None = None
    finding: tuple[str, str, str] | None = None


_TRACE: Final = MISSING["wait_s"].command
_SCOREP: Final = "rebuild with scorep before the compiler, then SCOREP_ENABLE_TRACING=true {launch}./PROGRAM"
_CORES: Final = "gapwatch advise --cores N PATH"
_CACHE: Final = "{launch}valgrind --tool=cachegrind --cache-sim=yes ./PROGRAM"
_MEMORY: Final = "{launch}likwid-perfctr -C 0 -g MEM ./PROGRAM, then gapwatch advise --machine host PATH"
_SHARING: Final = "{launch}perf c2c record ./PROGRAM, then perf c2c report"
_VECTOR: Final = "{launch}valgrind --tool=callgrind --dump-instr=yes ./PROGRAM"
_DARSHAN: Final = "DARSHAN_LOGPATH=. DXT_ENABLE_IO_TRACE=1 {launch}env LD_PRELOAD=libdarshan.so ./PROGRAM"
_CPU: Final = MISSING["cpu_s"].command
_BINARY: Final = "gapwatch advise --binary ./PROGRAM PATH"
_SAMPLES: Final = (
    "perf record -o gapwatch-perf.data {launch}./PROGRAM && perf script -i gapwatch-perf.data > gapwatch-perf.txt && "
    "gapwatch advise --binary ./PROGRAM gapwatch-perf.txt"
)


def _parse_facts(needs: str, command: str, rows: str) -> tuple[Fact, ...]:
    """Facts that need the same: one line each, ``name | unit | formula``; those under ``run.`` are of the run."""
    cells = ([cell.strip() for cell in row.split("|")] for row in rows.strip().splitlines())
    units: dict[str, Unit] = {unit: unit for unit in ("s", "B", "share", "ratio", "count", "name", "yes/no")}
    return tuple(
        Fact(name, units[unit], "run" if name.startswith("run.") else "phase", tuple(needs.split()), command, formula)
        for name, unit, formula in cells
    )


_RUN: Final = (
    *_parse_facts(
        "processors",
        "",
        """
        run.wall_s     | s     | wall-clock time
        run.ranks      | count | number of processes
        run.threads    | count | largest number of threads observed in a process
        run.processors | count | processes and threads observed
        run.iterations | count | how often the phase with the most time occurred
        """,
    ),
    *_parse_facts(
        "cores",
        _CORES,
        """
        run.cores            | count | cores that the run may use
        run.oversubscription | ratio | processors / cores
        run.busy_cores       | share | CPU seconds / (run time * cores), at most 1; 1 where no CPU times are known
        """,
    ),
    *_parse_facts(
        "outside",
        _TRACE,
        """
        run.startup_s  | s | seconds before the first phase (MPI_Init among them), mean over the processors
        run.shutdown_s | s | seconds after the last phase (MPI_Finalize among them), mean over the processors
        """,
    ),
    *_parse_facts(
        "paradigms",
        _TRACE,
        """
        run.has_mpi    | yes/no | the program calls MPI
        run.has_openmp | yes/no | the program has parallel regions of OpenMP
        """,
    ),
    *_parse_facts(
        "wall_s outside threads",
        _SCOREP,
        """
        run.idle_threads_share | share | seconds of threads outside parallel regions / (processors * run time)
        """,
    ),
)

_LOAD: Final = (
    *_parse_facts(
        "wall_s wait_s sync_s",
        _TRACE,
        """
        phase.imbalance       | ratio | max over processors of work / mean over processors
        phase.rank_imbalance  | ratio | the same over ranks, each with the mean of its threads
        phase.dynamic_ratio   | ratio | sum over iterations of the max over processors / max over processors of the sum
        phase.slowest_rank_persistence | share | iterations where the rank (or thread) slowest overall is slowest
        phase.slowest_differs | yes/no | here the slowest of all parallel phases is over 2 % faster than the slowest
        phase.heaviest_share  | share | work of the processor with the most work / work of all
        phase.alone_share     | share | imbalance of ranks that regions make which one of them does (95 %) / all of it
        phase.work_s          | s     | work (wall - wait - sync) of the processor with the most of it
        sync.work_between_s   | s     | median over the iterations of the max over processors of work
        """,
    ),
    *_parse_facts(
        "wall_s wait_s sync_s threads",
        _SCOREP,
        """
        phase.thread_imbalance | ratio | max / mean of work over the threads of the rank that loses most by it
        """,
    ),
    *_parse_facts(
        "phases",
        _TRACE,
        """
        phase.iterations | count  | how often the phase occurred
        phase.share      | share  | time between the two synchronizations, or work of the slowest / run time
        phase.closed_by  | name   | the call that ends the phase
        phase.is_serial  | yes/no | one processor does at least 95 % of the work while the others wait
        phase.phases     | count  | parallel phases that take at least 1 % of the run
        sync.empty_phases | yes/no | the slowest processor works less than 1 % of the time of the phase
        """,
    ),
)

_WAITING: Final = (
    *_parse_facts("wait_s wall_s", _TRACE, "wait.share | share | waiting / wall time of all processors"),
    *_parse_facts(
        "wait_s causes",
        _TRACE,
        """
        wait.late_sender_share   | share | waiting for a message not yet sent / all waiting
        wait.late_receiver_share | share | waiting of senders for the receive / all waiting
        wait.collective_share    | share | waiting in collectives with data / all waiting
        wait.barrier_share       | share | waiting in barriers and at the end of the run / all waiting
        wait.thread_share        | share | waiting of threads, in their barriers and for locks / all waiting
        wait.lock_share          | share | waiting of threads for locks and critical sections / all waiting
        wait.unmatched_share     | share | waiting in messages without a partner in the data / all waiting
        """,
    ),
)

_COMMUNICATION: Final = (
    *_parse_facts("transfer_s wall_s", _TRACE, "comm.share | share | transfer / wall time of all processors"),
    *_parse_facts(
        "causes",
        _TRACE,
        """
        comm.messages_per_iteration    | count | messages sent / who sends / iterations with work
        comm.seconds_per_message       | s     | transfer of messages / messages sent
        comm.point_to_point_share      | share | transfer of messages / all transfer
        comm.collective_share          | share | transfer of collectives / all transfer
        comm.alltoall_share            | share | transfer of all-to-all exchanges / all transfer
        comm.reductions_per_iteration  | count | reductions / who takes part / iterations with work
        comm.collectives_per_iteration | count | collectives with data / who takes part / iterations with work
        """,
    ),
    *_parse_facts(
        "causes",
        _SCOREP,
        """
        comm.mean_message_B      | B     | bytes sent / messages whose size is known; 0 without messages
        comm.small_message_share | share | messages of at most 4 KiB / messages whose size is known; 0 without messages
        comm.mean_collective_B   | B     | bytes of collectives / collectives whose size is known; 0 without collectives
        """,
    ),
)

_SYNCHRONIZING: Final = (
    *_parse_facts("sync_s wall_s", _TRACE, "sync.share | share | synchronizing / wall time of all processors"),
    *_parse_facts(
        "causes",
        _TRACE,
        """
        sync.barriers_per_iteration   | count | explicit barriers / who takes part / iterations with work
        sync.thread_share             | share | starting, joining and barriers of threads / all synchronizing
        sync.fork_joins_per_iteration | count | parallel regions started / who starts them / iterations with work
        """,
    ),
)

_INPUT_OUTPUT: Final = (
    *_parse_facts("io_s wall_s", _TRACE, "io.share | share | input and output / wall time of all processors"),
    *_parse_facts(
        "io_s causes",
        _TRACE,
        """
        io.operations_per_iteration | count  | reads and writes / who does them / iterations with work
        io.mean_operation_B         | B      | bytes / reads and writes whose size is known; 0 without any
        io.small_share              | share  | reads and writes of at most 100 KiB / those whose size is known
        io.shared_share             | share  | reads and writes in files that several processors access / all
        io.processors_share         | share  | processors that do input or output / all
        io.metadata_share           | share  | seconds in open, close, stat and the like / all input and output
        io.one_processor            | yes/no | one of several processors spends at least 90 % of the input and output
        io.mpi_io                   | yes/no | files are accessed through MPI
        """,
    ),
    *_parse_facts(
        "io_s causes",
        _DARSHAN,
        """
        io.unaligned_share | share | reads and writes that begin inside a block of the file system / all
        io.fsync_share     | share | seconds in fsync and the like / all input and output
        io.forced_share    | share | seconds in fsync, and in writing where a tool adds both up / all input and output
        io.forced_B        | B     | bytes written / calls of fsync and the like; 0 without any
        """,
    ),
)

_PROCESSOR: Final = (
    *_parse_facts(
        "misses.L1 compiled_ops.load",
        _CACHE,
        "cache.l1_miss_ratio | share | misses of the first cache / loads and stores",
    ),
    *_parse_facts(
        "misses.LL compiled_ops.load",
        _CACHE,
        "cache.ll_miss_ratio | share | misses of the last cache / loads and stores",
    ),
    *_parse_facts(
        "memory_bytes machine",
        _MEMORY,
        "memory.bandwidth_share | share | bytes from memory / (work of the slowest * the machine's memory bandwidth)",
    ),
    *_parse_facts(
        "vectorized_ops compiled_ops.fp_add",
        _VECTOR,
        "processor.vectorized_share | share | vectorized / all compiled floating-point operations",
    ),
    *_parse_facts(
        "contended_loads compiled_ops.load",
        _SHARING,
        "processor.false_sharing_share | share | loads of lines that another core has changed / all loads",
    ),
    *_parse_facts(
        "os_s wall_s",
        _CPU,
        "os.share | share | seconds taken by the operating system / wall time of all processors",
    ),
)

_CODE: Final = (
    *_parse_facts(
        "code.all_s code.unoptimized_s",
        _BINARY,
        "code.unoptimized_share | share | seconds in functions compiled without optimization / computation",
    ),
    *_parse_facts(
        "code.all_s code.known_s",
        _SAMPLES,
        """
        code.known_share    | share | seconds in functions whose code was looked at, or is known / computation
        code.checked_share  | share | seconds in functions whose loops check bounds or assertions / computation
        code.scalar_share   | share | seconds in inner loops that compute with one number at a time / computation
        code.overlap_share  | share | the same where nothing but overlapping arrays, or options, can be the reason
        code.order_share    | share | the same where a sum has to keep its order
        code.branch_share   | share | the same where the loop branches
        code.call_share     | share | the same where the loop calls functions
        code.stride_share   | share | seconds in inner loops, times their share of accesses with a stride / computation
        code.page_share     | share | the same for strides of 4 KiB and multiples
        code.division_share | share | seconds in inner loops that divide or take roots / computation
        code.update_share   | share | seconds in inner loops that store to one place each time / computation
        """,
    ),
    *_parse_facts(
        "code.all_s code.math_s",
        _SAMPLES,
        """
        code.math_share       | share | seconds in pow, exp and the like, and in loops that call them / computation
        code.allocation_share | share | seconds in malloc, free and the like / computation
        code.copy_share       | share | seconds in memcpy, memset and the like / computation
        """,
    ),
)

#: All facts that rules may name, by topic.
VOCABULARY: Final[tuple[Fact, ...]] = (
    *_RUN,
    *_LOAD,
    *_WAITING,
    *_COMMUNICATION,
    *_SYNCHRONIZING,
    *_INPUT_OUTPUT,
    *_PROCESSOR,
    *_CODE,
)


def facts_by_name(extra: Iterable[Fact] = ()) -> dict[str, Fact]:
    """Return the vocabulary by name, with the facts of plugins; a built-in fact keeps its meaning."""
    return {fact.name: fact for fact in (*extra, *VOCABULARY)}


def command_for(profile: Profile, fact: Fact) -> str:
    """Return the command that would record what ``fact`` needs, for this program's number of ranks."""
    standard = next((name for name, missing in MISSING.items() if missing.command == fact.command), None)
    if standard:
        return recording_command(profile, standard)
    ranks = len({processor.rank for processor in profile.processors})
    launch = f"mpirun -n {ranks} " if ranks > 1 or "mpi" in profile.paradigms else ""
    return fact.command.replace("{launch}", launch)
