"""``gapwatch couple``: run the experiment, or what is left of it, and report on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.errors import AdvisorError, InputError, PluginError, UsageError
from advisor.model.reports import Code, Report, Text
from advisor_coupling import experiment, forecasts, keeping, manifest, report, results, transitions
from advisor_coupling.cases import SECONDS
from advisor_coupling.model import model

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from advisor.analysis.machines import Machine
    from advisor.extension.commands import Services
    from advisor_coupling.manifest import Manifest
    from advisor_coupling.results import Document


def run(args: Namespace, services: Services) -> Report:
    """Return the report on an experiment; what it lacks is run first, unless the results alone are named."""
    path: Path = args.manifest
    if path.suffix == ".json":
        return _report(results.read(path), args, services)
    plan = manifest.load(path)
    kept = args.results or path.with_name(f"{path.stem}{keeping.SUFFIX}")
    if args.dry_run:
        return _listed(plan, path, kept)
    document = _measured(plan, path, kept, services)
    _keep(document, services)
    return _report(document, args, services)


def _keep(document: Document, services: Services) -> None:
    """Keep the results where advice on the program finds them."""
    folder = services.folder("data") / keeping.FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        results.write(document, folder / keeping.file_name(document.program))
    except OSError as error:
        raise AdvisorError(f"{folder}: {error.strerror}") from error


def _measured(plan: Manifest, path: Path, kept: Path, services: Services) -> Document:
    """Return the whole experiment."""
    try:
        with experiment.locked(path):
            document = experiment.opened(plan, path, kept, *_here(services))
            total = len(experiment.steps(plan, len(document.cases)))
            with services.working(f"measuring {plan.program}", total) as done:
                return experiment.carry_out(plan, path, document, kept, done)
    except OSError as error:
        raise InputError(kept, error.strerror or str(error)) from error


def _here(services: Services) -> tuple[str, Mapping[str, results.CacheRecord]]:
    """Return name and caches of this host, nothing where it does not tell."""
    try:
        machine = services.machine(None)
    except AdvisorError:
        return "", {}
    return machine.name, _caches(machine)


def _caches(machine: Machine) -> dict[str, results.CacheRecord]:
    return {
        str(name): results.CacheRecord(float(cache.size), int(cache.shared_by or 1))
        for name, cache in machine.caches.items()
        if cache.size
    }


def _listed(plan: Manifest, path: Path, kept: Path) -> Report:
    """Return what an experiment would run."""
    document = experiment.opened(plan, path, kept, "", {})
    left = experiment.left(plan, document)
    shown = [experiment.shown(plan, path, document, step) for step in left]
    words = f"{len(left)} of {len(experiment.steps(plan, len(document.cases)))} runs are left to do."
    more = f"\n# and {len(shown) - 40} more" if len(shown) > 40 else ""
    return Report(f"Experiment of {plan.program}", (Text(words), Code("", "sh", "\n".join(shown[:40]) + more)))


def _report(document: Document, args: Namespace, services: Services) -> Report:
    """Return the report on what was measured."""
    found = results.cases(document)
    if not found:
        raise UsageError("nothing to report: no case has all its kernels measured by themselves")
    caches = _caches(services.machine(args.machine)) if args.machine else dict(document.caches)
    models = {
        metric: [model(case, metric) for case in found if metric.name in case.samples]
        for metric in results.metrics(document)
    }
    by_processors = {case.processors: transitions.levels(caches, case.processors) for case in found}
    targets = forecasts.targets(args.predict or (), found)
    seconds = next(ones for metric, ones in models.items() if metric.name == SECONDS)
    ahead = forecasts.forecasts(seconds, targets, document, caches, _kernel_models(services) if targets else None)
    return report.made(document, models, by_processors, ahead)


def _kernel_models(services: Services) -> Callable[..., object] | None:
    """Return the maker of kernel models that another plugin offers, None where there is none."""
    try:
        return services.service("kernel_model")
    except PluginError:
        return None
