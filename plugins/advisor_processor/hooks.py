"""How far a program is from what one processor can do, and why: M, MA, MAC, MACS and $ (docs/plugins/processor.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from argparse import Namespace
    from contextlib import AbstractContextManager

    from advisor.advice.facts import Fact
    from advisor.analysis.machines import Machine
    from advisor.analysis.machines.records import Measurement
    from advisor.extension.commands import CommandRegistry, CommandServices
    from advisor.model.records import Finding, Gap, Profile
    from advisor.model.reports import Report

SCHEMA = b"gapwatch/operations/1"


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
    from advisor_processor import arguments

    register(
        "count",
        "count the operations of the source by loop, as numbers and formulas in N: M and MA",
        arguments.COUNT,
        _run_count,
    )

    register(
        "incore",
        "analyse the code that the compiler emitted, and how fast it can run: MAC, MACS and $",
        arguments.INCORE,
        _run_incore,
    )


def _run_count(args: Namespace, services: CommandServices) -> Report:
    from advisor_processor import count_command

    return count_command.run_count(args, services)


def _run_incore(args: Namespace, services: CommandServices) -> Report:
    from advisor_processor import incore_command

    return incore_command.run_incore(args, services)


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
        "machine_probe": _run_probe,
        "machine_import": _import_benchmarks,
        "operation_counts": _count_operations,
        "operation_formulas": _count_formulas,
        "source_counts": _write_source_counts,
        "compiled_counts": _write_compiled_counts,
    }


def _import_benchmarks(found: Sequence[Measurement], name: str, base: Machine | None, folder: Path) -> Report:
    """Write a machine model with what benchmarks measured, and return what that was."""
    from advisor_processor.probe.benchmarks import import_benchmarks

    return import_benchmarks(found, name, base, folder)


def _write_source_counts(
    sources: Sequence[Path], command: Sequence[str], build: str, root: Path, program: str, target: Path
) -> tuple[str, ...]:
    """Write the operations of a program's source beside its run; return what could not be understood of it."""
    from advisor_processor.count_command import write_counts

    return write_counts(sources, command, build, root, program, target)


def _write_compiled_counts(recording: Path, machine: Machine, target: Path) -> tuple[str, ...]:
    """Write what callgrind recorded at ``recording``, scheduled on ``machine``; return what could not be looked at."""
    from advisor_processor.incore_command import write_counts

    return write_counts(recording, machine, target)


def _count_operations(
    sources: Sequence[Path], command: Sequence[str], build: str | None = None, root: Path | None = None
) -> dict[str, object]:
    from advisor_processor.count_command import count_operations

    return count_operations(sources, command, build, root)


def _count_formulas(
    sources: Sequence[Path],
    template: Sequence[str],
    points: Sequence[Mapping[str, float]],
    build: str | None = None,
    root: Path | None = None,
    show: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    from advisor_processor.symbolic.formula_document import count_formulas

    return count_formulas(sources, template, points, build, root, show)


def _run_probe(
    name: str, folder: Path, working: Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
) -> Report:
    from advisor_processor.probe.command import run_probe

    return run_probe(name, folder, working)
