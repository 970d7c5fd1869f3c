"""How far a program is from what one processor can do, and why: M, MA, MAC, MACS and $ (docs/plugins/processor.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.extension.commands import Argument, CommandRegistry, DeferredFunction
from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.advice.facts import Fact
    from advisor.analysis.machines import Machine
    from advisor.model.records import Finding, Gap, Profile

SCHEMA = b"gapwatch/operations/1"
_INCORE: Final = (
    Argument("path", "output of callgrind --dump-instr=yes (a file, or a directory of ranks), or an executable", Path),
    Argument("--binary", "executable that is no longer where it ran; repeatable", Path, several=True),
    Argument("--machine", "machine model, such as that of gapwatch machines probe (default: host)", metavar="MODEL"),
    Argument("--function", "only functions whose names contain this", metavar="NAME"),
    Argument("--profile", "profile (perf, gprof …) that says which functions matter", Path),
    Argument("--report", "compiler reports: -fopt-info-vec-all=FILE, output of -Rpass", Path, several=True),
    Argument("--osaca", "also run OSACA, for one of its architectures, such as SPR or ZEN4", metavar="ARCH"),
    Argument("--write", "write the counts to FILE, beside the profile of the run: NAME.operations.json", Path),
)
_COUNT: Final = (
    Argument("source", "source file: C, C++ or free-form Fortran; repeatable", Path, several=True, required=True),
    Argument("command", "command that runs the program, in a copy of its directory", remainder=True),
    Argument(
        "--build", "command that builds the copy (default: make -B, else a single compiler call)", metavar="COMMAND"
    ),
    Argument("--root", "directory to copy (default: the common directory of the files)", Path, metavar="DIR"),
    Argument("--program", "program name in the profile (default: first word of the command)", metavar="NAME"),
    Argument("--write", "write the counts to FILE, beside the profile of the run: NAME.operations.json", Path),
)


@hookimpl
def advisor_sniff(path: Path) -> float | None:
    """Return 1 for a document of counted operations, ``gapwatch/operations/1``."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return 1.0 if SCHEMA in stream.read(2000) else None


@hookimpl
def advisor_read(path: Path) -> Profile:
    """Return the counts as a recording without times; raises ``InputError`` with the place of what is wrong."""
    from advisor_processor.operations_document import read_operations

    return read_operations(path)


@hookimpl
def advisor_commands(register: CommandRegistry) -> None:
    """Register ``count`` and ``incore``."""
    register(
        "count",
        "count the operations of the source by loop, as numbers and formulas in N: M and MA",
        _COUNT,
        DeferredFunction("advisor_processor.count_command", "run_count"),
    )
    register(
        "incore",
        "analyse the code that the compiler emitted, and how fast it can run: MAC, MACS and $",
        _INCORE,
        DeferredFunction("advisor_processor.incore_command", "run_incore"),
    )


@hookimpl
def advisor_findings(profile: Profile, gaps: Sequence[Gap], machine: Machine | None) -> Sequence[Finding]:
    """Return how much of the gap $ the misses of the caches explain."""
    if machine is None:
        return ()
    from advisor_processor.findings import build_findings

    return build_findings(profile, gaps, machine)


@hookimpl
def advisor_facts() -> Sequence[Fact]:
    """Return facts about compiled loops."""
    from advisor_processor.facts import build_facts

    return build_facts()


@hookimpl
def advisor_rules() -> Sequence[Path]:
    """Return the actions of step 3 that such facts call for."""
    return (Path(__file__).with_name("rules.yaml"),)


@hookimpl
def advisor_services() -> Mapping[str, Callable[..., object]]:
    """Return what others may ask for: to measure a machine, and to count the operations of a program."""
    return {
        "machine_probe": DeferredFunction("advisor_processor.probe.command", "run_probe"),
        "machine_import": DeferredFunction("advisor_processor.probe.benchmarks", "import_benchmarks"),
        "operation_counts": DeferredFunction("advisor_processor.count_command", "count_operations"),
        "operation_formulas": DeferredFunction("advisor_processor.symbolic.formula_document", "count_formulas"),
        "source_counts": DeferredFunction("advisor_processor.count_command", "write_counts"),
        "compiled_counts": DeferredFunction("advisor_processor.incore_command", "write_counts"),
    }
