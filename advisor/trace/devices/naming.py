"""What host calls and device activities are, by their names in CUDA, HIP, SYCL, OpenMP target and PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.events import Activity, CallRole, DeviceTrace, Direction
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, IntArray

#: Copies of managed memory, by the names that tools give them.
MANAGED: Final = re.compile(r"managed|unified|\buvm\b", re.I)
_RUNTIME: Final = re.compile(r"(cuda|hip|hsa_|nvrtc|hiprtc|mtia|xpu|__hip|__cuda|ze[A-Z]|cu[A-Z]|omp_target|acc_)")
_PATTERNS: Final = (
    (CallRole.SYNCHRONIZE, r"Synchronize(_v\d+|_ptsz)?$|^hsa_signal_wait|^acc_wait|taskwait|Sync$|_synchronize$"),
    (CallRole.LAUNCH, r"Launch|^hipExtModuleLaunch|^omp_target_submit|^acc_enqueue|_launch$"),
    (CallRole.ALLOCATE, r"Malloc|Free|MemAlloc|HostAlloc|HostRegister|HostUnregister|MemPool|MemCreate|target_alloc"),
    (CallRole.COPY, r"Memcpy|Memset|MemPrefetch|target_memcpy|omp_target_data_op|async_copy"),
    (CallRole.START, r"ModuleLoad|LibraryLoad|^cuInit|^hipInit|^hsa_init|^nvrtc|^hiprtc|CtxCreate|PrimaryCtxRetain"),
)
_GRAPH_START: Final = re.compile(r"GraphInstantiate|GraphUpload|StreamEndCapture|GraphAddNode|GraphAddKernelNode")
_COMPILES: Final = re.compile(
    r"backend_compile|XlaCompile|CompiledFxGraph\.compile|compile_fx|inductor_compile|dynamo_timed|_compile\.compile_inner"
    r"|CompileToBackendResult|PjRtCompile|triton.*compile"
)  # fmt: skip
_CALLS: Final = tuple((role, re.compile(pattern)) for role, pattern in _PATTERNS)
_HOST_COMMUNICATION: Final = re.compile(r"^(gloo:|MPI_|PMPI_|ucc|ucp_)")
_MODELS: Final = (
    ("cuda", re.compile(r"cuda[A-Z]|cu[A-Z][a-z]+[A-Z]")), ("hip", re.compile(r"hip[A-Z]")),
    ("mpi", re.compile(r"P?MPI_")), ("pytorch", re.compile(r"aten::|torch|.*\bat::native::")),
    ("openmp-target", re.compile(r"omp_target")), ("jax", re.compile(r"jit_|pjit")),
)  # fmt: skip
_COPY: Final = re.compile(
    r"^\[?((cuda|hip) |__amd_rocclr_)?(mem ?cpy|mem ?set|copy(device|host)to|copybuffer|fillbuffer|memory_copy|dma_)",
    re.I,
)
_DIRECTIONS: Final = (
    (Direction.TO_DEVICE, re.compile(r"HtoD|H2D|HOST_?TO_?DEVICE|Host -> Device", re.I)),
    (Direction.TO_HOST, re.compile(r"DtoH|D2H|DEVICE_?TO_?HOST|Device -> (Host|Pinned|Pageable)", re.I)),
    (Direction.BETWEEN_DEVICES, re.compile(r"PtoP|P2P", re.I)),
    (Direction.ON_DEVICE, re.compile(r"DtoD|D2D|DEVICE_?TO_?DEVICE|Device -> Device", re.I)),
    (Direction.FILL, re.compile(r"memset|fill", re.I)),
)
#: Kernels of communication libraries, and those that frameworks wrote for the collectives of a node.
_COMMUNICATES: Final = re.compile(
    r"nccl|rccl|oneccl|msccl|nvshmem|all_?reduce|all_?gather_(into|kernel|base)|reduce_?scatter_(kernel|base|tensor)"
    r"|^(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)\b|all_?to_?all|cross_device_reduce|quickreduce|_two_?shot_|_one_?shot_(all|push|pull)"
    r"|(intra|inter)node(_ll)?::(cached_)?(notify|dispatch|combine)|a2a_?(dispatch|combine)|userbuffers|multimem_",
    re.I,
)
_INPUT_OUTPUT: Final = frozenset(
    ("read", "write", "pread", "pwrite", "pread64", "pwrite64", "fread", "fwrite", "readv", "writev", "fsync", "fopen")
)
#: Iterations as PyTorch's profiler names them.
STEP: Final = re.compile(r"^ProfilerStep#(\d+)$")


@cache
def is_runtime_call(name: str) -> bool:
    """Return whether a host call belongs to the runtime of a device."""
    return _RUNTIME.match(name) is not None


@cache
def classify_call(name: str) -> CallRole:
    """Return what a host call does."""
    if name.startswith("enumerate(DataLoader)"):
        return CallRole.LOAD_DATA
    if _COMPILES.search(name):
        return CallRole.START
    if _HOST_COMMUNICATION.match(name):
        role = classify_region(name)[1] if "MPI_" in name else Role.ALL_TO_ALL
        return {Role.INIT: CallRole.START, Role.FINALIZE: CallRole.START, Role.LOCAL: CallRole.WORK}.get(
            role, CallRole.COMMUNICATE
        )
    if name in _INPUT_OUTPUT:
        return CallRole.INPUT_OUTPUT
    if not is_runtime_call(name):
        return CallRole.WORK
    if _GRAPH_START.search(name):
        return CallRole.START
    return next((role for role, pattern in _CALLS if pattern.search(name)), CallRole.RUNTIME)


@cache
def classify_activity(name: str) -> Activity:
    """Return what an activity of a device is: kernels of communication libraries communicate."""
    if _COPY.search(name):
        return Activity.COPY
    return Activity.COMMUNICATION if _COMMUNICATES.search(name) else Activity.COMPUTE


def find_paradigms(names: Iterable[str]) -> tuple[str, ...]:
    """Return the programming models that names of calls show; ``device`` where there are none."""
    found = dict.fromkeys(model for name in names for model, pattern in _MODELS if pattern.match(name))
    return tuple(found) or ("device",)


def match_names(trace: DeviceTrace, pattern: str | re.Pattern[str]) -> BoolArray:
    """Return which names of a trace hold what a regular expression describes."""
    search = re.compile(pattern).search
    return np.array([search(name) is not None for name in trace.names], dtype=bool)


def find_named_calls(trace: DeviceTrace, pattern: str | re.Pattern[str]) -> IntArray:
    """Return the host calls whose names hold what a regular expression describes."""
    return np.flatnonzero(match_names(trace, pattern)[trace.calls.name])


@cache
def find_direction(name: str) -> Direction:
    """Return between which memories a copy of that name moves data."""
    return next((direction for direction, pattern in _DIRECTIONS if pattern.search(name)), Direction.UNKNOWN)


@cache
def is_pageable(name: str) -> bool:
    """Return whether a copy of that name is from or to pageable memory of the host."""
    return "pageable" in name.lower()
