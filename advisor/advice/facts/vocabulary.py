"""The vocabulary of the rules: every fact with its unit, inputs and formula.

``docs/facts.md`` is made from this table (``facts.document``). Values are computed in ``values`` and, for facts of
plugins, by their own ``compute``.
"""

from collections.abc import Iterable
from typing import Final

from advisor.advice.facts.code_vocabulary import CODE
from advisor.advice.facts.fact_records import Fact, parse_facts
from advisor.analysis.device_ladder import COLLECT_PEAK
from advisor.analysis.measures import MISSING, launch_prefix, recording_command
from advisor.model.records import Profile

_TRACE: Final = MISSING["wait_s"].command
_COUNTS: Final = MISSING["compiled_ops"].command
_CORES: Final = "gapwatch advise --cores N PATH"
_MEMORY: Final = "{launch}likwid-perfctr -f -g MEM -o likwid_%r_%h.csv ./PROGRAM && gapwatch advise --machine host ."
_SLOTS: Final = "CALI_CONFIG='spot(output=run.cali,topdown.all)' {launch}./PROGRAM"
_SHARING: Final = "perf c2c record -o c2c.data {launch}./PROGRAM && perf c2c report -i c2c.data --stdio"
_DARSHAN: Final = "DARSHAN_LOGPATH=. DXT_ENABLE_IO_TRACE=1 {launch}env LD_PRELOAD=libdarshan.so ./PROGRAM"
_DEVICES: Final = "nsys profile -t cuda,nvtx,osrt,mpi ./PROGRAM, rocprofv3 --sys-trace -- ./PROGRAM, or torch.profiler"
#: What records devices, by the reader of the recording that lacks something.
_DEVICES_AGAIN: Final = {
    "nsys": "{launch}nsys profile -t cuda,nvtx,osrt,mpi -o run.%p ./PROGRAM",
    "rocprof": "{launch}rocprofv3 --sys-trace -d run -- ./PROGRAM",
    "otf2": "SCOREP_CUDA_ENABLE=yes SCOREP_HIP_ENABLE=yes SCOREP_ENABLE_TRACING=true {launch}./PROGRAM",
    "chrome_trace": "torch.profiler.profile(record_shapes=True) in the program, on every rank",
}


# fmt: off
_RUN: Final = (
    *parse_facts("processors", "", """
        run.wall_s     | s     | wall-clock time
        run.ranks      | count | number of processes
        run.threads    | count | largest number of threads observed in a process
        run.processors | count | processes and threads observed
        run.iterations | count | how often the phase with the most time occurred
    """),
    *parse_facts("cores", _CORES, """
        run.cores            | count | cores that the run may use
        run.oversubscription | ratio | processors, less their waits for turns / cores; at most 1 if seen free
        run.busy_cores       | share | CPU and run-queue seconds / (time in phases * cores), at most 1; 1 if not known
    """),
    *parse_facts("cores cpu_s", _TRACE,
        "run.contention | ratio | processors of ranks that compute / cores; unknown where others held half of these"),
    *parse_facts("cores.bound", _TRACE,
        "run.bound_threads | ratio | threads of a process / cores that it may use, of the process with the most"),
    *parse_facts("outside", _TRACE, """
        run.startup_s  | s | seconds before the first phase (MPI_Init among them), mean over the processors
        run.shutdown_s | s | seconds after the last phase (MPI_Finalize among them), mean over the processors
    """),
    *parse_facts("delay.queue_s", _TRACE, """
        run.queue_share      | share | run-queue delay of all threads, in calls and outside / (processors * run time)
        run.disturbance_share | share | gaps that other programs' delays may have made, at most / run time
    """),
    *parse_facts("delay.taken_s cores", _TRACE,
        "run.others_share | share | what the machine's cores did for other programs / (cores * run time)"),
    *parse_facts("wall_s", _TRACE, """
        run.device_overlap_s     | s     | the host's work or waits for its device, the fewer; 0 if not timed
        run.device_overlap_share | share | the same / run time
    """),
    *parse_facts("cpu_s", _TRACE,
        "run.used_share | share | CPU seconds / (cores * run time) where nothing but such a sum tells, else 1"),
    *parse_facts("parameters", _TRACE, """
        run.undivided_parts | ratio | least of independent parts (k-points) and ranks / groups that work on such parts
    """),
    *parse_facts("paradigms", _TRACE, """
        run.has_mpi    | yes/no | the program calls MPI
        run.has_openmp | yes/no | the program has parallel regions of OpenMP
    """),
    *parse_facts("wall_s outside threads", _TRACE, """
        run.idle_threads_share | share | seconds of threads outside parallel regions / (processors * run time)
    """),
)

