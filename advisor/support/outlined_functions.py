"""Names of the bodies of parallel regions, which compilers make functions of their own."""

from __future__ import annotations

import re
from typing import Final

#: ``solve._omp_fn.0`` of gcc, ``solve.omp_outlined`` and ``.omp_outlined.`` of LLVM; of C++ with parameters, and
#: ``[clone ._omp_fn.0]`` behind them.
_BODY: Final = re.compile(r"(?P<function>.*?)(?:\[clone )?(?P<body>\._omp_fn\.\d+|[._]{1,2}omp_outlined[.\w]*)\]?")
_PARAMETERS: Final = re.compile(r"\(.*")


def is_outlined(name: str) -> bool:
    """Return whether a function is the body of a parallel region."""
    return _BODY.fullmatch(name) is not None


def name_parallel_body(name: str) -> str:
    """Return the name of the body of a parallel region without parameters; other names stay as they are."""
    found = _BODY.fullmatch(name)
    return name if found is None else _PARAMETERS.sub("", found["function"]).strip() + found["body"]
