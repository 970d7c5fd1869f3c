"""Facts of the program's code: what its functions and inner loops do with their seconds."""

from typing import Final

from advisor.advice.facts.fact_records import parse_facts
from advisor.analysis.measures import MISSING

_TRACE: Final = MISSING["wait_s"].command
_BINARY: Final = "gapwatch advise --binary ./PROGRAM PATH"

# fmt: off
CODE: Final = (
    *parse_facts("code.all_s code.unoptimized_s", _BINARY,
        "code.unoptimized_share | share | seconds in functions compiled without optimization / computation"),
    *parse_facts("wall_s", _TRACE, """
        code.older_share    | share | all computation, where the output says that it was built for older processors
    """),
    *parse_facts("code.all_s code.known_s", _TRACE, """
        code.known_share    | share | seconds in functions whose code was looked at, or is known / computation
        code.checked_share  | share | seconds in functions whose loops check bounds or assertions / computation
        code.scalar_share   | share | seconds in inner loops that compute with one number at a time / computation
        code.overlap_share  | share | the same where nothing but overlapping arrays, or options, can be the reason
        code.objects_share  | share | the same where it takes a few numbers of each object of an array of objects
        code.order_share    | share | the same where a sum has to keep its order
        code.recurrence_share | share | the same where an iteration needs what the one before it has computed
        code.pointer_share  | share | seconds of waiting for loads whose address was itself loaded / computation
        code.chain_share    | share | the same where a number that was loaded in the iteration before makes it
        code.scatter_share  | share | seconds of waiting for loads at addresses that are computed anew / computation
        code.guess_share    | share | seconds of waiting for branches that were guessed wrong / computation
        code.quotient_share | share | seconds of waiting for divisions and remainders of integers / computation
        code.streamed_share | share | seconds in inner loops that wait for memory they go through in order / computation
        code.shape_share    | share | seconds in inner loops that go along memory in steps known at run time only
        code.baseline_share | share | seconds in floating-point code for the oldest processors (no AVX) / computation
        code.branch_share   | share | seconds in scalar inner loops that branch / computation
        code.call_share     | share | seconds in scalar inner loops that call functions / computation
        code.stride_share   | share | seconds in inner loops, times their share of accesses with a stride / computation
        code.page_share     | share | the same for strides of 4 KiB and multiples
        code.transpose_share | share | the same where an interchange of loops would make another access strided
        code.division_share | share | seconds in inner loops that divide or take roots / computation
        code.search_share   | share | seconds in inner loops that only look for an element of an array / computation
        code.recomputed_share | share | seconds in functions that call themselves with equal numbers again / computation
        code.filter_share   | share | seconds in inner loops that test many elements and use few / computation
        code.selection_share | share | seconds in inner loops that only look for the smallest element / computation
        code.update_share   | share | seconds in loops that store to one place or others' lines, or atomic / computation
    """),
    *parse_facts("code.all_s code.math_s", _TRACE, """
        code.math_share       | share | seconds in pow, exp and the like, and in loops that call them / computation
        code.inlinable_share  | share | seconds in fmin, floor and the like, and in who calls them / computation
        code.allocation_share | share | seconds in malloc, free and the like / computation
        code.copy_share       | share | seconds in memcpy, memset and the like / computation
        code.copied_share     | share | seconds in copying objects of C++ by value and ending the copies / computation
        code.rebuilt_share    | share | seconds in strings of C++ whose text is moved to change / computation
        code.hashed_share     | share | seconds in the chains of hash tables of C++ / computation
        code.ordered_share    | share | seconds in the trees of std::map and std::set / computation
        code.thrown_share     | share | seconds in throwing exceptions of C++ and finding who catches them / computation
        code.synced_share     | share | seconds in std::cin and std::cout in step with stdio / computation
        code.buffered_share   | share | seconds in fread, getc, putc and the like that the buffer serves / computation
        code.constructed_share | share | seconds in making std::regex, streams and the like / computation
        code.interpreted_share | share | seconds of Python in the interpreter and NumPy's brief calls / computation
        code.pickled_share    | share | seconds in packing and unpacking what processes of Python send / computation
        code.keyed_share      | share | seconds of Python in the interpreter, at dictionaries and text / computation
        code.listed_share     | share | seconds of Python in searching lists / computation
        code.regrown_share    | share | seconds of Python in copying text and lists that grow / computation
        code.decoded_share    | share | seconds of Python in reading and writing JSON / computation
        code.rowwise_share    | share | seconds of Python in pandas where the interpreter takes most / computation
        code.garbage_share    | share | seconds in making objects of Go and Java and collecting them / computation
        code.collected_share  | share | seconds in the collection of garbage of Python / computation
        code.jitted_share     | share | seconds in which numba compiles functions of Python / computation
        code.stepwise_share   | share | seconds of NumPy at lines with several operations on large arrays / computation
        code.import_share     | share | seconds in loading modules of Python / computation
        code.deep_copy_share     | share | seconds in copying objects of Python with all they hold / computation
        code.pattern_share    | share | seconds in matching regular expressions / computation
        code.lock_share       | share | seconds in taking and releasing locks (150 ns if shared) / computation
        code.lock_cost_s      | s     | the same and waiting for locks that is not due to other programs, per processor
        code.text_share       | share | seconds in turning numbers into text and back (printf, strtod, <<) / computation
        code.random_share     | share | seconds in rand, random, drand48 and the like / computation
        code.sort_share       | share | seconds in sorting by the library, without code of the program / computation
        code.string_share     | share | seconds in strcmp, strstr, memchr and the like / computation
        code.length_share     | share | seconds in strlen, strcat and the like / computation
        code.packing_share    | share | seconds in MPI_Pack and MPI_Unpack / computation
        code.subnormal_share  | share | seconds with numbers below the smallest normal one in use / computation
    """),
)
# fmt: on