_LOAD: Final = (
    *parse_facts("wall_s wait_s sync_s", _TRACE, """
        phase.imbalance       | ratio | max over processors of work / mean over processors
        phase.rank_imbalance  | ratio | the same over ranks, each with the mean of its threads
        phase.untold_imbalance | ratio | the same where no call was recorded; 1 where calls or phases were
        phase.first_rank_ratio | ratio | work of the first rank / lower quartile of the others; means over threads
        phase.dynamic_ratio   | ratio | sum over iterations of the max over processors / max over processors of the sum
        phase.slowest_rank_persistence | share | iterations where the rank (or thread) slowest overall is slowest
        phase.slowest_differs | yes/no | here the slowest of all parallel phases is over 2 % faster than the slowest
        phase.alone_share     | share | imbalance of ranks that regions make which one of them does (95 %) / all of it
        phase.work_s          | s     | work (wall - wait - sync) of the processor with the most of it
        sync.work_between_s   | s     | median over the iterations of the max over processors of work
    """),
    *parse_facts("cpu_s threads", _TRACE, """
        phase.shareable_s | s | what first threads compute alone and others could share, of the rank with the most
    """),
    *parse_facts("cpu_s cores", _TRACE, """
        phase.divisible_s | s | what the only thread of a program computes that the other, idle cores could share
    """),
    *parse_facts("wall_s wait_s sync_s threads", _TRACE, """
        phase.thread_imbalance | ratio | max / mean of work over the threads of the rank that loses most by it
    """),
    *parse_facts("phases", _TRACE, """
        phase.iterations | count  | how often the phase occurred
        phase.share      | share  | time between two synchronizations, or work of the slowest / run time without others
        phase.closed_by  | name   | the call that ends the phase
        phase.is_serial  | yes/no | one processor does at least 95 % of the work while the others wait
        phase.phases     | count  | parallel phases that take at least 1 % of the run
        sync.empty_phases | yes/no | the slowest processor works less than 1 % of the time of the phase
    """),
)

_WAITING: Final = (
    *parse_facts("wait_s wall_s", _TRACE, "wait.share | share | waiting / wall time of all processors"),
    *parse_facts("wait_s causes", _TRACE, """
        wait.late_sender_share   | share | waiting for a message not yet sent / all waiting
        wait.late_receiver_share | share | waiting of senders for the receive / all waiting
        wait.collective_share    | share | waiting in collectives with data / all waiting
        wait.late_root_share     | share | waiting for the rank that collects from all or sends to all / all waiting
        wait.barrier_share       | share | waiting in barriers and at the end of the run / all waiting
        wait.thread_share        | share | waiting of threads, in their barriers, for locks and tasks / all waiting
        wait.lock_share          | share | waiting of threads for locks and critical sections, no notices / all waiting
        wait.interpreter_share   | share | threads that wait for their turn in the interpreter of Python (GIL) / all
        wait.hand_over_share     | share | threads and processes that wait for locks, notices and pipes / all waiting
        wait.hand_overs          | count | waits for locks, notices and pipes
        wait.notices             | count | waits for notices of other threads and processes, as at a queue
        wait.turns_s             | s     | run less the most that one thread computes, where they take turns; else 0
        wait.work_per_hand_over_s | s    | computation / waits for locks, notices and pipes
        wait.answer_share        | share | waiting for what a loop in Python asks for one by one / all waiting
        wait.task_share          | share | no task to run, and making tasks, less recording that / all waiting
        wait.unmatched_share     | share | waiting in messages without a partner in the data / all waiting
    """),
)

_SPINNING: Final = parse_facts("wait_s wait.spin_s", _TRACE, """
    wait.spin_share | share | waiting in loops of the program that ask memory again and again / all waiting
""")

_TASKS: Final = parse_facts("tasks task_s", _TRACE, """
    omp.task_mean_s | s     | seconds of tasks, without what they wait and the tasks they run meanwhile / tasks
""")

_CONFINED: Final = parse_facts("cpu_s cores", _TRACE, """
    omp.confined_s | s | seconds of parallel regions of one thread on one core that all cores would save
""")

