"""What the commands of this plugin take."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from advisor.extension.commands import Argument

INCORE: Final = (
    Argument("path", "what callgrind --dump-instr=yes wrote (a file, or a directory of ranks), or a program", Path),
    Argument("--binary", "a program that is no longer where it ran; may be given again", Path, several=True),
    Argument("--machine", "the machine model, such as the one of gapwatch machines probe (default: host)"),
    Argument("--function", "only functions whose names hold this"),
    Argument("--profile", "a profile (perf, gprof …) that says which functions of a program matter", Path),
    Argument("--report", "what the compiler said: -fopt-info-vec-all=FILE, -Rpass output; several", Path, several=True),
    Argument("--osaca", "ask OSACA as well, for this architecture of its list, such as SPR or ZEN4"),
    Argument("--write", "write the counts here, beside the profile of the run: NAME.operations.json", Path),
)

COUNT: Final = (
    Argument(
        "source", "a file of C, C++ or free-form Fortran; several may be given", Path, several=True, required=True
    ),
    Argument("command", "what runs the program, in a copy of its directory", remainder=True),
    Argument("--build", "the command that builds the copy (default: make -B, else one compiler for all files)"),
    Argument("--root", "the directory to copy (default: the one that holds all files)", Path),
    Argument("--program", "the program's name in the profile (default: the first word of the command)"),
    Argument("--write", "write the counts here, beside the profile of the run: NAME.operations.json", Path),
)
