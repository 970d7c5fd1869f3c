"""What the commands of this plugin take."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from advisor.extension.commands import Argument

INCORE: Final = (
    Argument("path", "output of callgrind --dump-instr=yes (a file, or a directory of ranks), or an executable", Path),
    Argument("--binary", "executable that is no longer where it ran; repeatable", Path, several=True),
    Argument("--machine", "machine model, such as that of gapwatch machines probe (default: host)", metavar="MODEL"),
    Argument("--function", "only functions whose names contain this", metavar="NAME"),
    Argument("--profile", "profile (perf, gprof …) that says which functions matter", Path),
    Argument("--report", "compiler reports: -fopt-info-vec-all=FILE, output of -Rpass", Path, several=True),
    Argument("--osaca", "also run OSACA, for one of its architectures, such as SPR or ZEN4", metavar="ARCH"),
    Argument("--write", "write the counts to FILE, beside the profile of the run: NAME.operations.json", Path),
)

COUNT: Final = (
    Argument("source", "source file: C, C++ or free-form Fortran; repeatable", Path, several=True, required=True),
    Argument("command", "command that runs the program, in a copy of its directory", remainder=True),
    Argument(
        "--build", "command that builds the copy (default: make -B, else a single compiler call)", metavar="COMMAND"
    ),
    Argument("--root", "directory to copy (default: the common directory of the files)", Path, metavar="DIR"),
    Argument("--program", "program name in the profile (default: first word of the command)", metavar="NAME"),
    Argument("--write", "write the counts to FILE, beside the profile of the run: NAME.operations.json", Path),
)
