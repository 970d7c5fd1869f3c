"""The role of a region, from its name and its definition in the measurement system.

Tools disagree: Score-P gives each region a role and a paradigm, EZTrace calls everything a user function,
Fortran programs show ``mpi_isend_``, TAU writes ``MPI_Isend()``. Here they become one name and one ``Role``.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from advisor.model.mpi_calls import CONSTRUCTORS
from advisor.trace.events import Role

_MPI = re.compile(r"p?mpi_([a-z0-9_]+?)(_f08)?_{0,2}(\(\))?", re.IGNORECASE)
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*?)_{0,2}(\(\))?")
_PLACE = re.compile(r"@([^@]+):(\d+)\)?\s*$")


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _role_table(**names: str) -> dict[str, Role]:
    return {name: Role[role] for role, text in names.items() for name in text.split()}


#: MPI calls by lower-case name without the prefix; families are in ``_MPI_FAMILIES``.
_MPI_CALLS = MappingProxyType(
    _role_table(
        INIT="init init_thread session_init",
        FINALIZE="finalize session_finalize abort",
        BARRIER="barrier",
        ALL_TO_ALL="allreduce allgather allgatherv alltoall alltoallv alltoallw reduce_scatter reduce_scatter_block",
        ONE_TO_ALL="bcast scatter scatterv",
        ALL_TO_ONE="gather gatherv reduce",
        SCAN="scan exscan",
        SEND="send bsend ssend rsend",
        RECV="recv mrecv",
        SENDRECV="sendrecv sendrecv_replace neighbor_allgather neighbor_allgatherv neighbor_alltoall "
        "neighbor_alltoallv neighbor_alltoallw",  # these are several messages, to and from neighbours
        WAIT="wait waitall waitany waitsome test testall testany testsome probe iprobe mprobe improbe parrived",
        POST="isend ibsend issend irsend irecv imrecv isendrecv isendrecv_replace start startall pready pready_range "
        "pready_list ibarrier ibcast iscatter iscatterv igather igatherv ireduce iallreduce iallgather iallgatherv "
        "ialltoall ialltoallv ialltoallw ireduce_scatter ireduce_scatter_block iscan iexscan comm_idup "
        "ineighbor_allgather ineighbor_allgatherv ineighbor_alltoall ineighbor_alltoallv ineighbor_alltoallw "
        "comm_idup_with_info",
        RMA="put get accumulate get_accumulate fetch_and_op compare_and_swap rput rget raccumulate rget_accumulate "
        "win_fence win_start win_complete win_post win_wait win_test win_lock win_lock_all win_unlock win_unlock_all "
        "win_flush win_flush_all win_flush_local win_flush_local_all win_sync",
        COMM_OTHER=" ".join(name.removeprefix("MPI_").lower() for name in CONSTRUCTORS)
        + " comm_create_group comm_create_from_group comm_free comm_disconnect comm_accept comm_connect comm_join "
        "comm_shrink comm_agree intercomm_create intercomm_create_from_groups win_free",
        OS="comm_spawn comm_spawn_multiple",  # the system starts processes; nothing is sent meanwhile
        LOCAL="wtime wtick initialized finalized abi pcontrol cancel buffer_attach buffer_detach buffer_flush "
        "dims_create get_count get_elements get_elements_x get_processor_name get_version get_library_version "
        "get_address address aint_add aint_diff request_free request_get_status test_cancelled status_set_cancelled "
        "status_set_elements topo_test query_thread is_thread_main reduce_local pack unpack pack_size alloc_mem "
        "free_mem bsend_init ssend_init rsend_init send_init recv_init psend_init precv_init barrier_init bcast_init "
        "allreduce_init reduce_init gather_init scatter_init allgather_init alltoall_init error_class error_string "
        "open_port close_port publish_name unpublish_name lookup_name register_datarep cartdim_get graphdims_get "
        "sizeof grequest_start grequest_complete",
    )
)

#: Calls that wait for a message, or look for one, without receiving it.
PROBES = ("MPI_Probe", "MPI_Mprobe", "MPI_Iprobe", "MPI_Improbe")
#: Calls that look whether something has come or is complete, and return at once.
POLLS = (
    "MPI_Iprobe", "MPI_Improbe", "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Request_get_status",
    "MPI_Parrived", "MPI_Win_test",
)  # fmt: skip

#: Prefixes of MPI calls that the table does not name one by one; the first that fits decides.
_MPI_FAMILIES = (
    ("file_", Role.IO),
    *((prefix, Role.LOCAL) for prefix in ("comm_", "group_", "type_", "info_", "op_", "win_", "errhandler_", "attr_")),
    *((prefix, Role.LOCAL) for prefix in ("cart_", "graph_", "dist_graph_", "keyval_", "add_error_", "t_", "session_")),
)

#: Library calls that do I/O, for tools that record only a name.
_IO_CALLS = _split_words(
    "open open64 openat creat creat64 close read write pread pread64 pwrite pwrite64 readv writev preadv pwritev "
    "fsync fdatasync sync sync_file_range lseek lseek64 truncate ftruncate fopen fopen64 fdopen freopen fclose "
    "fread fwrite fread_unlocked fwrite_unlocked fflush fseek fseeko ftell ftello rewind fgetc getc fgets fputc putc "
    "fputs puts fprintf vfprintf printf getline fscanf aio_read aio_write aio_suspend unlink rename mkdir "
    "opendir readdir closedir stat fstat lstat access sendfile mmap_read pipe dup dup2 dup3"
)

#: What a tool that only sums up input and output calls its kinds.
_SUMMED_IO = re.compile(
    "(POSIX|STDIO|MPI-IO) ((collective |independent )?(read|write( and sync)?)|sync(, timed as writing)?|metadata)"
)

_OPENMP_ROLES = MappingProxyType(
    {
        "PARALLEL": Role.OMP_PARALLEL,
        "BARRIER": Role.OMP_BARRIER,
        "IMPLICIT_BARRIER": Role.OMP_BARRIER,
        "CRITICAL": Role.OMP_LOCK,
        "ATOMIC": Role.OMP_LOCK,
        "ORDERED": Role.OMP_LOCK,
        "TASK_WAIT": Role.OMP_LOCK,
    }
)

#: Words of OTF2 that say nothing about what a region does.
_SILENT_ROLES = _split_words("UNKNOWN FUNCTION WRAPPER CODE")

#: What stands before the names of OpenMP regions (opari2: ``!$omp``; our recorder: ``omp``; EZTrace: ``OpenMP``), …
_OPENMP_PREFIX = re.compile(r"(?:!\$omp|omp|OpenMP) ")
#: … and how they go on when the tool gives no role.
_OPENMP_NAMES = (
    ("implicit barrier", Role.OMP_BARRIER),
    ("barrier", Role.OMP_BARRIER),
    ("parallel", Role.OMP_PARALLEL),
    ("critical", Role.OMP_LOCK),
    ("atomic", Role.OMP_LOCK),
    ("ordered", Role.OMP_LOCK),
    ("taskwait", Role.OMP_LOCK),
    ("task creation", Role.OMP_LOCK),
    ("acquire mutex", Role.OMP_LOCK),
)
_LOCK_CALLS = _split_words("omp_set_lock omp_set_nest_lock omp_test_lock omp_test_nest_lock")
_THREAD_CALLS = _split_words(
    "pthread_create pthread_join pthread_exit pthread_detach thrd_create thrd_join fork wait wait3 wait4 waitpid"
)
#: What recorders call the time in which a thread stood still, though it made no call.
NO_CORE_NAME, BLOCKED_NAME = "waiting for a core", "blocked in the system"
#: What CPU clocks leave of wall clocks where nobody recorded what the time was for.
OFF_CORE_NAME = "not on a core"
_SLEEP_CALLS = _split_words("sleep usleep nanosleep clock_nanosleep")
#: Calls in which any process waits, with threads or without.
_PROCESS_WAITS = _split_words(
    "pipe_read pipe_write select pselect poll ppoll epoll_wait epoll_pwait connect accept accept4"
)
#: Calls that wait for what another thread or process does, and not for a lock of the program.
_NOTICE_CALLS = _PROCESS_WAITS | _split_words(
    "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait sem_wait sem_timedwait sem_clockwait cnd_wait "
    "cnd_timedwait futex_wait python_gil"
)
_WAIT_CALLS = _NOTICE_CALLS | _split_words(
    "flock lockf pthread_mutex_lock pthread_mutex_trylock pthread_rwlock_rdlock pthread_rwlock_wrlock "
    "pthread_spin_lock mtx_lock"
)

_COLLECTIVE_ROLES = MappingProxyType(
    {
        "BARRIER": Role.BARRIER,
        "COLL_ONE2ALL": Role.ONE_TO_ALL,
        "COLL_ALL2ONE": Role.ALL_TO_ONE,
        "COLL_ALL2ALL": Role.ALL_TO_ALL,
        "COLL_OTHER": Role.SCAN,
        "RMA": Role.RMA,
        "ATOMIC": Role.RMA,
        "FILE_IO": Role.IO,
        "FILE_IO_METADATA": Role.IO,
    }
)

_TOOL_NAMES = frozenset({"TRACE BUFFER FLUSH", "MEASUREMENT OFF", "THREADS", "TASKS"})


def classify_region(name: str, role: str = "FUNCTION", paradigm: str = "USER") -> tuple[str, Role]:
    """Return the canonical name of a region and its ``Role``.

    ``role`` and ``paradigm`` are OTF2's words for the region (``COLL_ALL2ALL``, ``MPI``); a tool that knows
    neither leaves the defaults, and the name decides.
    """
    if name in (NO_CORE_NAME, BLOCKED_NAME):
        return name, Role.OS
    if name in _TOOL_NAMES or paradigm == "MEASUREMENT_SYSTEM":
        return name, Role.TOOL
    if name == "Working":  # EZTrace: from the start of a thread to its end
        return name, Role.ROOT
    if name == "EZTrace finalize":
        return name, Role.FINALIZE
    if paradigm in ("OPENMP", "OPENMP_TARGET") or _OPENMP_PREFIX.match(name):
        return name, _classify_openmp(name, role)
    if _SUMMED_IO.fullmatch(name):
        return name, Role.IO
    return _classify_mpi(name, role, paradigm) or _classify_call(name, role, paradigm) or (name, Role.USER)


def is_openmp(name: str) -> bool:
    """Return whether a region is one of OpenMP, or a call of its library."""
    return _OPENMP_PREFIX.match(name) is not None or name.startswith("omp_")


def is_sleep(name: str) -> bool:
    """Return whether a region is a call in which a program asks to be put to sleep."""
    return name in _SLEEP_CALLS


def is_notice_wait(name: str) -> bool:
    """Return whether a region is a call that waits for another thread to give a notice: for work, or its result."""
    return name in _NOTICE_CALLS


def is_interpreter_wait(name: str) -> bool:
    """Return whether a region is a wait of a thread of Python for its turn in the interpreter (the GIL)."""
    return name == "python_gil"


def is_hand_over(name: str) -> bool:
    """Return whether a region is a call in which threads or processes that share work wait for locks or notices."""
    return name in _WAIT_CALLS and not is_interpreter_wait(name)


def is_process_wait(name: str) -> bool:
    """Return whether a region is a wait of any process, for a file, a pipe or a socket: it shows no threads."""
    return name in _PROCESS_WAITS


def is_task_wait(name: str) -> bool:
    """Return whether a region is a call in which a thread has no task to run, or makes new ones."""
    return _OPENMP_PREFIX.sub("", name, count=1).lower().startswith(("taskwait", "task creation"))


def parse_source_place(name: str) -> tuple[str, int] | None:
    """Return file and line that a region's name ends in (``!$omp parallel @solve.c:186``), None without."""
    found = _PLACE.search(name)
    return (found[1], int(found[2])) if found and len(found[2]) < 10 else None


