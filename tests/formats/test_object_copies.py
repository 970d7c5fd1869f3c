"""Copies of objects of C++ are told by the constructors on the stack, and are at the line that wants them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.formats.recording.object_copies import find_copy, flatten_frames, place_copies
from advisor.formats.recording.sampling import _function, _gather_synced
from advisor.support.copied_objects import (
    CHECKING,
    CONSTRUCTING,
    LOCKING,
    LOOKING_UP,
    REBUILDING,
    SORTING,
    SYNCING,
    THROWING,
    WALKING,
)
from advisor.trace.library_functions import classify_library_function
from advisor.trace.recordings.places import CodePlace
from advisor.trace.recordings.processes import Process

HEADER = "/usr/include/c++/12/bits/stl_vector.h"
ALLOCATE = CodePlace("operator new(unsigned long)")
VECTOR = "std::vector<double, std::allocator<double> >"
TEXT = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
COPY_VECTOR = CodePlace(f"{VECTOR}::vector({VECTOR} const&)", HEADER, 552)
COPY_TEXT = CodePlace(f"{TEXT}::basic_string({TEXT} const&)", HEADER, 544)
CONSTRUCT = CodePlace(f"void std::_Construct<{TEXT}, {TEXT} const&>({TEXT}*, {TEXT} const&)", HEADER, 119)
COPY_TREE = CodePlace("int* std::_Rb_tree<int, int, std::_Identity<int> >::_M_copy<false>(int*, int*)", HEADER, 1908)
COPY_PART = CodePlace("mesh::Part::Part(mesh::Part const&)", "/home/me/part.h", 3)
CALLER = CodePlace("norm(int)", "/home/me/norm.cpp", 7)


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        ((ALLOCATE, COPY_VECTOR, CALLER), "std::vector"),
        ((ALLOCATE, COPY_TEXT, CONSTRUCT, COPY_VECTOR, CALLER), "std::vector"),
        ((ALLOCATE, COPY_TREE, CALLER), "std::set"),
        ((ALLOCATE, COPY_VECTOR, COPY_PART, CALLER), "mesh::Part"),
    ],
)
def test_the_outermost_object_is_what_is_copied(frames: tuple[CodePlace, ...], name: str) -> None:
    copy = find_copy(frames)
    assert copy is not None
    assert (copy.name, copy.file, copy.line, copy.ends) == (name, CALLER.file, CALLER.line, False)


def test_streams_in_step_with_those_of_c_count_with_all_they_do_at_a_line() -> None:
    get = CodePlace("_IO_getc")
    refill = CodePlace("__gnu_cxx::stdio_sync_filebuf<char, std::char_traits<char> >::underflow()")
    read = CodePlace("std::istream& std::istream::_M_extract<double>(double&)")
    found = find_copy((get, refill, read, CALLER))
    assert found is not None
    assert (found.name, found.line) == (SYNCING, 7)
    assert find_copy((get, CALLER)) is None, "who calls the C library itself is in nobody's step"
    assert classify_library_function(SYNCING) == "synced"
    text, synced, other = (
        "std::istream& std::operator>>(std::istream&, char&)",
        (SYNCING, CALLER.file),
        ("main", "a.cpp"),
    )
    known = {b"a": (synced, 7), b"b": ((text, CALLER.file), 7), b"c": ((text, CALLER.file), 9), b"d": (other, 7)}
    assert _gather_synced(known) == {b"b": (synced, 7)}


@pytest.mark.parametrize(
    "frames",
    [
        (ALLOCATE, CALLER),
        (ALLOCATE, CodePlace(f"{VECTOR}::vector(unsigned long, double const&)", HEADER, 9), CALLER),
        (ALLOCATE, CodePlace(f"{VECTOR}::vector({VECTOR}&&)", HEADER, 9), CALLER),
        (ALLOCATE, COPY_TEXT, CodePlace(f"{VECTOR}::push_back(double const&)", HEADER, 1287), CALLER),
    ],
)
def test_what_is_made_moved_or_put_into_a_container_is_no_such_copy(frames: tuple[CodePlace, ...]) -> None:
    assert find_copy(frames) is None


def test_a_string_that_is_put_into_new_memory_to_grow_is_rebuilt() -> None:
    moves = CodePlace(f"{TEXT}::_M_mutate(unsigned long, unsigned long, char const*, unsigned long)")
    appends = CodePlace(f"{TEXT}::_M_append(char const*, unsigned long)")
    found = find_copy((CodePlace("memcpy"), moves, appends, CALLER))
    assert found is not None
    assert place_copies({b"one": found}) == {b"one": (REBUILDING, CALLER.file, CALLER.line)}
    assert find_copy((CodePlace("memcpy"), appends, CALLER)) is None
    assert (classify_library_function(REBUILDING), classify_library_function("copying std::map")) == (
        "rebuilt",
        "object",
    )


def test_a_walk_down_the_chain_of_a_bucket_is_a_lookup_at_the_line_that_wants_it() -> None:
    table = "std::_Hashtable<int, int, Hash, std::_Hashtable_traits<true, false, true> >"
    walks = CodePlace(
        f"int* {table}::_M_find_before_node(unsigned long, int const&, unsigned long) const", HEADER, 1940
    )
    found = find_copy((walks, CodePlace(f"{table}::operator[](int const&)", HEADER, 707), CALLER))
    assert found is not None
    inner = find_copy((walks,))  # of code of the program itself, callers are not known
    assert inner is not None
    lines = dict.fromkeys((b"one", b"two"), (LOOKING_UP, CALLER.file, CALLER.line))
    assert place_copies({b"one": found, b"two": inner}) == lines


def test_the_end_of_a_copy_belongs_to_it_and_deep_parts_of_one_lie_where_most_do() -> None:
    end = CodePlace(f"{VECTOR}::~vector()", HEADER, 730)
    elsewhere = CodePlace("main", "/home/me/norm.cpp", 20)
    frames = {
        b"copy": (ALLOCATE, COPY_VECTOR, CALLER),
        b"deep": (ALLOCATE, COPY_VECTOR),
        b"end": (CodePlace("free"), end, CALLER),
        b"other": (CodePlace("free"), end, elsewhere),
    }
    found = place_copies({key: copy for key, each in frames.items() if (copy := find_copy(each))})
    assert found == dict.fromkeys((b"copy", b"deep", b"end"), ("copying std::vector", CALLER.file, CALLER.line))


def test_sources_of_libraries_are_not_those_of_the_program() -> None:
    malloc = CodePlace("_int_malloc", "malloc/malloc.c", 3866)
    flat = flatten_frames([(False, (malloc,)), (True, (COPY_VECTOR, CALLER)), (False, ()), (True, (CALLER,))])
    assert flat == [CodePlace("_int_malloc"), COPY_VECTOR, CALLER]


ENTRIES = "std::_Rb_tree<int, std::pair<int const, int>, std::_Select1st<std::pair<int const, int> >, std::less<int> >"
COUNTED = "std::__shared_count<(__gnu_cxx::_Lock_policy)2>"
PATTERN = "std::__cxx11::basic_regex<char, std::__cxx11::regex_traits<char> >"
ENGINE = "std::mersenne_twister_engine<unsigned long, 32ul, 624ul>"


@pytest.mark.parametrize(
    ("inlined", "name", "kind"),
    [
        (f"{ENTRIES}::_M_lower_bound(int*, int*, int const&)", WALKING, "ordered"),
        (f"{ENTRIES}::find(int const&)", WALKING, "ordered"),
        (f"{TEXT} std::operator+<char, std::char_traits<char> >({TEXT} const&, char)", REBUILDING, "rebuilt"),
        (f"{PATTERN}::basic_regex(char const*, unsigned int)", f"{CONSTRUCTING}std::regex", "constructed"),
        (f"{ENGINE}::seed(unsigned long)", f"{CONSTRUCTING}random number generators", "constructed"),
        (f"{COUNTED}::__shared_count({COUNTED} const&)", "copying std::shared_ptr", "object"),
        ("void std::__introsort_loop<int*, long, int>(int*, int*, long, int)", SORTING, "sort"),
        ("std::__debug::vector<double, std::allocator<double> >::operator[](unsigned long)", CHECKING, "check"),
        ("<std::sys::sync::mutex::futex::Mutex>::lock", LOCKING, "lock"),
    ],
)
def test_functions_of_the_library_that_are_inlined_tell_what_the_program_does(
    inlined: str, name: str, kind: str
) -> None:
    own = CodePlace(CALLER.function, CALLER.file, CALLER.line, (inlined,))
    found = find_copy(flatten_frames([(True, (own,))]))
    assert found is not None
    assert place_copies({b"one": found}) == {b"one": (name, CALLER.file, CALLER.line)}
    assert classify_library_function(name) == kind


def test_a_walk_in_the_library_is_at_the_line_that_wants_it() -> None:
    step = CodePlace("std::_Rb_tree_increment(std::_Rb_tree_node_base const*)")
    found = find_copy(flatten_frames([(False, (step,)), (True, (CALLER,))]))
    assert found is not None
    assert place_copies({b"one": found}) == {b"one": (WALKING, CALLER.file, CALLER.line)}


def test_a_copy_that_an_addition_of_strings_makes_is_part_of_it_and_a_part_of_a_string_no_copy() -> None:
    adds = CodePlace(f"{TEXT} std::operator+<char, std::char_traits<char> >({TEXT} const&, char)", HEADER, 9)
    found = find_copy((ALLOCATE, COPY_TEXT, adds, CALLER))
    assert found is not None
    assert found.name == REBUILDING
    part = CodePlace(f"{TEXT}::basic_string({TEXT} const&, unsigned long, unsigned long)", HEADER, 9)
    assert find_copy((ALLOCATE, part, CALLER)) is None


def test_an_exception_on_its_way_is_at_the_line_of_the_call() -> None:
    search = CodePlace("_Unwind_Find_FDE")
    found = find_copy(flatten_frames([(False, (search,)), (False, (CodePlace("__cxa_throw"),)), (True, (CALLER,))]))
    assert found is not None
    assert place_copies({b"one": found}) == {b"one": (THROWING, CALLER.file, CALLER.line)}
    assert classify_library_function(THROWING) == "thrown"
    assert classify_library_function("libgcc_s.so.1") == "thrown", "it has no names for what it does"


def test_numbers_made_ahead_are_part_of_the_construction_of_generators_where_there_is_any() -> None:
    draws = CodePlace(f"{ENGINE}::_M_gen_rand()", "/usr/include/c++/12/bits/random.tcc", 407)
    drawn = find_copy((draws, CALLER))
    made = find_copy((CodePlace(f"{ENGINE}::seed(unsigned long)"), replace(CALLER, line=3)))
    assert drawn is not None
    assert made is not None
    name = f"{CONSTRUCTING}random number generators"
    assert place_copies({b"drawn": drawn}) == {}
    both = place_copies({b"drawn": drawn, b"made": made})
    assert both == {b"drawn": (name, CALLER.file, 3), b"made": (name, CALLER.file, 3)}


def test_a_nameless_function_that_the_program_reaches_by_a_jump_is_not_taken_for_output() -> None:
    process = Process(stem=Path("run"), program="/home/me/solver")
    own = (CodePlace("forward", "/home/me/layer.f90", 47),)
    library = "/usr/lib/libgfortran.so.5.0.0"
    paths = [process.program, library]
    jumped, _ = _function(process, [[1, 100], [0, 10]], [(), own], paths)
    called, _ = _function(process, [[1, 100], [1, 90], [0, 10]], [(), (), own], paths)
    assert classify_library_function(jumped[0]) is None
    assert classify_library_function(called[0]) == "text"


SET = "std::set<double, std::less<double>, std::allocator<double> >"
PLACE = "std::_Rb_tree_const_iterator<double>"


def walk(member: str, line: int) -> CodePlace:
    """A frame of the program with a member of a set inlined into it, which walks through the tree."""
    return CodePlace("sweep(int)", "/home/me/sweep.cpp", line, ("std::_Rb_tree<double>::find(double)", member))


@pytest.mark.parametrize(
    ("members", "counts"),
    [
        ((f"{SET}::lower_bound(double const&)", f"{SET}::erase(double const&)"), False),
        ((f"{SET}::insert(double const&)", f"{SET}::erase[abi:cxx11]({PLACE})"), False),
        ((f"{SET}::lower_bound(double const&)", f"{SET}::insert(double const&)"), True),
        ((f"{SET}::find(double const&)", f"{SET}::erase[abi:cxx11]({PLACE})"), True),
        ((f"{SET}::insert(double const&)", f"{SET}::erase(double const&)"), True),
    ],
)
def test_trees_count_unless_their_order_is_needed_while_elements_come_and_go(
    members: tuple[str, ...], counts: bool
) -> None:
    frames = {b"%d" % at: (walk(member, at),) for at, member in enumerate(members, 1)}
    other = CodePlace("main", "/home/me/main.cpp", 9, (f"{ENTRIES}::find(int const&)",))
    frames[b"other"] = (other,)
    found = {key: find_copy(flatten_frames([(True, each)])) for key, each in frames.items()}
    placed = place_copies({key: copy for key, copy in found.items() if copy is not None})
    assert set(placed) == ({b"1", b"2", b"other"} if counts else {b"other"})


def test_selecting_a_part_of_the_elements_is_no_sorting_though_it_takes_the_same_steps() -> None:
    steps = ("__unguarded_partition<int*, int>", "__introselect<int*, long, int>", "nth_element<int*>")
    assert find_copy(flatten_frames([(True, (CodePlace("main", "/home/me/a.cpp", 3, steps),))])) is None
    assert classify_library_function("std::partial_sort<int*>") is None


def test_pieces_of_a_text_count_where_copying_takes_the_time_not_allocating() -> None:
    cut = CodePlace(f"{TEXT}::substr(unsigned long, unsigned long) const")
    copied = find_copy((CodePlace("__memmove_avx_unaligned_erms"), cut, CALLER))
    assert copied is not None
    assert copied.name == REBUILDING
    assert find_copy((CodePlace("_int_malloc"), cut, CALLER)) is None
