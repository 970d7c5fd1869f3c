"""How time grows with problem size and processors: models of runs, regions and gaps, and what they predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.extension.commands import Argument, CommandRegistry, DeferredFunction
from advisor.extension.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor.advice.facts import Fact
    from advisor.model.records import Advice, Finding, Gap, KnownDocument, Profile

advisor_api = 1

_ARGUMENTS = (
    Argument("paths", "runs at several sizes or numbers of ranks, or Extra-P files", Path, default="", several=True),
    Argument("--predict", "points to predict, such as 'P=1024 N=4096,8192'", several=True, metavar="POINT"),
    Argument("--level", "probability of the intervals (default: 0.8)", float, default=0.8),
    Argument("--sensitivity", "show how much each term and machine parameter matters at the predicted points", bool),
    Argument("--next", "suggest the most informative next run, as a command line", bool),
    Argument("--check", "cross-validate: leave out each point in turn and predict it", bool),
    Argument("--export", "write the equations in a language", choices=("text", "latex", "python", "c", "json")),
    Argument("--only", "only regions or gaps whose names contain this", several=True, metavar="NAME"),
    Argument("--model", "operation counts as expressions of the parameters (YAML)", Path),
    Argument("--linear", "model time as counts times costs, with the counts in the runs", bool),
    Argument(
        "--count",
        "source files whose operations to count, at the sizes of --at, running the command after --",
        Path,
        several=True,
    ),
    Argument("--at", "with --count: small sizes to count at, such as 'N=32,64,96,128 P=1,2'", metavar="POINTS"),
    Argument(
        "--price",
        "with --model: price as a formula of the bandwidth BW in bytes per second, such as '2000 + 4e-5*BW'",
        metavar="FORMULA",
    ),
    Argument("--offers", "with --model or --count: file of offers with prices, or 'bundled'", metavar="FILE"),
    Argument("--budget", "with --offers: maximum cost of the job", float, metavar="DOLLARS"),
    Argument(
        "--machine", "machine model with costs of operations; a second one to compare", several=True, metavar="MODEL"
    ),
    Argument("--plot", "plot the prediction to a PNG or SVG file", Path),
    Argument("command", "with --count: command to run; {N} and {P} stand for the values", remainder=True),
)


@hookimpl
def advisor_commands(register: CommandRegistry) -> None:
    """Register ``gapwatch scale``."""
    register(
        "scale",
        "model how time grows with size and ranks, and predict it with intervals",
        _ARGUMENTS,
        DeferredFunction("advisor_scaling.command", "run_scale"),
    )


@hookimpl
def advisor_document(path: Path) -> KnownDocument | None:
    """Return that a file holds a scaling study, in one of Extra-P's formats."""
    from advisor_scaling import extrap_files

    if not extrap_files.is_extrap_file(path):
        return None
    from advisor_scaling.command import describe_measurements

    return describe_measurements(path)


@hookimpl
def advisor_findings(profile: Profile, gaps: Sequence[Gap], history: Sequence[Advice]) -> Sequence[Finding]:
    """Return what will cost most at the scale the program is meant for, once there are runs at several sizes."""
    if not history:
        return ()
    from advisor_scaling.target_findings import build_findings

    return build_findings(profile, gaps, history)


@hookimpl
def advisor_facts() -> Sequence[Fact]:
    """Return facts about growth: how far the target is, which gaps grow towards it, and how the run does."""
    from advisor_scaling.scaling_facts import build_facts

    return build_facts()


@hookimpl
def advisor_rules() -> Sequence[Path]:
    """Return what to do about gaps that are small in this run and large where the program is meant to run."""
    return (Path(__file__).with_name("rules.yaml"),)


@hookimpl
def advisor_services() -> Mapping[str, Callable[..., object]]:
    """Return ``kernel_model``: a model of measured times that predicts with intervals."""
    return {"kernel_model": DeferredFunction("advisor_scaling.target_findings", "fit_kernel_model")}
