"""Carries out ``gapwatch replay``: traces are read, replayed and reported on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model import units
from advisor.model.errors import UsageError
from advisor.model.reports import Part, Report
from advisor_simulation.replay import (
    acceptance,
    calibration,
    conversion,
    costs,
    drawing,
    network_options,
    outcome,
    outcome_report,
    piecewise,
    study,
    study_report,
    sweeps,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices
    from advisor_simulation.replay.network import Network
    from advisor_simulation.replay.program import Program

#: Points of ``--fit`` where ``--sweep`` names no number; the paper had more than 200.
FIT_POINTS = 200
_NO_TIMES = "the recording holds no times of calls; name a network: --latency, --bandwidth, --ideal"


def build_report(args: Namespace, services: CommandServices) -> Report:
    """Return the report on the traces; raises ``UsageError`` for options that do not go together."""
    _check_combinations(args)
    if args.fit:
        return _report_fit(args, services)
    if len(args.paths) != 1:
        raise UsageError("name one trace; several are for --fit")
    path = args.paths[0]
    with services.show_progress("reading the trace"):
        recorded = read_program(path, services)
    network_options.check_network(network_options.computation_network(args), recorded)
    if args.accept:
        return _report_acceptance(args, services, recorded)
    parts = _build_parts(args, services, recorded)
    title = f"Replay of {recorded.title or path.name} on {units.format_count(recorded.ranks, 'rank')}"
    return Report(title, tuple(parts))


def _check_combinations(args: Namespace) -> None:
    """Raise ``UsageError`` for options that exclude each other."""
    if args.sweep is not None and args.sweep < 1:
        raise UsageError("--sweep needs at least 1 point")
    asked = [f"--{name}" for name in ("fit", "sweep", "costs", "calibrate", "accept") if getattr(args, name)]
    if args.picture and asked:
        raise UsageError("--picture draws a single replay: leave out --fit, --sweep, --costs, --calibrate and --accept")
    if args.picture and args.picture.suffix != ".svg":
        raise UsageError(f"--picture {args.picture}: the picture is an SVG file; give it a name that ends in .svg")
    if len(asked) > 1 and asked != ["--fit", "--sweep"]:
        raise UsageError(f"{' and '.join(asked)} are answers to different questions: ask one at a time")
    if args.export and asked not in ([], ["--sweep"]):
        raise UsageError(f"--export writes the replayed run, or the points of --sweep: leave out {asked[0]}")
    _check_owner(args, "fit", ("predict",))
    if args.tolerance is not None and not (args.accept and args.tolerance >= 0.0):
        raise UsageError("--tolerance is a share such as 0.1, and belongs to --accept")
    _check_owner(args, "sweep", ("grid", "cluster", "cpu_ratios"))
    if not args.fit:
        _check_owner(args, "sweep", ("latencies", "bandwidths"))
    given = [name for name in ("latency", "bandwidth", "machine", "dimemas") if getattr(args, name)]
    if args.ideal and given:
        raise UsageError(f"--ideal is a network of its own: leave out --{given[0]}")


def _check_owner(args: Namespace, owner: str, names: Sequence[str]) -> None:
    for name in names:
        if getattr(args, name) and not getattr(args, owner):
            raise UsageError(f"--{name.replace('_', '-')} belongs to --{owner}")


def read_program(path: Path, services: CommandServices) -> Program:
    """Return the program recorded at ``path``; raises ``InputError``."""
    return conversion.convert_trace(services.read_trace(path))


def _build_parts(args: Namespace, services: CommandServices, recorded: Program) -> list[Part]:
    if args.calibrate:
        if outcome.recorded_time_s(recorded) is None:
            raise UsageError("--calibrate needs recorded times of calls; this recording holds none")
        with services.show_progress("calibrating") as done:
            return study_report.build_calibration_parts(
                calibration.calibrate_network(recorded, _base_network(args, services), done)
            )
    if args.costs:
        return _report_costs(args, services, recorded)
    if args.sweep:
        return _report_sweep(args, services, recorded)
    return _replay_once(args, services, recorded)


def _report_acceptance(args: Namespace, services: CommandServices, recorded: Program) -> Report:
    network = network_options.build_network(args, services)
    if network is None:
        raise UsageError("--accept needs the network that is promised: --machine NAME, or --latency and --bandwidth")
    tolerance = acceptance.TOLERANCE if args.tolerance is None else args.tolerance
    with services.show_progress("replaying on the network that is promised"):
        found = acceptance.judge_machine(recorded, network, tolerance)
    return acceptance.build_report(
        found, f"Acceptance of {args.machine or 'the network'} by {recorded.title or 'a run'}"
    )


def _base_network(args: Namespace, services: CommandServices) -> Network:
    """Return the network of the options, for what looks for latency and bandwidth itself one of any speed."""
    return network_options.build_network(args, services) or network_options.computation_network(args)


def _replay_once(args: Namespace, services: CommandServices, recorded: Program) -> list[Part]:
    network = network_options.build_network(args, services)
    with services.show_progress("replaying"):
        if network is None:
            if outcome.recorded_time_s(recorded) is None:
                raise UsageError(_NO_TIMES)
            found = outcome.replay_recorded(recorded, network_options.computation_network(args))
        else:
            found = outcome.replay_program(recorded, network)
    parts = outcome_report.build_parts(found, as_recorded=network is None)
    if args.export:
        parts.append(outcome_report.export_profile(found, args.export))
    if args.picture:
        parts.append(drawing.write_picture(found, args.picture))
    return parts


def _report_costs(args: Namespace, services: CommandServices, recorded: Program) -> list[Part]:
    with services.show_progress("replaying on ideal networks"):
        found = costs.compute_costs(recorded)
        network = network_options.build_network(args, services)
        if network is None and found is None:
            raise UsageError(_NO_TIMES)
        if network is None:
            network = calibration.calibrate_network(recorded, network_options.computation_network(args)).network
        shares = costs.find_path_shares(recorded, network)
        enough = costs.find_enough_latency(recorded, network), costs.find_enough_bandwidth(recorded, network)
    return study_report.build_cost_parts(found, network, shares, enough)


def _report_sweep(args: Namespace, services: CommandServices, recorded: Program) -> list[Part]:
    base, ranges = _base_network(args, services), _parse_ranges(args)
    points = (
        sweeps.make_grid_points(base, ranges, args.sweep)
        if args.grid
        else sweeps.make_random_points(base, ranges, args.sweep, args.seed)
    )
    with services.show_progress("replaying", len(points)) as done:
        if args.cluster:
            found = sweeps.sweep_on_cluster(recorded, points, args.cluster, done)
        else:
            found = sweeps.sweep_times(recorded, points, done)
    exact = None
    if not base.is_contended and ranges.cpu_ratios[0] == ranges.cpu_ratios[1]:
        gaps = 1.0 / ranges.bandwidths[1], 1.0 / ranges.bandwidths[0]
        fixed = replace(base, cpu_ratio=points[0].cpu_ratio)
        with services.show_progress("looking for critical paths") as done:
            exact = piecewise.explore_planes(recorded, fixed, ranges.latencies_s, gaps, done=done)
    parts = study_report.build_sweep_parts(points, found, exact, study.find_plane(points, found))
    return [*parts, study_report.write_points(points, found, args.export)] if args.export else parts


def _report_fit(args: Namespace, services: CommandServices) -> Report:
    if args.predict and min(args.predict) < 1:
        raise UsageError("--predict takes numbers of ranks from 1 on")
    if args.predict and len(args.paths) < 2:
        raise UsageError("--predict needs traces at two numbers of ranks at least: one tells nothing of others")
    programs = []
    with services.show_progress("reading traces", len(args.paths)) as done:
        for number, path in enumerate(args.paths):
            programs.append(read_program(path, services))
            done(number + 1)
    if not programs:
        raise UsageError("name traces at several numbers of ranks for --fit")
    base, ranges = _base_network(args, services), _parse_ranges(args)
    with services.show_progress("replaying and fitting", len(programs)) as done:
        found = study.run_study(programs, base, ranges, args.sweep or FIT_POINTS, args.seed, done)
    at = network_options.build_network(args, services)
    parts = study_report.build_fit_parts(found, args.predict or (), at)
    return Report(
        f"Models of {programs[0].title or args.paths[0].name} over ranks, latency and bandwidth", tuple(parts)
    )


def _parse_ranges(args: Namespace) -> sweeps.Ranges:
    """Return the ranges of the options; raises ``UsageError`` for what is no range."""
    latencies = _parse_range(args.latencies, "time", "--latencies") or sweeps.LATENCIES
    bandwidths = _parse_range(args.bandwidths, "bandwidth", "--bandwidths") or sweeps.BANDWIDTHS
    if bandwidths[0] <= 0:
        raise UsageError("--bandwidths must be above 0")
    return sweeps.Ranges(latencies, bandwidths, _parse_numbers(args.cpu_ratios) or (1.0, 1.0))


def _parse_range(text: str | None, dimension: str, option: str) -> tuple[float, float] | None:
    if text is None:
        return None
    low, dots, high = text.partition("..")
    wanted = f"{option} {text}: expected two values from low to high, such as '1 us..100 us'"
    if not dots:
        raise UsageError(wanted)
    try:
        zero = low.strip() == "0"
        ends = 0.0 if zero else units.parse_quantity(low, dimension), units.parse_quantity(high, dimension)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
    if not 0 <= ends[0] <= ends[1]:
        raise UsageError(wanted)
    return ends


def _parse_numbers(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    low, _, high = text.partition("..")
    try:
        ends = float(low), float(high or low)
    except ValueError:
        raise UsageError(f"--cpu-ratios {text}: expected numbers such as 0.5..1") from None
    if not 0 <= ends[0] <= ends[1] < float("inf"):
        raise UsageError(f"--cpu-ratios {text}: expected two numbers from low to high")
    return ends
