"""What is known of the code in which a stack spends its time, without looking into it.

A reader knows of some code that it is interpreted (``StackProfile.kinds``). Functions of run-time systems and libraries
that many programs use are known by their names: of a stack the outermost one that tells decides, since what it calls is
done for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.trace.events import Role
from advisor.trace.library_functions import COUNTED_KINDS, UNOPTIMIZED, classify_library_function, is_unoptimized_access

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor.trace.callpaths.records import CallPathNode

#: Code of which is known that it is none of the kinds that are told apart.
NATIVE: Final = "native"
INTERPRETED: Final = "interpreted"
JITTED: Final = "jitted"
_TIMES_BUILT_INS: Final = "cProfile"
#: Packages whose operators and functions compute in compiled code that cProfile counts as time of their caller.
_ARRAYS: Final = re.compile(
    r"(?:^|.*[\W_])(?:numpy|scipy|numba|pandas|torch|tensorflow|jax|jaxlib|cupy|sklearn|array_function)(?:[\W_].*|$)",
    re.S,
)
#: What takes less each time, from one call to the next, is brief: the interpreter's, whatever it computes with.
_BRIEF_S: Final = 1e-5
#: numba's function that compiles another one when it is called with arguments of new types, and all its files.
_COMPILER: Final = (re.compile(r"(?:.*[/\\])?dispatcher\.py$"), "_compile_for_args")
_COMPILERS: Final = re.compile(r".*[/\\](?:numba[/\\](?!cuda[/\\]cudadrv|np[/\\]ufunc)|llvmlite[/\\]).*")
#: Files of which nothing but the name is left, whoever brought them: packages, and modules of Python's library.
_BARE: Final = re.compile(r"(\w+)\.py$")
_LIBRARY: Final = frozenset({
    *sys.stdlib_module_names, "__init__", "compiler_lock", "compiler_machinery", "dispatcher", "lowering",
    "typed_passes", "typeinfer", "untyped_passes",
})  # fmt: skip
#: Code that the program did not bring: of libraries, of Python itself, and what loads modules.
_OF_OTHERS: Final = re.compile(
    r"(?:.*[/\\])?(?:site-packages|dist-packages|lib[/\\]python\d[^/\\]*|Lib)[/\\]|<(?!string|stdin)|~"
)
_GO: Final = re.compile(
    r"(?P<garbage>runtime\.(?:mallocgc\w*|newobject|newarray|makeslice\w*|growslice|makemap\w*|makechan|raw(?:string|byteslice)\w*"
    r"|slicebytetostring|stringtoslice\w+|concatstring\w*|gc(?:Bg|Assist|Drain|Start|Mark|Write|Flush)\w*|wbBufFlush\w*|bgsweep"
    r"|bgscavenge|sweepone|deductSweepCredit|scanobject|greyobject|scanblock|markroot\w*)(?:\.\S+)?|runtime\.GC)"
    r"|(?P<lock>sync\.\(\*(?:RW)?Mutex\)\.\w+|internal/sync\.\(\*Mutex\)\.\w+)"
    r"|(?P<pattern>regexp\.(?:\(\*Regexp\)\.\w+|Match\w*|(?:Must)?Compile\w*))"
    r"|(?P<text>fmt\.(?:Sprint|Fprint|Print|Append|Errorf|Sscan|Fscan|Scan)\w*|strconv\.\w+)"
    r"|(?P<copy>runtime\.(?:memmove|memclr\w+|typedmemmove))"
    r"|(?P<random>math/rand(?:/v2)?\.(?:Int\w*|Uint\w*|Float\w+|Perm|Shuffle|Norm\w+|Exp\w+|\(\*lockedSource\)\.\w+))"
    r"|(?P<math>math\.(?:arch)?(?:[Pp]ow|[Ee]xp[12m]*|[Ll]og(?:2|10|1p)?|[Ss]in|[Cc]os|[Ss]incos|[Tt]an|[Aa]tan2?|[Hh]ypot|[Mm]od))"
)
_JAVA: Final = re.compile(
    r"(?P<pattern>java[./]util[./]regex[./].+)"
    r"|(?P<text>java[./]util[./]Formatter.*|java[./]lang[./]String[.#]format|jdk[./]internal[./]math[./].+"
    r"|java[./]lang[./](?:Double|Float|Integer|Long)[.#](?:toString|parse\w+))"
)
#: Names that profilers give built-in functions of Python, and the functions of its library that load modules, copy
#: objects with all they hold, and match patterns. Files may have lost their folders.
_PYTHON_BUILT_IN: Final = re.compile(
    r"(?P<import>[{<]built-in method (?:_imp\.\w+|imp\.\w+|marshal\.loads|io\.open_code"
    r"|builtins\.__build_class__)[}>])"
    r"|(?P<pattern>[{<]method '(?:findall|finditer|(?:full)?match|search|subn?|split)'"
    r" of '(?:re|_sre|_regex|regex)\.\w*' objects[}>])"
    r"|(?P<garbage>[{<]built-in method gc\.collect[}>])"
)
_PYTHON_FILES: Final = (
    ("import", re.compile(r"<frozen importlib\._bootstrap(?:_external)?>$"), re.compile(r".*")),
    ("deep_copy", re.compile(r"(?:.*[/\\])?copy\.py$"), re.compile(r"deepcopy|_deepcopy_\w+|_reconstruct|_keep_alive")),
    (
        "pattern",
        re.compile(
            r"(?:.*[/\\])?(?:re|re[/\\]__init__|sre_(?:parse|compile)|re[/\\]_(?:parser|compiler)|_regex_core)\.py$"
        ),
        re.compile(r".*"),
    ),
)
#: Matchers of patterns in C and C++: of the library itself, PCRE, RE2 and Oniguruma.
_PATTERN: Final = re.compile(
    r"(?:void |bool )?(?:std::__(?:cxx11::|detail::)?_(?:Executor|Scanner|Compiler)<|re2::)\S.*"
    r"|_?pcre2?_(?:exec|match|dfa_\w+)\w*|re_search_internal|sift_states_\w+|check_matching\w*|onig_(?:search|match)\w*"
)


def count_known_code(found: StackProfile, nodes: tuple[CallPathNode, ...], spent: FloatArray) -> dict[str, FloatArray]:
    """Return the seconds (nodes, threads) of computation in code of each kind; nothing where none is known."""
    kinds = _classify_stacks(found, nodes)
    if not any(kinds):
        return {}
    works = np.array([node.role == Role.USER for node in nodes])[:, None]
    everything = np.where(works, spent, 0.0)
    told = np.array([kind is not None for kind in kinds])[:, None]
    counts = {"code.all_s": everything, "code.known_s": np.where(told, everything, 0.0)}
    names = {kind for kind in kinds if kind is not None and kind not in (NATIVE, JITTED)}
    if found.tool == _TIMES_BUILT_INS:
        names.add(INTERPRETED)
    for name in sorted(names):
        counts[f"code.{name}_s"] = np.where(np.array([kind == name for kind in kinds])[:, None], everything, 0.0)
    compiled = _share_out_compiling(found, kinds, everything)
    return counts if compiled is None else {**counts, f"code.{JITTED}_s": compiled}


def _share_out_compiling(found: StackProfile, kinds: list[str | None], everything: FloatArray) -> FloatArray | None:
    """Return the seconds (nodes, threads) in which functions were compiled; None without any.

    A profile without a call tree tells how long that took in all: it passed in the compiler and in what it calls, which
    is not the program's code.
    """
    own = np.where(np.array([kind == JITTED for kind in kinds])[:, None], everything, 0.0)
    if not found.compiled_s > float(own.sum()):
        return own if own.any() else None
    others = np.where(np.array([kind in (JITTED, NATIVE) for kind in kinds])[:, None], everything, 0.0)
    return others * min(found.compiled_s / max(float(others.sum()), 1e-12), 1.0)


def _classify_stacks(found: StackProfile, nodes: tuple[CallPathNode, ...]) -> list[str | None]:
    """Return of which kind the code of each node is; None where it is not known.

    cProfile times built-in functions apart, but no operations on whole arrays, nor code that was compiled at run time:
    where there may be any, a function is known to be in the interpreter only if it is brief.
    """
    kinds: list[str | None] = []
    arrays = any(_ARRAYS.match(f"{node.file} {node.name}") for node in nodes)
    for node in nodes:
        above = kinds[node.parent] if node.parent >= 0 else None
        if above == "import" and _is_own_function(node):  # a module that starts the program's work when it is loaded
            above = None
        own = classify_function(node.name, node.file)
        if above is not None and above not in (INTERPRETED, NATIVE):
            kinds.append("garbage" if own == "garbage" else above)
        elif own is not None:
            kinds.append(own)
        elif found.tool == _TIMES_BUILT_INS and node.role == Role.USER:
            others = node.file is None or _is_of_others(node.file)
            kinds.append(NATIVE if others else INTERPRETED if not arrays or _is_brief(found, node) else None)
        else:
            kinds.append(found.kinds.get(node_key(node)))
    return kinds


def _is_of_others(file: str) -> bool:
    """Return whether a file is not the program's own: of a library, or of Python, whose tables may hold no folders."""
    bare = _BARE.match(file)
    return _OF_OTHERS.match(file) is not None or (bare is not None and bare[1] in _LIBRARY)


