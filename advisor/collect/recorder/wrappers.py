"""The wrappers of the functions of one MPI library, written as C from what its ``mpi.h`` declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from advisor.collect.recorder.semantics import meaning_of
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

_ATTRIBUTE: Final = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
_FUNCTION: Final = re.compile(r"(?<![\w*])int\s+(MPI_[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")
_NAME: Final = re.compile(r"(\w+)\s*((?:\[[^\]]*\]\s*)*)$")


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function that returns an ``int``: its name, and the declaration of each parameter, named ``a0``, ``a1`` …"""

    name: str
    parameters: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The names of the parameters, as a call passes them on."""
        return ", ".join(f"a{number}" for number in range(len(self.parameters)))

    @property
    def declaration(self) -> str:
        """The parameters as a definition lists them."""
        return ", ".join(self.parameters) or "void"


#: Functions that talk to nobody, and still say what becomes of requests.
#: Between handles of languages: they take nanoseconds, and bindings call them for each argument.
_CONVERSION: Final = re.compile(r"_(c2f|f2c|c2f08|f082c|f082f|f2f08|toint|fromint)$")
_LOCAL: Final = re.compile(r"MPI_(P?(Send|Recv|send|recv)|[BSR]send)_init(_c)?|MPI_Request_free|MPI_Cancel")
#: Spellings of a Fortran binding: the common ones, and those of the module mpi_f08.
_SPELLINGS: Final = ("{}_", "{}__", "{}_f08_", "{}_f08ts_")
_WRAPPER: Final = """int {name}({declaration}) {{
  static void *real;
  int (*call)({declaration}) = ({cast})pmpi(&real, "P{name}");
  void *caller = CALLER;
  struct gw_record *r = {enter}({number}, caller);
{before}  int code = call({arguments});
  gw_returned(r);
{after}  {leave}
  return code;
}}
int P{name}({declaration}) __attribute__((alias("{name}")));
"""
_INIT: Final = """int {name}({declaration}) {{
  static void *real;
  int (*call)({declaration}) = ({cast})pmpi(&real, "P{name}");
  void *caller = CALLER;
  uint64_t begin = gw_now();
  gw_depth++;
  int code = call({arguments});
  if (!code) {begin};
  gw_depth--;
  init_record({number}, caller, begin);
  return code;
}}
int P{name}({declaration}) __attribute__((alias("{name}")));
"""
_FINALIZE: Final = """int {name}({declaration}) {{
  static void *real;
  int (*call)({declaration}) = ({cast})pmpi(&real, "P{name}");
  struct gw_record *r = gw_enter({number}, CALLER);
  int code = call({arguments});
  gw_leave(r);
  gw_stop();
  return code;
}}
int P{name}({declaration}) __attribute__((alias("{name}")));
"""
#: What begins recording behind the functions that initialize MPI.
_BEGINS: Final = {
    "MPI_Init": "begin_world()",
    "MPI_Init_thread": "begin_world()",
    "MPI_Session_init": "begin_session(*a2)",
}
_HEAD: Final = """#include "mpi.c"
#define CALLER __extension__({ void *c = gw_fortran_caller ? gw_fortran_caller : __builtin_return_address(0); \\
                               gw_fortran_caller = NULL; c; })
"""


def wrapped_functions(header: str) -> tuple[Prototype, ...]:
    """Return the functions of a preprocessed ``mpi.h`` that are recorded: those that talk to others or to files."""
    return tuple(one for one in parse_prototypes(header) if _is_recorded(one.name))


def _is_recorded(name: str) -> bool:
    if _CONVERSION.search(name):
        return False
    found = classify_region(name.removesuffix("_c"), paradigm="MPI")[1]
    return found not in (Role.LOCAL, Role.USER) or _LOCAL.fullmatch(name) is not None


def write_wrappers(functions: tuple[Prototype, ...]) -> str:
    """Return C that defines the functions; numbers follow those of the other functions."""
    return _HEAD + "\n".join(_wrapper(one, f"GW_FIRST_OF_MPI + {number}") for number, one in enumerate(functions))


def _wrapper(function: Prototype, number: str) -> str:
    parts = {
        "name": function.name,
        "declaration": function.declaration,
        "arguments": function.arguments,
        "number": number,
        "cast": f"int (*)({function.declaration})",
    }
    if function.name in _BEGINS:
        return _INIT.format(**parts, begin=_BEGINS[function.name])
    if function.name == "MPI_Finalize":
        return _FINALIZE.format(**parts)
    meaning = meaning_of(function.name, function.parameters)
    brief = "idle" in meaning.after
    parts["enter"] = "gw_enter_brief" if brief else "gw_enter"
    parts["leave"] = "if (idle) gw_leave_idle(r); else gw_leave_returned(r);" if brief else "gw_leave_returned(r);"
    before, after = (_in_c(text) for text in (meaning.before, meaning.after))
    first = "  int idle = 0;\n" if brief else ""
    if meaning.status is not None:
        own = (
            f"MPI_Status own_status; if (r && a{meaning.status} == MPI_STATUS_IGNORE) a{meaning.status} = &own_status;"
        )
        before = f"  {own}\n{before}"
    done = f"  if (r && !code) {{\n  {after}  }}\n" if after else ""
    return _WRAPPER.format(**parts, before=first + before, after=done)


def _in_c(text: str) -> str:
    return re.sub(r"\$(\d+)", r"a\1", f"  {text}\n") if text else ""


def fortran_bindings(functions: tuple[Prototype, ...]) -> tuple[str, ...]:
    """Return the names by which Fortran programs may call the functions."""
    names = (function.name.lower() for function in functions if not function.name.endswith("_c"))
    return tuple(spelling.format(name) for name in names for spelling in _SPELLINGS)


def parse_prototypes(text: str) -> tuple[Prototype, ...]:
    """Return the functions that a preprocessed header declares; those with a variable number of parameters are left
    out, and so is what is no function of the interface (``MPI_T_``, handlers and callbacks).
    """
    found: dict[str, Prototype] = {}
    for name, inside in _FUNCTION.findall(_ATTRIBUTE.sub(" ", text)):
        if name in found or "..." in inside or name.startswith("MPI_T_") or name.endswith(("_fn", "_FN")):
            continue
        declared = [part.strip() for part in _split_parameters(inside)]
        if declared == ["void"] or declared == [""]:
            declared = []
        found[name] = Prototype(name, tuple(_rename(part, number) for number, part in enumerate(declared)))
    return tuple(found.values())


def _split_parameters(text: str) -> list[str]:
    """Return the parameters of a list, which are divided by commas outside of brackets."""
    parts, depth = [""], 0
    for char in " ".join(text.split()):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _rename(parameter: str, number: int) -> str:
    """Return a parameter with the name that wrappers use for it."""
    found = _NAME.search(parameter)
    words = re.findall(r"\w+", parameter)
    unnamed = found is None or len([word for word in words if word not in ("const", "struct", "unsigned")]) < 2
    if found is None or unnamed:
        return f"{parameter} a{number}"
    return f"{parameter[: found.start(1)]}a{number}{found[2]}"