_COMMUNICATION: Final = (
    *parse_facts("transfer_s wall_s", _TRACE, "comm.share | share | transfer / wall time of all processors"),
    *parse_facts("transfer_s wait_s sync_s wall_s", _TRACE,
        "comm.whole_share | share | communication, and waits that its data explain / wall time; 0 of recorded phases"),
    *parse_facts("wall_s causes", _TRACE, """
        comm.relay_share | share | gathering at one rank and broadcasting, as often as each other / all wall time
    """),
    *parse_facts("messages", _TRACE, """
        comm.repeated_share    | share | collectives that bring the same data as the one before / transfer and waiting
        comm.answers           | count | messages that rank 0 answers / who sends them; 0 where others talk as well
        comm.work_per_answer_s | s     | computation of these ranks / messages that rank 0 answers
    """),
    *parse_facts("causes", _TRACE, """
        comm.messages_per_iteration    | count | messages sent / who sends / iterations with work
        comm.poll_share                | share | polls while nobody else works / all transfer
        comm.polls_per_message         | count | polls (MPI_Iprobe, MPI_Test) / messages sent
        comm.point_to_point_share      | share | transfer of messages / all transfer
        comm.collective_share          | share | transfer of collectives / all transfer
        comm.alltoall_share            | share | transfer of all-to-all exchanges / all transfer
        comm.reductions_per_iteration  | count | reductions / who takes part / iterations with work
        comm.collectives_per_iteration | count | collectives with data / who takes part / iterations with work
        comm.gathers_per_iteration     | count | gathers, messages to rank 0 / who takes part / iterations with work
        comm.gather_share              | share | transfer of gathers, and of messages of all to rank 0 / all transfer
        comm.one_sided_share           | share | one-sided communication / all transfer and waiting
        comm.one_sided_per_iteration   | count | puts, gets and the like / who calls them / iterations with work
        comm.setup_share               | share | transfer of making communicators and windows / all transfer
        comm.setups_per_iteration      | count | making communicators / who takes part / iterations with work
        comm.kept_share                | share | bytes gathered so that are not broadcast again / all of them
    """),
    *parse_facts("causes", _TRACE, """
        comm.mean_message_B      | B     | bytes sent / messages whose size is known; 0 without messages
        comm.small_message_share | share | messages of at most 4 KiB / messages whose size is known; 0 without messages
        comm.mean_collective_B   | B     | bytes of collectives / collectives whose size is known; 0 without collectives
        comm.mean_one_sided_B    | B     | bytes of puts, gets and the like / those of known size; 0 without any
        comm.mean_gather_B       | B     | bytes of these / those of known size; 0 without any
    """),
)

_SYNCHRONIZING: Final = (
    *parse_facts("sync_s wall_s", _TRACE, "sync.share | share | synchronizing / wall time of all processors"),
    *parse_facts("causes", _TRACE, """
        sync.fence_share              | share | fences and the like of windows / synchronizing and waiting
        sync.barriers_per_iteration   | count | explicit barriers / who takes part / iterations with work
        sync.thread_share             | share | starting, joining and barriers of threads / all synchronizing
        sync.fork_joins_per_iteration | count | parallel regions started / who starts them / iterations with work
        sync.threads_created          | count | threads of POSIX and processes created / who creates them
        sync.creation_share           | share | creating and joining these / synchronizing and waiting
        sync.work_per_thread_s        | s     | computation / threads of POSIX and processes created
    """),
)

_INPUT_OUTPUT: Final = (
    *parse_facts("io_s wall_s", _TRACE, """
        io.share        | share | input and output / wall time of all processors
        io.untold_share | share | the same where no call of it was counted, else 0
    """),
    *parse_facts("io_s causes", _TRACE, """
        io.operations               | count  | reads and writes / who does them
        io.operations_per_iteration | count  | reads and writes / who does them / iterations with work
        io.mean_operation_B         | B      | bytes / reads and writes whose size is known; 0 without any
        io.shared_share             | share  | reads and writes in files that several processors access / all
        io.processors_share         | share  | processors that do input or output / all
        io.metadata_share           | share  | seconds in open, close, stat and the like / all input and output
        io.metadata_calls           | count  | calls of open, close, stat and the like / who makes them
        io.one_processor            | yes/no | one of several processors spends at least 90 % of the input and output
        io.data_share               | share  | seconds in reads and writes / all input and output
        io.stdio_share              | share  | seconds in reads and writes of streams (fread, fprintf) / all
        io.small_seconds_share      | share  | seconds in reads and writes of at most 100 KiB, without text / all
        io.independent_share        | share  | seconds in files that MPI accesses by independent calls only / all
        io.collective_share         | share  | seconds in files that MPI accesses by collective calls / all
        io.private_share            | share  | seconds in files that only one of several processors accesses / all
        io.files_per_processor      | count  | files / processors that access files
        io.stream_s                 | s      | reads and writes of streams, without text and time without a core; mean
        io.slowest_excess_s         | s      | most seconds of a processor - mean over the processors
        io.imbalance                | ratio  | most seconds of a processor / mean over the processors
    """),
    *parse_facts("io_s causes", _DARSHAN, """
        io.fsync_share     | share | seconds in fsync and the like / all input and output
        io.forced_share    | share | seconds in fsync, and in writing where a tool adds both up / all input and output
        io.forced_B        | B     | bytes written / calls of fsync and the like; 0 without any
        io.unaligned_seconds_share | share | seconds in unaligned reads and writes of more than 100 KiB / all
    """),
    *parse_facts("io_s causes io_random_s", _DARSHAN, """
        io.random_share | share | seconds in reads and writes that begin before the end of the one before / all
        io.reread_share | share | seconds in reading what was read before, by any processor / all
        io.switch_share | share | seconds in reads that follow a write in the same file, and the reverse / all
    """),
    *parse_facts("io_s io_text_s", _TRACE, """
        io.text_share | share | CPU time of calls that turn numbers into text and back / input and output with a core
        io.text_s     | s     | CPU time of such calls, of the processor with the most
    """),
    *parse_facts("io_one_server_s", _DARSHAN,
        "io.one_server_share | share | seconds in large files that ranks share on one server of Lustre / all"),
    *parse_facts("io_bursts", _DARSHAN,
        "io.bursts | count | times that a processor reads or writes, with pauses between them: the most of any"),
)

