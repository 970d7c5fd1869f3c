"""What programs say in their outputs about how they were started or built: hints of their own on how to be faster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.model.records import OLDER_BUILD, OWN_ADVICE, Note

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

#: Lines of outputs (of GROMACS, VASP, Quantum ESPRESSO), and what they come down to, with the groups of the line.
_HINTS: Final = (
    (
        re.compile(r"WARNING: Oversubscribing the available (\d{1,6}) logical CPU cores with (\d{1,6}) threads"),
        "{1} threads share {0} logical cores, which costs a lot: start {0} (-nt {0})",
    ),
    (
        re.compile(r"NOTE: The number of threads is not equal to the number of \(logical\) cores"),
        "threads are not pinned to cores, which can cost a lot: run it with -pin on",
    ),
    (
        re.compile(r"\| +N(?:CORE|PAR) *= *4 - approx SQRT\( *number of cores"),
        "NCORE = 1 may be grossly inefficient: set it in INCAR to between 4 and the square root of the number of cores"
        " (not for GW and RPA)",
    ),
    (
        re.compile(r" *suboptimal parallelization: some (?:nodes|processors) have no k-points"),
        "some pools have no k-points: run it with fewer of them (-nk)",
    ),
)
_SUPPORTED: Final = re.compile(r"Highest SIMD level (?:supported|requested) by all nodes in run: +([\w.]+)")
_BUILT: Final = re.compile(r"SIMD instructions selected at (?:GROMACS )?compile time: +([\w.]+)")
#: Wider instructions are not always faster: only where GROMACS says so as well.
_OTHER_HARDWARE: Final = re.compile(r"This program was compiled for different hardware than you are running on")


def find_own_advice(text: PlainText) -> tuple[Note, ...]:
    """Return what the output at ``text`` says about how its run could be faster, each hint once."""
    told = [words.format(*found.groups()) for hint, words in _HINTS if (found := text.find_match(hint)) is not None]
    supported, built = text.find_match(_SUPPORTED), text.find_match(_BUILT)
    if supported and built and text.find_match(_OTHER_HARDWARE):
        level = supported[1]
        words = f"compiled for {built[1]}, but the processors have {level}: build it with -DGMX_SIMD={level}"
        return (*(Note(OWN_ADVICE, words) for words in told), Note(OLDER_BUILD, words))
    return tuple(Note(OWN_ADVICE, words) for words in told)
