"""The oracle machine: by hand, and the fast schedulers against the slow one on random streams."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_reference import Access, ReferenceSchedule

from advisor.support.native_tools import compile_library, find_compiler
from advisor_similarity.qemu_tracing import make_options
from advisor_similarity.steps import (
    COARSE_OF,
    FINE_INDEX,
    LOAD,
    LOADED,
    OPERATE,
    SECOND_BYTE,
    STORE,
    Step,
    Template,
    encode_template,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ADD, LOADING, STORING = FINE_INDEX["int add"], FINE_INDEX["load"], FINE_INDEX["store"]
Stream = list[tuple[tuple[Step, ...], tuple[Access, ...]]]
ACCESS = struct.Struct("<QHHI")


def add(register: int) -> Step:
    return Step(OPERATE, ADD, (register,), (register,))


def load(to: int, address: int, size: int = 8) -> tuple[tuple[Step, ...], tuple[Access, ...]]:
    return (Step(LOAD, LOADING, (), (to,)),), (Access(address, size, False),)


def store(of: int, address: int, size: int = 8) -> tuple[tuple[Step, ...], tuple[Access, ...]]:
    return (Step(STORE, STORING, (of,), ()),), (Access(address, size, True),)


def slow(stream: Stream, slots: int | None = None) -> ReferenceSchedule:
    schedule = ReferenceSchedule(slots)
    for steps, accesses in stream:
        schedule.schedule_instruction(steps, accesses)
    return schedule


def parallelism(stream: Stream) -> float:
    schedule = slow(stream)
    return sum(row.total() for row in schedule.operations.values()) / schedule.cycles


@pytest.mark.parametrize("chains", [1, 2, 4, 8])
def test_independent_chains_run_beside_each_other(chains: int) -> None:
    stream: Stream = [((add(chain),), ()) for _ in range(100) for chain in range(chains)]
    assert parallelism(stream) == chains


@pytest.mark.parametrize(
    ("address", "size", "cycles"),
    [(64, 8, 3), (72, 8, 2), (56, 8, 2), (68, 1, 3), (71, 2, 3), (63, 1, 2), (63, 2, 3), (60, 8, 3), (72, 1, 2)],
)
def test_a_load_waits_for_the_bytes_that_were_stored_and_no_others(address: int, size: int, cycles: int) -> None:
    schedule = slow([((add(0),), ()), store(0, 64), load(1, address, size)])
    assert schedule.cycles == max(cycles, 2)
    assert any(row[1] for cycle, row in schedule.operations.items() if cycle == (3 if cycles == 3 else 1))


def test_adding_to_memory_takes_three_cycles_each_time() -> None:
    update = (
        Step(LOAD, LOADING, (), (LOADED,)),
        Step(OPERATE, ADD, (LOADED,), (LOADED,)),
        Step(STORE, STORING, (LOADED,), ()),
    )
    stream: Stream = [(update, (Access(8, 8, False), Access(8, 8, True)))] * 1000
    assert slow(stream).cycles == 3000


def test_parts_of_registers_are_followed_apart() -> None:
    stream: Stream = [((add(3),), ())] * 10  # bits 0 to 63
    stream += [((Step(OPERATE, ADD, (), (SECOND_BYTE + 3,)),), ())]  # mov bh, 1
    stream += [((Step(OPERATE, ADD, (SECOND_BYTE + 3,), (5,)),), ())]
    schedule = slow(stream)
    assert schedule.registers[5 + 128] == 2
    stream += [((add(3),), ())]
    assert slow(stream).cycles == 11


def test_a_limited_machine_fills_its_slots() -> None:
    stream: Stream = [((add(chain),), ()) for _ in range(1000) for chain in range(4)]
    assert [slow(stream, slots).cycles for slots in (1, 2, 4, 8)] == [4000, 2000, 1000, 1000]


# -- the compiled scheduler ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if find_compiler() is None:
        pytest.skip("no C compiler found: install gcc to test the compiled scheduler")
    library = ctypes.CDLL(
        str(compile_library("advisor_similarity", "harness.c", _cache(tmp_path_factory), make_options()))
    )
    library.harness_new.restype = ctypes.c_void_p
    library.harness_new.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
    buffers = [ctypes.c_char_p, ctypes.c_uint32]
    library.harness_block.argtypes = [ctypes.c_void_p, *buffers, *buffers]
    library.harness_cycles.restype = ctypes.c_uint64
    library.harness_cycles.argtypes = [ctypes.c_void_p]
    library.harness_row.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32]
    library.harness_free.argtypes = [ctypes.c_void_p]
    return library


def _cache(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("tracer")


def blocks(stream: Stream, length: int) -> list[tuple[bytes, bytes]]:
    """Cut a stream into blocks as the tracer does: steps with the instruction's number, accesses with it too."""
    cut = []
    for start in range(0, len(stream), length):
        part = stream[start : start + length]
        steps = b"".join(encode_template(Template("", steps), number) for number, (steps, _) in enumerate(part))
        accesses = b"".join(
            ACCESS.pack(access.address, number, access.store, access.size)
            for number, (_, made) in enumerate(part)
            for access in made
        )
        cut.append((steps, accesses))
    return cut