_PROCESSOR: Final = (
    *parse_facts("misses.L1 compiled_ops.load", _COUNTS,
        "cache.l1_miss_ratio | share | misses of the first cache / loads and stores"),
    *parse_facts("misses.LL compiled_ops.load", _COUNTS,
        "cache.ll_miss_ratio | share | misses of the last cache / loads and stores"),
    *parse_facts("memory_bytes machine", _MEMORY,
        "memory.bandwidth_share | share | bytes from memory / (work of the slowest * the machine's memory bandwidth)"),
    *parse_facts("vectorized_ops compiled_ops.fp_add", _COUNTS,
        "processor.vectorized_share | share | vectorized / all compiled floating-point operations"),
    *parse_facts("topdown.all_s topdown.memory_s", _SLOTS, """
        processor.dram_share      | share | computation whose issue slots wait for memory / computation
        processor.far_cache_share | share | computation whose issue slots wait for caches beyond the first / computation
    """),
    *parse_facts("contended_loads compiled_ops.load", _SHARING,
        "processor.false_sharing_share | share | loads of lines that another core has changed / all loads"),
    *parse_facts("os_s wall_s", _TRACE, """
        os.share       | share | seconds taken by the operating system, but for paging / wall time of all processors
        os.untold_share | share | time without a core that no call explains / all; 0 where phases were recorded
        os.sleep_share | share | seconds in calls that put the caller to sleep / wall time of all processors
    """),
)

