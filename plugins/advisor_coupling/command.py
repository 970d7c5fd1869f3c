"""``gapwatch couple``: run the experiment, or what is left of it, and report on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import AdvisorError, InputError, PluginError, UsageError
from advisor.model.reports import Code, Report, Text
from advisor_coupling import experiment, forecasts, manifest, report, result_files, results, transitions
from advisor_coupling.cases import SECONDS
from advisor_coupling.model import build_case_model

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.analysis.machines import Machine
    from advisor.extension.commands import CommandServices
    from advisor_coupling.manifest import Manifest
    from advisor_coupling.results import ExperimentDocument


def run_couple(args: Namespace, services: CommandServices) -> Report:
    """Return the report on an experiment; what it lacks is run first, unless the results alone are named."""
    path: Path = args.manifest
    if path.suffix == ".json":
        return _build_report(results.read_results(path), args, services)
    plan = manifest.read_manifest(path)
    kept = args.results or path.with_name(f"{path.stem}{result_files.SUFFIX}")
    if args.dry_run:
        return _build_step_list(plan, path, kept)
    document = _run_experiment(plan, path, kept, services)
    # keep the results where advice on the program finds them
    folder = services.user_folder("data") / result_files.FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        results.write_results(document, folder / result_files.file_name(document.program))
    except OSError as error:
        raise AdvisorError(f"{folder}: {error.strerror}") from error
    return _build_report(document, args, services)


def _run_experiment(plan: Manifest, path: Path, kept: Path, services: CommandServices) -> ExperimentDocument:
    """Return the whole experiment."""
    try:
        with experiment.lock_experiment(path):
            document = experiment.open_experiment(plan, path, kept, *_describe_host(services))
            total = len(experiment.list_steps(plan, len(document.cases)))
            with services.show_progress(f"measuring {plan.program}", total) as done:
                return experiment.run_steps(plan, path, document, kept, done)
    except OSError as error:
        raise InputError(kept, error.strerror or str(error)) from error


def _describe_host(services: CommandServices) -> tuple[str, Mapping[str, results.CacheRecord]]:
    """Return name and caches of this host, nothing where it does not tell."""
    try:
        machine = services.load_machine(None)
    except AdvisorError:
        return "", {}
    return machine.name, _collect_caches(machine)


def _collect_caches(machine: Machine) -> dict[str, results.CacheRecord]:
    return {
        str(name): results.CacheRecord(float(cache.size), int(cache.shared_by or 1))
        for name, cache in machine.caches.items()
        if cache.size
    }


def _build_step_list(plan: Manifest, path: Path, kept: Path) -> Report:
    """Return what an experiment would run."""
    document = experiment.open_experiment(plan, path, kept, "", {})
    left = experiment.remaining_steps(plan, document)
    shown = [experiment.format_step(plan, path, document, step) for step in left]
    words = f"{len(left)} of {len(experiment.list_steps(plan, len(document.cases)))} runs are left to do."
    more = f"\n# and {len(shown) - 40} more" if len(shown) > 40 else ""
    return Report(f"Experiment of {plan.program}", (Text(words), Code("", "sh", "\n".join(shown[:40]) + more)))


def _build_report(document: ExperimentDocument, args: Namespace, services: CommandServices) -> Report:
    """Return the report on what was measured."""
    found = results.build_cases(document)
    if not found:
        raise UsageError("nothing to report: no case has all its kernels measured by themselves")
    caches = _collect_caches(services.load_machine(args.machine)) if args.machine else dict(document.caches)
    models = {
        metric: [build_case_model(case, metric) for case in found if metric.name in case.samples]
        for metric in results.list_metrics(document)
    }
    by_processors = {case.processors: transitions.build_cache_levels(caches, case.processors) for case in found}
    targets = forecasts.parse_targets(args.predict or (), found)
    seconds = next(ones for metric, ones in models.items() if metric.name == SECONDS)
    ahead = forecasts.compute_forecasts(
        seconds, targets, document, caches, _find_kernel_modeller(services) if targets else None
    )
    return report.build_report(document, models, by_processors, ahead)


def _find_kernel_modeller(services: CommandServices) -> Callable[..., object] | None:
    """Return the maker of kernel models that another plugin offers, None where there is none."""
    try:
        return services.find_service("kernel_model")
    except PluginError:
        return None