def _classify_mpi(name: str, role: str, paradigm: str) -> tuple[str, Role] | None:
    found = _MPI.fullmatch(name) if paradigm != "COMPILER" else None
    if not found:
        return None
    call = found[1].lower()
    known = _MPI_CALLS.get(call)
    if known is None:
        known = next((family for prefix, family in _MPI_FAMILIES if call.startswith(prefix)), None)
    if known is None and paradigm == "MPI":
        known = _COLLECTIVE_ROLES.get(role, Role.COMM_OTHER)
    if known is None:
        return None
    return f"MPI_{'T_' + call[2:] if call.startswith('t_') else call.capitalize()}", known


def _classify_openmp(name: str, role: str) -> Role:
    if role in _OPENMP_ROLES:
        return _OPENMP_ROLES[role]
    if name.startswith("omp_"):
        return Role.OMP_LOCK if name.rstrip("_") in _LOCK_CALLS else Role.LOCAL
    if role not in _SILENT_ROLES:
        return Role.OMP_WORK
    bare = _OPENMP_PREFIX.sub("", name, count=1).lower()
    return next((known for begin, known in _OPENMP_NAMES if bare.startswith(begin)), Role.OMP_WORK)


def _classify_call(name: str, role: str, paradigm: str) -> tuple[str, Role] | None:
    if role in ("FILE_IO", "FILE_IO_METADATA"):
        return name, Role.IO
    if role in ("THREAD_CREATE", "THREAD_WAIT"):
        return name, Role.THREAD
    if role == "ARTIFICIAL":
        return name, Role.TOOL
    found = _CALL.fullmatch(name)
    call = found[1] if found and paradigm != "COMPILER" else ""
    if call in _IO_CALLS:
        return call, Role.IO
    if call in _THREAD_CALLS:
        return call, Role.THREAD
    if call in _SLEEP_CALLS:
        return call, Role.OS
    if call in _WAIT_CALLS:
        return call, Role.OMP_LOCK
    return (call, Role.OMP_BARRIER) if call == "pthread_barrier_wait" else None