_DEVICE: Final = (*parse_facts("devices", _DEVICES, """
    device.devices            | count  | devices, each counted once for every process that uses it
    device.on_host            | yes/no | no device was used: operators of host threads stand for one
    device.busy_share         | share  | time in which a kernel computes / run, mean over the devices
    device.iterations         | count  | iterations that the program marks
    device.kernels            | count  | kernels, mean over the devices
    device.median_kernel_s    | s      | median length of a kernel
    device.short_kernel_share | share  | kernels below 10 us / all kernels
    device.elementwise_share  | share  | seconds in kernels named elementwise, reduce, norm, softmax, copy / in all
    device.matrix_share       | share  | seconds in kernels named as matrix products and convolutions / in all kernels
    device.plain_matrix_share | share  | the same of those whose names show no matrix units (tensor cores, MFMA)
    device.launch_calls       | count  | host calls that launch kernels, mean over the processes
    device.launch_s           | s      | seconds of the host in them, mean over the processes
    device.sync_calls         | count  | host calls that wait for the device, mean over the processes
    device.sync_s             | s      | seconds of the host in them, mean over the processes
    device.sync_wait_share    | share  | the same / run
    device.allocation_calls   | count  | calls that allocate or free memory of the device, mean over the processes
    device.allocation_s       | s      | seconds of the host in them, mean over the processes
    device.graph_launches     | count  | launches of recorded graphs
    device.copies             | count  | copies, mean over the devices
    device.pageable_share     | share  | seconds of copies from or to pageable memory / of all copies
    device.host_copy_share    | share  | seconds of copies between host and device / of all copies
    device.small_copy_share   | share  | copies below 64 KiB / copies whose size is known
    device.communications     | count  | kernels of communication libraries, mean over the devices
    device.communications_per_iteration | count | the same / iterations
    device.exposed_share      | share  | communication while nothing computes / time in which any is under way
    device.median_communication_s | s  | median length of a communication, with its waiting
    device.imbalance          | ratio  | max / mean over the devices of the time in which a kernel computes
    device.one_busy_share     | share  | time in which one of several devices is busy / time in which any is
    device.fusible_share      | share  | seconds in kernels by element directly behind another such / in all kernels
    device.small_grid_share   | share  | seconds in kernels with fewer blocks than multiprocessors / in all
    device.low_occupancy_share | share | seconds in full kernels with less than 25 % of the warps that fit / in all
    device.spill_share        | share  | seconds in kernels whose threads need local memory / in all
    device.longest_kernel_share | share | seconds of the one launch that takes longest / in all kernels
    device.compute_streams    | count  | streams that hold 5 % of a device's kernels' seconds, the most of any device
    device.concurrent_share   | share  | time in which a device runs several kernels / in which it runs any
    device.graph_kernel_share | share  | kernels that the launch of a graph started / all whose launch is known
    device.loading_share      | share  | time in which the host loads or compiles code, or captures a graph / run
    device.recompilations     | count  | variants of compiled frames (torch.compile) beside the first of each
    device.launch_interval_s  | s      | median time of the host between a call to the device and the next launch
    device.prepare_share      | share  | the same, summed / with the launches themselves: Python and framework
    device.optimizer_launches | count  | launches in a step of the optimizer
    device.passes_per_update  | count  | forward passes for each step of the optimizer
    device.value_reads        | count  | values read from the device, mean over the processes
    device.value_reads_per_iteration | count | the same / iterations
    device.host_allocations   | count  | calls that allocate, pin or free memory of the host, mean over the processes
    device.round_trips_per_kernel | ratio | copies to the device or to the host, whichever are fewer / kernels
    device.upload_ratio       | ratio  | seconds of copies of 1 MiB and more behind the first kernel / of computation
    device.lead_share         | share  | the host's own time before a device's first activity / run, mean over devices
    device.lead_s             | s      | the same in seconds: without calls of the runtime, and 0.2 s for the start
    device.setup_share        | share  | the first long call before a device's first activity / run, mean over devices
    device.setup_s            | s      | the same in seconds: it initializes the device
    device.element_share      | share  | time of a host that reads elements of tensors one by one / run, mean over hosts
    device.migration_share    | share  | time of migrating managed memory / run, mean over the devices
    device.page_faults        | count  | page faults of managed memory
    device.copy_rate_spread   | ratio  | highest / lowest rate of large copies of pinned memory, over the devices
    device.point_to_point_share | share | seconds of communications that send and receive / of all
    device.communication_s_per_GiB | s | median time that a communication from 1 MiB on takes for 1 GiB, waiting aside
    device.float_communication_share | share | bytes communicated as 32-bit floats / all bytes communicated
    device.kernel_count_spread | ratio | most kernels of a device / mean over the devices
    device.same_kernel_spread | ratio  | seconds in kernels that all devices run equally often, largest / mean
    device.processes_per_device | count | most processes that use one device
"""), *parse_facts("devices", COLLECT_PEAK, """
    device.bandwidth_bound_share | share | seconds in kernels that counters show to be bound by memory / in all
    device.latency_bound_share | share | seconds in kernels that use neither computation nor memory to 60 % / in all
    device.excess_sector_share | share | bytes that loads and stores move beside those that threads asked for / all
    device.divergent_share    | share  | seconds in kernels with fewer than 24 active threads for each warp / in all
"""))
# fmt: on

#: All facts that rules may name, by topic.
VOCABULARY: Final[tuple[Fact, ...]] = (
    *_RUN, *_LOAD, *_WAITING, *_SPINNING, *_TASKS, *_CONFINED, *_COMMUNICATION, *_SYNCHRONIZING, *_INPUT_OUTPUT,
    *_PROCESSOR, *CODE, *_DEVICE,
)  # fmt: skip
#: What each command measures, by the first that it does.
_MEASURES: Final = {missing.command: name for name, missing in reversed(MISSING.items())}


def facts_by_name(extra: Iterable[Fact] = ()) -> dict[str, Fact]:
    """Return the vocabulary by name, with the facts of plugins; a built-in fact keeps its meaning."""
    return {fact.name: fact for fact in (*extra, *VOCABULARY)}


def command_for(profile: Profile, fact: Fact) -> str:
    """Return the command that would record what ``fact`` needs, for this program's number of ranks."""
    standard = _MEASURES.get(fact.command)
    if standard:
        return recording_command(profile, standard)
    command = _DEVICES_AGAIN.get(profile.reader, _DEVICES) if fact.command == _DEVICES else fact.command
    return command.replace("{launch}", launch_prefix(profile))
