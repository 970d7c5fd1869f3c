"""What a region does, from the names and words of Score-P, EZTrace and TAU."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.trace.events import Role
from advisor.trace.regions import classify_region, parse_source_place


@pytest.mark.parametrize(
    ("name", "canonical", "role"),
    [
        ("mpi_isend_", "MPI_Isend", Role.POST),
        ("mpi_waitall__", "MPI_Waitall", Role.WAIT),
        ("MPI_ALLREDUCE", "MPI_Allreduce", Role.ALL_TO_ALL),
        ("PMPI_Barrier", "MPI_Barrier", Role.BARRIER),
        ("MPI_Send()", "MPI_Send", Role.SEND),
        ("mpi_recv_f08_", "MPI_Recv", Role.RECV),
        ("mpi_file_write_all_", "MPI_File_write_all", Role.IO),
        ("MPI_Sendrecv_replace", "MPI_Sendrecv_replace", Role.SENDRECV),
        ("MPI_Bcast", "MPI_Bcast", Role.ONE_TO_ALL),
        ("MPI_Reduce", "MPI_Reduce", Role.ALL_TO_ONE),
        ("MPI_Reduce_scatter", "MPI_Reduce_scatter", Role.ALL_TO_ALL),
        ("MPI_Reduce_local", "MPI_Reduce_local", Role.LOCAL),
        ("MPI_Exscan", "MPI_Exscan", Role.SCAN),
        ("MPI_Ibarrier", "MPI_Ibarrier", Role.POST),
        ("MPI_Iprobe", "MPI_Iprobe", Role.WAIT),
        ("MPI_Startall", "MPI_Startall", Role.POST),
        ("MPI_Send_init", "MPI_Send_init", Role.LOCAL),
        ("MPI_Put", "MPI_Put", Role.RMA),
        ("MPI_Win_fence", "MPI_Win_fence", Role.RMA),
        ("MPI_Win_create", "MPI_Win_create", Role.COMM_OTHER),
        ("MPI_Win_get_attr", "MPI_Win_get_attr", Role.LOCAL),
        ("MPI_Comm_split", "MPI_Comm_split", Role.COMM_OTHER),
        ("MPI_Comm_spawn", "MPI_Comm_spawn", Role.OS),
        ("MPI_Comm_rank", "MPI_Comm_rank", Role.LOCAL),
        ("MPI_Cart_create", "MPI_Cart_create", Role.COMM_OTHER),
        ("MPI_Cart_coords", "MPI_Cart_coords", Role.LOCAL),
        ("MPI_Neighbor_alltoall", "MPI_Neighbor_alltoall", Role.SENDRECV),
        ("MPI_Init_thread", "MPI_Init_thread", Role.INIT),
        ("MPI_Initialized", "MPI_Initialized", Role.LOCAL),
        ("MPI_Finalize", "MPI_Finalize", Role.FINALIZE),
        ("MPI_Finalized", "MPI_Finalized", Role.LOCAL),
        ("mpi_wtime_", "MPI_Wtime", Role.LOCAL),
        ("MPI_T_pvar_read", "MPI_T_pvar_read", Role.LOCAL),
        ("MPI_File_open", "MPI_File_open", Role.IO),
    ],
)
def test_calls_of_mpi_whatever_they_are_written_like(name: str, canonical: str, role: Role) -> None:
    assert classify_region(name) == (canonical, role)


@pytest.mark.parametrize(
    ("name", "canonical", "role"),
    [
        ("write", "write", Role.IO),
        ("fsync", "fsync", Role.IO),
        ("fopen", "fopen", Role.IO),
        ("pthread_create", "pthread_create", Role.THREAD),
        ("pthread_mutex_lock", "pthread_mutex_lock", Role.OMP_LOCK),
        ("pthread_barrier_wait", "pthread_barrier_wait", Role.OMP_BARRIER),
        ("Working", "Working", Role.ROOT),
        ("OpenMP parallel region", "OpenMP parallel region", Role.OMP_PARALLEL),
        ("OpenMP Acquire mutex", "OpenMP Acquire mutex", Role.OMP_LOCK),
        ("EZTrace finalize", "EZTrace finalize", Role.FINALIZE),
        ("phase1", "phase1", Role.USER),
        ("mpi_exchange_halo_", "mpi_exchange_halo_", Role.USER),
        ("exchange_3_", "exchange_3_", Role.USER),
        (".TAU application", ".TAU application", Role.USER),
        ("void solver::write(int)", "void solver::write(int)", Role.USER),
        ("", "", Role.USER),
    ],
)
def test_calls_of_eztrace_which_calls_everything_a_user_function(name: str, canonical: str, role: Role) -> None:
    assert classify_region(name, "FUNCTION", "USER") == (canonical, role)


@pytest.mark.parametrize(
    ("name", "word", "paradigm", "role"),
    [
        ("!$omp parallel @solve.c:186", "PARALLEL", "OPENMP", Role.OMP_PARALLEL),
        ("!$omp implicit barrier @solve.c:191", "IMPLICIT_BARRIER", "OPENMP", Role.OMP_BARRIER),
        ("!$omp barrier @solve.c:7", "BARRIER", "OPENMP", Role.OMP_BARRIER),
        ("!$omp for @solve.c:8", "LOOP", "OPENMP", Role.OMP_WORK),
        ("!$omp single sblock @solve.c:8", "SINGLE_SBLOCK", "OPENMP", Role.OMP_WORK),
        ("!$omp critical @solve.c:9", "CRITICAL", "OPENMP", Role.OMP_LOCK),
        ("!$omp critical sblock @solve.c:9", "CRITICAL_SBLOCK", "OPENMP", Role.OMP_WORK),
        ("!$omp atomic @solve.c:9", "ATOMIC", "OPENMP", Role.OMP_LOCK),
        ("!$omp taskwait @solve.c:9", "TASK_WAIT", "OPENMP", Role.OMP_LOCK),
        ("!$omp task @solve.c:9", "TASK", "OPENMP", Role.OMP_WORK),
        ("omp_set_lock", "WRAPPER", "OPENMP", Role.OMP_LOCK),
        ("omp_get_wtime", "WRAPPER", "OPENMP", Role.LOCAL),
        ("!$omp implicit barrier @solve.c:191", "UNKNOWN", "UNKNOWN", Role.OMP_BARRIER),
        ("!$omp parallel @solve.c:186", "FUNCTION", "USER", Role.OMP_PARALLEL),
        ("!$omp for @solve.c:8", "FUNCTION", "USER", Role.OMP_WORK),
        ("omp parallel", "FUNCTION", "USER", Role.OMP_PARALLEL),
        ("omp implicit barrier", "UNKNOWN", "UNKNOWN", Role.OMP_BARRIER),
        ("MPI_Iscan", "COLL_OTHER", "MPI", Role.POST),
        ("MPI_Hypothetical", "COLL_ALL2ALL", "MPI", Role.ALL_TO_ALL),
        ("MPI_Hypothetical", "FUNCTION", "MPI", Role.COMM_OTHER),
        ("MPI_File_sync", "FILE_IO", "MPI", Role.IO),
        ("H5Dwrite", "FILE_IO", "UNKNOWN", Role.IO),
        ("TRACE BUFFER FLUSH", "ARTIFICIAL", "MEASUREMENT_SYSTEM", Role.TOOL),
        ("MEASUREMENT OFF", "ARTIFICIAL", "USER", Role.TOOL),
        ("lu.S.2", "ARTIFICIAL", "MEASUREMENT_SYSTEM", Role.TOOL),
        ("pthread_create", "THREAD_CREATE", "PTHREAD", Role.THREAD),
        ("main", "FUNCTION", "COMPILER", Role.USER),
        ("open", "FUNCTION", "COMPILER", Role.USER),
        ("mpi_comm_setup_", "FUNCTION", "COMPILER", Role.USER),
    ],
)
def test_what_the_measurement_system_says_comes_first(name: str, word: str, paradigm: str, role: Role) -> None:
    assert classify_region(name, word, paradigm)[1] == role


def test_place_is_read_from_the_names_of_opari() -> None:
    assert parse_source_place("!$omp parallel @solve.c:186") == ("solve.c", 186)
    assert parse_source_place("!$omp parallel (ompt) @src/a b.f90:9)") == ("src/a b.f90", 9)
    assert parse_source_place("user@host") is None
    assert parse_source_place("main") is None
    assert parse_source_place("x @f.c:99999999999999999999") is None


@given(st.text(max_size=80), st.text(max_size=12), st.text(max_size=12))
def test_any_text_has_a_role_and_classifying_twice_changes_nothing(name: str, word: str, paradigm: str) -> None:
    canonical, role = classify_region(name, word, paradigm)
    assert isinstance(role, Role)
    assert classify_region(canonical, word, paradigm) == (canonical, role)