def rows_of(library: ctypes.CDLL, cut: Sequence[tuple[bytes, bytes]], slots: int | None) -> list[list[int]]:
    state = library.harness_new(slots or 0, 1 << 20)
    try:
        for steps, accesses in cut:
            own_steps = ctypes.create_string_buffer(steps, len(steps) + 1)
            own_accesses = ctypes.create_string_buffer(accesses, len(accesses) + ACCESS.size)
            library.harness_block(state, own_steps, len(steps) // 16, own_accesses, len(accesses) // 16)
        cycles = library.harness_cycles(state)
        return [[library.harness_row(state, cycle, k) for k in range(6)] for cycle in range(cycles)]
    finally:
        library.harness_free(state)


locations = st.sampled_from([0, 1, 2, 3, 33, 65, 96, 98, 128, 129, 160, 161])
registers = st.lists(locations, max_size=6).map(tuple)
operate = st.builds(
    lambda fine, reads, writes: ((Step(OPERATE, fine, reads, writes),), ()),
    st.sampled_from([0, 3, 10, 18, 19, 23]), registers, registers,
)  # fmt: skip
addresses = st.one_of(st.integers(0, 40), st.integers(4090, 4100), st.sampled_from([1 << 40, (1 << 40) + 7]))
sizes = st.sampled_from([1, 2, 4, 8, 16, 3])


@st.composite
def touching(draw: st.DrawFn) -> tuple[tuple[Step, ...], tuple[Access, ...]]:
    """Draw a load, a store, a read-modify-write, an atomic one or one that happened not to touch anything."""
    reads, writes = draw(registers), draw(registers)
    place, size = draw(addresses), draw(sizes)
    quiet = draw(st.booleans())
    loading = Step(LOAD, LOADING, reads, (*writes, LOADED), if_touched=quiet)
    storing = Step(STORE, STORING, (*reads, LOADED), (), if_touched=quiet)
    kind = draw(st.sampled_from(["load", "store", "update", "atomic", "none", "split"]))
    made = {
        "load": (Access(place, size, False),),
        "store": (Access(place, size, True),),
        "update": (Access(place, size, False), Access(place, size, True)),
        "atomic": (Access(place, size, True),),
        "none": (),
        "split": (Access(place, 8, False), Access(place + 8, 8, False)),
    }[kind]
    steps = {"load": (loading,), "split": (loading,), "store": (storing,)}.get(kind, (loading, storing))
    return steps, made


streams = st.lists(st.one_of(operate, touching()), max_size=60)


@settings(deadline=None, max_examples=300)
@given(streams, st.one_of(st.none(), st.integers(1, 4)), st.integers(1, 9))
def test_the_compiled_scheduler_equals_the_slow_one(
    fast: ctypes.CDLL, stream: Stream, slots: int | None, length: int
) -> None:
    expected = slow(stream, slots)
    found = rows_of(fast, blocks(stream, length), slots)
    assert len(found) == expected.cycles
    assert found == [[expected.operations[cycle + 1][k] for k in range(6)] for cycle in range(expected.cycles)]


def test_many_pages_of_cycles_and_of_memory(fast: ctypes.CDLL) -> None:
    stream: Stream = []
    for number in range(6000):
        stream += [
            ((add(number % 3),), ()),
            store(number % 3, 4096 * number + number % 7),
            load(4, 4096 * (number // 2)),
        ]
    expected = slow(stream, 2)
    assert sum(map(len, expected.operations.values())) > 0
    assert len(rows_of(fast, blocks(stream, 50), 2)) == expected.cycles
    assert expected.cycles == 9000


def test_every_fine_class_has_a_component() -> None:
    assert set(COARSE_OF) == set(range(6))