def is_compiling(frame: Frame) -> bool:
    """Return whether a function compiles others while the program runs."""
    return frame.name == _COMPILER[1] and frame.file is not None and _COMPILER[0].match(frame.file) is not None


def _is_own_function(node: CallPathNode) -> bool:
    return node.file is not None and node.name != "<module>" and _OF_OTHERS.match(node.file) is None


def _is_brief(found: StackProfile, node: CallPathNode) -> bool:
    """Return whether a function does little between a call and the next, of itself or by it."""
    stack = (Frame(node.name, node.file, node.line),)
    own_s, times = sum(found.spent.get(stack, ())), found.calls.get(stack, 0.0) + found.made.get(stack, 0.0)
    return own_s <= _BRIEF_S * times


def node_key(place: CallPathNode | Frame) -> tuple[str, str | None, int | None]:
    """Return what ``StackProfile.kinds`` calls a function."""
    return place.name, place.file, place.line


def classify_function(name: str, file: str | None) -> str | None:
    """Return what a function of a library or run-time system does, by its name and file; None for any other.

    A function of a program, which lies in a file of its own, may be called like one of a library.
    """
    if file is not None and file.endswith((".go", ".s")):
        return _match(_GO, name)
    if file is not None and _COMPILERS.match(file) and file.endswith(".py"):
        return JITTED
    for kind, place, function in _PYTHON_FILES:
        if file is not None and place.match(file) and function.fullmatch(name):
            return kind
    if file is not None and not file.startswith(("~", "<built-in>", "[")):
        return _match(_JAVA, name)
    if is_unoptimized_access(name):
        return UNOPTIMIZED
    found = _match(_PYTHON_BUILT_IN, name) or _match(_JAVA, name) or _match(_GO, name)
    if found is None and file is None:
        library = classify_library_function(name)
        found = COUNTED_KINDS.get(library) if library else None
        return "pattern" if found is None and _PATTERN.match(name) else found
    return found


def _match(pattern: re.Pattern[str], name: str) -> str | None:
    found = pattern.fullmatch(name)
    groups: Mapping[str, str | None] = found.groupdict() if found else {}
    return next((kind for kind, text in groups.items() if text is not None), None)
