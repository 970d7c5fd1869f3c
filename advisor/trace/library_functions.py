"""What functions of the C, math and runtime libraries do, by their names as profilers print them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor.support.copied_objects import (
    CHECKING,
    LOCKING,
    LOOKING_UP,
    REBUILDING,
    SYNCING,
    THROWING,
    WALKING,
    is_construction,
    is_object_copy,
)

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: ``math``: transcendental functions; ``inlinable``: those that are an instruction or two of today's processors;
#: ``memory``: allocation; ``copy``: copying and clearing; ``check``: tests at run
#: time that assertions, sanitizers, bounds checks and profiling options add; ``lock``: taking and releasing locks;
#: ``text``: numbers to text and back; ``random``: numbers of the generators that all threads share; ``sort``: sorting
#: by a function that compares; ``string``: comparing, searching and copying text byte by byte; ``length``: going to the
#: end of a text. Of C++, by what our recordings call them, ``object``: copying objects; ``rebuilt``: putting strings
#: into new memory; ``hashed``: looking up in hash tables; ``ordered``: walking through trees; ``constructed``:
#: constructing objects for which that takes long; ``thrown``: exceptions on their way; ``synced``: streams in step with
#: those of C. ``buffered``: moving pieces into and out of the buffers of streams. Of MPI, ``packing``: putting
#: numbers into buffers one call at a time.
LibraryKind = Literal[
    "math",
    "inlinable",
    "memory",
    "copy",
    "check",
    "lock",
    "text",
    "random",
    "sort",
    "string",
    "length",
    "object",
    "rebuilt",
    "hashed",
    "ordered",
    "constructed",
    "thrown",
    "packing",
    "synced",
    "buffered",
]
#: Kinds whose seconds are counted, by the name of the count.
COUNTED_KINDS: Final[Mapping[str, str]] = {
    "math": "math", "inlinable": "inlinable", "memory": "allocation", "copy": "copy", "lock": "lock", "text": "text",
    "random": "random", "sort": "sort", "string": "string", "length": "length", "object": "copied",
    "rebuilt": "rebuilt", "hashed": "hashed", "ordered": "ordered", "constructed": "constructed", "thrown": "thrown",
    "packing": "packing", "check": "checked", "synced": "synced",
    "buffered": "buffered",
}  # fmt: skip
#: What code is called that was compiled without optimization.
UNOPTIMIZED: Final = "unoptimized"
#: Kinds that names alone do not tell: our recordings look at the functions around them.
_RECORDED_KINDS: Final = frozenset(("copied", "rebuilt", "hashed", "ordered", "constructed", "checked"))

#: What is before a name: underscores, the vector ABI's instruction set, mask, length and parameters (``_ZGVdN4v_sin``),
#: and what glibc calls by itself (``__GI__IO_fread``).
_DECORATION: Final = re.compile(
    r"^(?:_ZGV[a-z][MN]\d+[a-z0-9]+_|_*(?:GI_+)?(?:ieee754_)?)"
    r"|(?:_(?:fma[34]?|avx2?|sse[0-9]+(?:_[0-9]+)?|finite|evex|skx|knl|avx512[a-z0-9]*))+$"
)
_MATH: Final = re.compile(
    r"c?(?:pow|exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|atanh|abs)"
    r"[fl]?|atan2[fl]?|sincos[fl]?|cbrt[fl]?|hypot[fl]?|(?:tgamma|lgamma|erfc?|fmod|remainder)[fl]?"
    r"|exp1|log1|pow1|do_(?:sin|cos|sincos)|(?:reduce_sincos|branred|kernel_(?:sin|cos|tan)\w*)|mul[ds]c3|div[ds]c3"
    r"|(?:specialcase|exp_inline|log_inline)|_gfortran_pow_\w+|gfortran_pow_\w+"
)
#: In place of calling them, compilers put instructions where they are allowed to: by an instruction set that has them
#: (SSE4.1, FMA), or if numbers are taken to be finite, zeros to have no sign, and ``errno`` to be of no interest.
_INLINABLE: Final = re.compile(r"(?:f(?:min|max)|floor|ceil|trunc|(?:l?l?r|nearby)int|l?l?round|fma)(?:f(?:32)?|l)?")
_MEMORY: Final = re.compile(
    r"malloc|free|calloc|realloc|int_(?:malloc|free|realloc)\w*|malloc_consolidate|unlink_chunk\S*|sysmalloc|systrim\S*"
    r"|cfree|posix_memalign|aligned_alloc|tcache_\w+|libc_(?:malloc|free|calloc|realloc)"
    r"|operator (?:new|delete).*|Zn[wa].*|Zd[la].*"
    r"|je_\w+|tc_\w+|tcmalloc::.*|mi_\w+|rust_(?:(?:de|re)?alloc\w*)|scalable_(?:malloc|free|\w+alloc)"
)
_COPY: Final = re.compile(r"mem(?:cpy|move|set)\w*|(?:b?zero|bcopy)|gfortran_(?:internal_(?:un)?pack\w*)")
_CHECK: Final = re.compile(
    r"assert_fail|glibcxx_assert_fail|(?:asan|ubsan|tsan|msan|hwasan)_\w+|gcov_\w+|mcount\w*|fentry|cyg_profile\w*"
    r"|gfortran_runtime_error\w*|(?:add|sub|mul|neg)v[sd]i3"
    r"|ZNK?St7__debug\w+|Z\w*11__gnu_debug\w+|ZSt\d+__throw_out_of_range\w*|std::__debug::.*|(?:.* )?__gnu_debug::.*"
)
_THROWN: Final = re.compile(
    r"cxa_(?:throw|rethrow|(?:begin|end)_catch|(?:allocate|free)_exception)|Unwind_\w+|gxx_personality_\w+|libgcc_s\.so[.\d]*"
    r"|std::__throw_\w+\(.*"
)
_LOCK: Final = re.compile(
    r"pthread_(?:mutex|spin|rwlock)_\w*lock\w*|mtx_\w*lock|lll_(?:mutex_)?(?:un)?lock_\w+|GOMP_critical_\w+|gomp_mutex_\w*lock\w*"
    r"|omp_(?:un)?set_(?:nest_)?lock|kmpc_(?:end_)?critical\w*|kmp_(?:acquire|release)_\w*lock\w*|omp_critical"
)
#: Of the C library; ``random_r`` and the others do the work of those whose state they are given. Of Fortran's libraries
#: (gfortran, Intel, flang), what ``random_number`` and the older ``rand`` and ``irand`` call for a number or an array.
_RANDOM: Final = re.compile(
    r"s?rand|random(?:_r)?|[dlm]rand48|drand48_iterate|[delmjn]+rand48_r"
    r"|gfortran_(?:a?random_[rim]\d+|i?rand)|for_random_number\w*|FortranA?RandomNumber\w*"
)
#: Sorting of glibc (merging; quick from 2.37 on), musl and the BSDs; the function that compares is the program's. Of
#: C++, by libstdc++ and libc++, which put the comparison into their loops.
_SORT: Final = re.compile(
    r"(?:std::(?:__\w+::)*|(?=__))(?:__)?(?:(?:intro|stable_|inplace_stable_|(?:final_|chunk_)?insertion_|merge_)?sort"
    r"|introsort_loop|unguarded_(?:partition(?:_pivot)?|(?:linear_)?insert(?:ion_sort)?)|move_median_to_first"
    r"|merge_(?:sort_loop|sort_with_buffer|adaptive)|move_merge(?:_adaptive(?:_backward)?)?|sort[345]"
    r"|insertion_sort_(?:3|incomplete|move|unguarded)|partition_with_equals_on_(?:left|right)|bitset_partition)(?:<.*)?|"
    r"(?:qsort(?:_r|_s)?|msort_with_tmp|quicksort|introsort_r|heapsort(?:_r)?|mergesort|smoothsort|trinkle"
    r"|insertion_sort_qsort_partitions|siftdown|local_qsort)(?:[._](?:part|isra|constprop)\.\d+)*"
)
_STRING: Final = re.compile(
    r"(?:str(?:n?(?:case)?cmp|r?chr|chrnul|(?:case)?str|n?cpy|c?spn|pbrk|tok|sep|coll)|stpn?cpy|mem(?:r?chr|mem|cmp|cmpeq)"
    r"|rawmemchr)(?:_\w+)?"
)
#: Goes to the end of a text to know where that is.
_LENGTH: Final = re.compile(r"(?:strn?len|strn?cat|wcsn?len|gfortran_string_len_trim)(?:_\w+)?")
#: Of C++'s streams, what takes and gives lines, pieces and characters as they are.
_PIECES: Final = (
    r"std::(?:getline\b|(?:basic_)?[io]stream(?:<[^()]*>)?::"
    r"(?:get|getline|ignore|peek|putback|readsome|read|unget|put|write|flush)(?:\(|$))"
)
#: Formatted input and output: of C, of C++ (streams and their facets), of gfortran, whose other functions have names
#: in its library: code without a name there is that of its input and output.
_TEXT: Final = re.compile(
    r"(?:isoc\d+_)?v?[fsd]?n?(?:print|scan)f(?:_chk)?|(?:IO_)?v\w*(?:print|scan)f(?:_internal)?|printf_(?:fp|buffer)\w*"
    r"|(?:isoc\d+_)?(?:strto|wcsto)(?:[dfl]|ld|ll?|ull?|imax|umax)(?:_l)?(?:_internal)?|strto\w+_internal|ato(?:[fil]|ll)"
    r"|itoa_word|mpn_extract_\w+|round_and_return|str_to_mpn\w*"
    rf"|(?!.*{_PIECES})"
    r".*std::(?:num_(?:put|get)<|(?:basic_)?[io]stream|operator(?:<<|>>)|(?:ostream|istream)\w*_insert).*"
    r"|std::(?:__cxx11::)?(?:to_string|sto(?:[dfi]|ld|ll?|ull?))\b.*"
    r"|_?gfortran_(?:st_(?:read|write)\w*|transfer_\w+)|(?:read|write)_(?:real|integer|decimal|float_\w+)|format_lex"
    r"|libgfortran\.so[.\d]*"
)
#: Pass characters, pieces and lines between a stream's buffer and the program, each call under a lock.
_BUFFERED: Final = re.compile(
    r"f(?:read|write)|f?(?:get|put)[cs]|(?:get|put)char|getline|getdelim|ungetc|u(?:nder)?flow|overflow"
    r"|IO_(?:\w+_)?(?:xsget|xsput|sget|sput|underflow|overflow|getline|getdelim|[gp]et[cs]|fread|fwrite|f[gp]uts)\w*"
    rf"|.*{_PIECES}.*"
)
#: Functions of C++'s library of an instruction or two, without arguments of templates and calls, and mangled: they
#: have no code of their own unless the compiler was told not to optimize.
_ACCESS: Final = re.compile(
    r"std::(?:__\w+::)*(?:(?:vector|array|basic_string|deque|unique_ptr|shared_ptr|optional|tuple|_Vector_base|span|complex"
    r"|_Bit_reference|_Bvector_base|__shared_ptr|__shared_ptr_access|__uniq_ptr_impl)<>::(?:operator(?:\[\]|\*|->|bool)|at"
    r"|size|length|data|c?r?begin|c?r?end|front|back|empty|get|value|real|imag|_M_(?:get\w*|ptr|data|local_data))"
    r"|(?:__array_traits|_Head_base|_Tuple_impl)<>::_[SM]_\w+|(?:move|forward|(?:__)?addressof|__get_helper|get|max|min)<>)"
    r"|__gnu_cxx::(?:__normal_iterator<>::\S+|operator(?:[!=]=|-)<>)"
)
_PLACEMENT: Final = re.compile(r"operator new\(unsigned (?:long|int), void ?\*\)")
_MANGLED_ACCESS: Final = re.compile(
    r"_ZNK?St(?:6vector|5array|3__1\d+(?:vector|array))I\w+E(?:ix[Em]+|4sizeEv|5beginEv|3endEv|4dataEv|5frontEv|4backEv)"
    r"|_ZNK?9__gnu_cxx17__normal_iteratorI\w+|_ZSt(?:7forward|4move|9addressof|11__addressof|3getI|3maxI|3minI)\w+"
)
_ARGUMENTS: Final = re.compile("<\0*>")
_OF_LIBRARY: Final = ("std::", "__gnu_cxx::")
#: Calls of MPI that only put data into buffers and take them out.
_PACKING: Final = re.compile(r"P?MPI_(?:Unp|P)ack(?:_external)?(?:_c)?")
#: What our recordings call what classes of C++ do, and names in the order in which they decide.
_CALLED: Final[Mapping[str, LibraryKind]] = {
    REBUILDING: "rebuilt", LOOKING_UP: "hashed", WALKING: "ordered", CHECKING: "check", THROWING: "thrown",
    LOCKING: "lock", SYNCING: "synced",
}  # fmt: skip
_NAMES: Final[tuple[tuple[LibraryKind, re.Pattern[str]], ...]] = (
    ("check", _CHECK),
    ("math", _MATH),
    ("inlinable", _INLINABLE),
    ("memory", _MEMORY),
    ("lock", _LOCK),
    ("text", _TEXT),
    ("random", _RANDOM),
    ("sort", _SORT),
    ("length", _LENGTH),
    ("string", _STRING),
    ("copy", _COPY),
    ("packing", _PACKING),
    ("buffered", _BUFFERED),
    ("thrown", _THROWN),
)
#: Takes an absolute value of an integer in one instruction.
_BRIEF: Final = "abs"


def bare_name(name: str) -> str:
    """Return the name of a library function without what its library adds for versions and processors."""
    return _DECORATION.sub("", name.partition("@")[0])


def classify_library_function(name: str) -> LibraryKind | None:
    """Return what a library function does, None for one that is none of these kinds."""
    if is_object_copy(name):
        return "object"
    if is_construction(name):
        return "constructed"
    plain = bare_name(name)
    if name in _CALLED or plain == _BRIEF:
        return _CALLED.get(name)
    return next((kind for kind, pattern in _NAMES if pattern.fullmatch(plain)), None)


def is_unoptimized_access(name: str) -> bool:
    """Return whether a function of C++'s library exists only in code that was compiled without optimization."""
    if name.startswith("_Z"):
        return _MANGLED_ACCESS.fullmatch(name) is not None
    if not any(scope in name for scope in _OF_LIBRARY):
        return _PLACEMENT.fullmatch(name) is not None
    from advisor.support.template_names import mask_template_arguments

    plain = _ARGUMENTS.sub("<>", mask_template_arguments(name)).partition("(")[0].partition("[abi:")[0]
    return _ACCESS.fullmatch(plain.rpartition(" ")[2].lstrip("*&")) is not None


def count_by_name(names: Sequence[str], seconds: FloatArray) -> dict[str, FloatArray]:
    """Return ``seconds`` (R, Q) of computation in functions that are known by name; nothing where none is."""
    kinds = [
        UNOPTIMIZED if is_unoptimized_access(name) else COUNTED_KINDS.get(classify_library_function(name) or "")
        for name in names
    ]
    if not any(kinds):
        return {}
    counted = [kind for kind in COUNTED_KINDS.values() if kind not in _RECORDED_KINDS]
    counted += [UNOPTIMIZED] if UNOPTIMIZED in kinds else []
    counts = {f"code.{kind}_s": np.zeros_like(seconds) for kind in ("all", "known", *counted)}
    counts["code.all_s"] += seconds
    for row, kind in enumerate(kinds):
        if kind in counted:
            counts["code.known_s"][row] = counts[f"code.{kind}_s"][row] = seconds[row]
    return counts
