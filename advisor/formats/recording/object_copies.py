"""What classes of C++ do for a program: copies of objects that are passed or returned by value, lookups and others.

A copy takes its time in the allocator and in ``memcpy``. The stack of a sample tells that it is one: a constructor
whose parameter is a constant reference to its own class stands between them and the code that wanted the copy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from advisor.support.copied_objects import (
    CHECKING,
    CONSTRUCTING,
    COPYING,
    LOCKING,
    LOOKING_UP,
    REBUILDING,
    SORTING,
    SYNCING,
    THROWING,
    WALKING,
)
from advisor.support.system_sources import is_system_source
from advisor.trace.library_functions import classify_library_function
from advisor.trace.recordings.places import CodePlace

#: What a standard library calls in its copy constructors, when these are inlined.
_COPIES: Final = frozenset({"_M_copy", "_M_clone_node"})
#: Makes hundreds of numbers ahead: a generator that is constructed anew for a few of them wastes the others.
_DRAWS: Final = re.compile(r".*std::mersenne_twister_engine<.*>::_M_gen_rand\(.*")
_GENERATORS: Final = CONSTRUCTING + "random number generators"
#: What stands for something that a class does, by the functions in which that is done; the outermost one counts.
_WORKS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    # Moves a string into new memory, or what is behind a place in it. One that is appended to grows by half or more
    # each time, and is seldom moved.
    (REBUILDING, re.compile(
        r"std::(?:__cxx11::|__1::)?basic_string<.*>::(?:_M_mutate|_M_erase|erase|substr|__grow_by\w*)\(.*"
        r"|std::(?:__cxx11::|__1::)?basic_string<.*> std::(?:__1::)?operator\+<.*"
    )),
    # Walks down the chain of a key's bucket.
    (LOOKING_UP, re.compile(
        r".*std::(?:__1::)?(?:_Hashtable|__hash_table)<.*>::(?:_M_find_(?:before_)?node\w*|find<.*)\(.*"
    )),
    # Goes from node to node of a tree that is kept in order.
    (WALKING, re.compile(
        r".*std::_Rb_tree_(?:increment|decrement|insert_and_rebalance|rebalance_for_erase)\(.*"
        r"|.*std::_Rb_tree<.*>::(?:_M_(?:lower_bound|upper_bound|get_insert_\w+|insert_\w*|emplace_\w+|create_node)"
        r"|find|count|(?:lower|upper)_bound|equal_range)[(<].*"
        r"|.*std::__1::(?:__tree<.*>::(?:__find_equal|find|__(?:lower|upper)_bound)[(<]|__tree_(?:next|prev|balance)).*"
    )),
    (CONSTRUCTING + "std::regex", re.compile(
        r".*std::(?:__cxx11::)?basic_regex<.*>::(?:basic_regex|_M_compile|assign)[(<].*"
        r"|.*std::__detail::(?:_(?:Compiler|Scanner)<.*|_BracketMatcher<.*>::_M_(?:ready|make_cache)\(.*)"
    )),
    (CONSTRUCTING + "streams", re.compile(
        r".*std::(?:__cxx11::)?basic_[io]?(?:string|f)?stream<.*>::basic_\w+\(.*"
        r"|std::(?:basic_ios<.*>::(?:init|_M_cache_locale)|locale::~?locale|ios_base::(?:~?ios_base|_M_init))\(.*"
    )),
    (_GENERATORS, re.compile(
        r".*std::(?:mersenne_twister|subtract_with_carry)_engine<.*>::(?:\w+_engine|seed)[(<].*"
        r"|.*std::random_device::(?:random_device|_M_init\w*|_M_fini)\(.*"
    )),
    (SORTING, re.compile(
        r"(?:.* )?(?:std::(?:__1::)?(?:__sort|(?:stable_)?sort)"
        r"|(?:std::)?__(?:introsort_loop|final_insertion_sort|insertion_sort|unguarded_(?:linear_insert|insertion_sort)"
        r"|unguarded_partition(?:_pivot)?|merge_sort_\w+|inplace_stable_sort))<.*"
    )),
    # What std::cin and std::cout are made of until std::ios::sync_with_stdio(false).
    (SYNCING, re.compile(r"__gnu_cxx::stdio_sync_filebuf<.*>::.*")),
    # With -D_GLIBCXX_DEBUG each access is checked.
    (CHECKING, re.compile(r"(?:.*\W)?(?:std::__debug|__gnu_debug)::.*")),
    (THROWING, re.compile(
        r"_*cxa_(?:throw|rethrow|(?:begin|end)_catch|(?:allocate|free)_exception)(?:\(.*)?|_Unwind_\w+(?:\(.*)?"
        r"|__gxx_personality_\w+|std::__throw_\w+\(.*"
    )),
    (LOCKING, re.compile(
        r"<?(?:std::sys::sync::(?:mutex|rwlock)::\w+::(?:Mutex|RwLock)|lock_api::(?:mutex|rwlock)::\w+.*)>::"
        r"(?:\w*lock\w*|spin\w*|read\w*|write\w*|wake\w*)"
    )),
)  # fmt: skip
#: Makes a string of a piece of another. Of a short one the allocator takes the time, and someone may keep it.
_CUTS: Final = re.compile(r".*::substr\(.*")
#: Selects a part of the elements, by steps that sorting takes as well.
_SELECTS: Final = re.compile(r"(?:.* )?(?:std::(?:__1::)?)?(?:__introselect|__nth_element|nth_element|partial_sort)<.*")
#: What asks for the order of a tree, and what looks an element up in it as in a hash table.
_BOUNDS: Final = frozenset(("lower_bound", "upper_bound", "equal_range"))
_LOOKUPS: Final = frozenset(("find", "count", "contains", "at", "operator[]"))
_TAKE: Final = "erase at a place"
_TREES: Final = re.compile(r"std::(?:__1::)?(?:multi)?(?:map|set)<.*>")
_DESTROYS: Final = re.compile(r".*::(?:~\w+|_M_(?:erase|dispose|drop_node))\(.*")
_PLAIN: Final = {
    "basic_string": "std::string", "_Hashtable": "a hash table of std", "shared_ptr": "std::shared_ptr",
    "__shared_ptr": "std::shared_ptr", "__shared_count": "std::shared_ptr",
}  # fmt: skip
#: What a copy constructor may take besides: an allocator.
_COPIED_ALONE: Final = re.compile(r"(?:, \S*[Aa]lloc\S*.*)?\).*")


_NAMES: Final = frozenset(words for words, _ in _WORKS)


@dataclass(frozen=True, slots=True)
class ObjectCopy:
    """A copy of an object of the class ``name``, or the end of one (``ends``), whose name is empty.

    What only counts where something else is done as well ``ends`` it, and has its name.

    ``file`` and ``line`` are where it was made, None if that is not known. Of a walk through a tree, ``tree`` is its
    class and ``member`` what was called of it.
    """

    name: str
    file: str | None
    line: int | None
    ends: bool
    tree: str = ""
    member: str = ""


def find_copy(frames: Iterable[CodePlace]) -> ObjectCopy | None:
    """Return what the frames of a sample, innermost first, say of a copy that code of the program makes; else None.

    What else takes time in classes of C++ (``_WORKS``) counts as one of that name.
    Copies that a container makes of what is put into it are its own affair.
    """
    last: ObjectCopy | None = None
    outer, work, tree = True, "", ("", "")
    frames = tuple(frames)
    copied = bool(frames) and classify_library_function(frames[0].function) == "copy"
    for frame in frames:
        if frame.file is None or is_system_source(frame.file) or _copied_class(frame.function):
            name = _copied_class(frame.function)
            done = next((words for words, pattern in _WORKS if pattern.fullmatch(frame.function)), "")
            if done:
                work, last = done, None  # a copy that it makes is part of it
            if _SELECTS.fullmatch(frame.function) or (not copied and _CUTS.fullmatch(frame.function)):
                work = ""
            tree = _name_tree(frame.function) or tree
            if _DRAWS.fullmatch(frame.function):
                return ObjectCopy(_GENERATORS, None, None, ends=True)
            if name or _DESTROYS.fullmatch(frame.function):
                last, outer = ObjectCopy(name, None, None, ends=not name), True
            elif frame.line:
                outer = False
            continue
        if last and outer:
            return ObjectCopy(last.name, frame.file, frame.line, last.ends)
        return ObjectCopy(work, frame.file, frame.line, False, *tree) if work else None
    if last and outer:
        return last
    return ObjectCopy(work, None, None, False, *tree) if work else None


def place_copies(copies: Mapping[bytes, ObjectCopy]) -> dict[bytes, tuple[str, str | None, int | None]]:
    """Return name, file and line of copies by key; the end of an object counts where such are made.

    Of a copy deep below the code that wanted it the place is not known: it is where most others of its name are. Trees
    whose order is needed while elements come and go do not count: nothing simpler does that.
    """
    needed = _find_needed(copies.values())
    copies = {key: one for key, one in copies.items() if one.tree not in needed}
    often: dict[str, Counter[tuple[str | None, int | None]]] = {}
    for one in copies.values():
        if one.file is not None and not one.ends:
            often.setdefault(one.name, Counter())[one.file, one.line] += 1
    made = {place: name for name, places in often.items() for place in places}
    found = {}
    for key, one in copies.items():
        name = made.get((one.file, one.line), one.name if one.name in often else "") if one.ends else one.name
        if name:
            place = (one.file, one.line) if one.file else _most(often.get(name))
            found[key] = (name if name in _NAMES else COPYING + name, *place)
    return found


def _find_needed(copies: Iterable[ObjectCopy]) -> set[str]:
    """Return the classes of trees in which elements are erased and neighbours are looked for, or the first is taken."""
    called: dict[str, set[str]] = {}
    for one in copies:
        if one.tree:
            called.setdefault(one.tree, set()).add(one.member)
    return {
        tree
        for tree, members in called.items()
        if (_BOUNDS & members and {"erase", _TAKE} & members) or (_TAKE in members and not _LOOKUPS & members)
    }


def _name_tree(function: str) -> tuple[str, str] | None:
    """Return the class of a tree that a function is a member of, and its name; ``_TAKE`` erases what a place tells."""
    if "std::" not in function:
        return None
    name, arguments = _split_arguments(function)
    owner, member = _split_last(name, "::")
    tree = _split_last(owner, " ")[1]
    if _TREES.fullmatch(tree) is None:
        return None
    member = member[: _first_bracket(member)].removesuffix("[abi:cxx11]")
    return tree, _TAKE if member == "erase" and "iterator<" in arguments else member


def _most(places: Counter[tuple[str | None, int | None]] | None) -> tuple[str | None, int | None]:
    return places.most_common(1)[0][0] if places else (None, None)


def _copied_class(function: str) -> str:
    """Return the readable name of the class that a function copies, empty where it does not."""
    name, arguments = _split_arguments(function)
    owner, member = _split_last(name, "::")
    if member[: _first_bracket(member)] in _COPIES:
        return _readable(_split_last(owner, " ")[1])
    plain = owner[: _first_bracket(owner)]
    if not owner or member != plain.rpartition("::")[2] or not arguments.startswith(f"{owner} const&"):
        return ""
    if _COPIED_ALONE.fullmatch(arguments.removeprefix(f"{owner} const&")) is None:
        return ""  # of a part
    return _readable(owner)


def _readable(owner: str) -> str:
    """Return the name of a class without its parameters, as it stands in a program."""
    plain = owner[: _first_bracket(owner)]
    last = plain.rpartition("::")[2]
    if last == "_Rb_tree" or plain.startswith("std::_Rb_tree"):
        return "std::set" if "std::_Identity<" in owner else "std::map"
    return _PLAIN.get(last, plain.replace("std::__cxx11::", "std::").replace("std::__1::", "std::"))


def _first_bracket(name: str) -> int:
    at = name.find("<")
    return at if at >= 0 else len(name)


def _split_last(name: str, separator: str) -> tuple[str, str]:
    """Return what is before and behind the last separator outside of brackets, empty before it where there is none."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ">") - (name[at] == "<")
        if depth == 0 and name.startswith(separator, at):
            return name[:at], name[at + len(separator) :]
    return "", name


def _split_arguments(function: str) -> tuple[str, str]:
    """Return a demangled name up to its parameters, and these."""
    depth = 0
    for at, letter in enumerate(function):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            return function[:at], function[at + 1 :]
    return function, ""


def flatten_frames(found: Iterable[tuple[bool, Sequence[CodePlace]]]) -> list[CodePlace]:
    """Return the frames of a sample and its callers in one list, as far as all are known; of libraries only the names.

    ``found`` says of each address whether it is in the program's file.
    """
    flat: list[CodePlace] = []
    for own, frames in found:
        if not frames:
            break
        for frame in frames:
            inlined = [CodePlace(name, None, frame.line) for name in frame.inlined]
            flat += [*inlined, frame] if own else [CodePlace(frame.function)]
    return flat
