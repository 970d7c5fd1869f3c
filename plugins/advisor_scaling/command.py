"""``gapwatch scale``: from paths and options to a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import UsageError
from advisor.model.records import FloatArray, KnownDocument, Profile
from advisor.model.reports import Code, Column, Part, Report, Series, Table, Text
from advisor_scaling import collect, extrap_files, locality, scale_sections, study, targets

if TYPE_CHECKING:
    from argparse import Namespace

    from advisor.extension.commands import CommandServices
    from advisor_scaling.linear.application import ApplicationModel
    from advisor_scaling.study import ScalingStudy


def run_scale(args: Namespace, services: CommandServices) -> Report:
    """Return models, predictions and advice on the next run for what lies at the paths."""
    if not 0.0 < args.level < 1.0:
        raise UsageError("--level is a probability between 0 and 1, such as 0.8")
    _check_options(args)
    studies = [select_named_series(each, args.only or ()) for each in read_studies(args.paths or (), services)]
    if args.plot and len(studies) > 1:
        raise UsageError("--plot draws one study; name runs of one program, or a file with one metric")
    parts: list[Part] = []
    for each in studies:
        parts += build_study_parts(each, args, services)
    if (args.model or args.count) and not studies:
        parts += build_linear_parts(None, args, services)
    if not parts:
        raise UsageError("name runs, a file of Extra-P, or an application model by --model")
    return Report(f"Scaling of {', '.join(each.program for each in studies) or 'a model'}", tuple(parts))


def _check_options(args: Namespace) -> None:
    """Raise ``UsageError`` for options that would be ignored."""
    counted = bool(args.model or args.linear or args.count)
    for name, needed, given in (
        ("at", "--count", args.count), ("command", "--count", args.count),
        ("price", "--model, --count or --linear", counted),
        ("offers", "--model or --count", args.model or args.count),
        ("budget", "--model or --count", args.model or args.count),
        ("machine", "--model, --count or --linear", counted),
        ("plot", "runs", args.paths), ("next", "runs", args.paths), ("check", "runs", args.paths),
        ("only", "runs", args.paths), ("linear", "runs", args.paths),
    ):  # fmt: skip
        if getattr(args, name) and not given:
            what = "a command behind --" if name == "command" else f"--{name}"
            raise UsageError(f"{what} needs {needed}")


def read_studies(paths: Sequence[Path], services: CommandServices) -> list[ScalingStudy]:
    """Return the studies of all paths: files of Extra-P each for itself, the runs of the others together."""
    files = [path for path in paths if extrap_files.is_extrap_file(path)]
    studies = [one for path in files for one in collect.from_measurements(extrap_files.read_measurements(path), path)]
    others = [path for path in paths if path not in files]
    profiles: list[Profile] = []
    with services.show_progress("reading runs", len(others)) as done:
        for number, path in enumerate(others, start=1):
            profiles += services.read_all(path)
            done(number)
    return [*studies, *([collect.from_profiles(profiles)] if profiles else [])]


def describe_measurements(path: Path) -> KnownDocument | None:
    """Return what a file of Extra-P is; None where its measurements are no study, raises ``InputError`` for damage."""
    try:
        studies = collect.from_measurements(extrap_files.read_measurements(path), path)
    except UsageError:
        return None
    first = studies[0]
    ends = zip(first.parameters, first.points.min(axis=0), first.points.max(axis=0), strict=True)
    spans = "; ".join(f"{name} = {low:g} to {high:g}" for name, low, high in ends)
    words = f"a scaling study at {len(first.points)} points ({spans}); gapwatch scale {path.name} models it"
    return KnownDocument(words)


def select_named_series(each: ScalingStudy, names: Sequence[str]) -> ScalingStudy:
    """Return the study with only the series that have one of ``names`` in theirs; all for none.

    Regions that are not shown are not fitted; the run and its gaps are, since parts and whole are forecast together.
    """
    keep = [at for at, series in enumerate(each.series) if any(name in series.name for name in names)]
    if not names:
        return each
    if not keep:
        known = ", ".join(series.name for series in each.series)
        raise UsageError(f"nothing is called like that: {', '.join(names)}; there are {known}")
    regions = any(each.series[at].kind == "region" for at in keep)
    whole = [at for at, one in enumerate(each.series) if at in keep or one.kind not in ("region", "count")]
    parts = each if regions else study.select_series(each, whole)
    return replace(study.select_series(each, keep), selected_from=parts)


def build_study_parts(each: ScalingStudy, args: Namespace, services: CommandServices) -> list[Part]:
    """Return what is said about one study."""
    with services.show_progress("fitting models"):
        fits = study.fit_study(each)
        checked = study.leave_one_out(each) if args.check else None
    parts: list[Part] = [
        Text(scale_sections.describe_study(each)),
        *scale_sections.build_model_tables(each, fits, checked),
    ]
    if checked is not None:
        parts += scale_sections.build_check_parts(each, fits, checked)
    asked = _prediction_points(each, args.predict or ())
    if args.predict:
        parts += scale_sections.build_prediction_parts(each, fits, asked, args.level)
    course = scale_sections.build_course_parts(each, fits, asked[-1], args.level)
    parts += course
    parts += locality.build_locality_parts(each)
    if args.plot:
        (plot,) = (part for part in course if isinstance(part, Series))
        services.write_picture(scale_sections.complete_picture(each, plot), args.plot)
        parts.append(Text(f"Drawn into {args.plot}."))
    if args.sensitivity:
        parts.append(scale_sections.build_elasticity_table(each, fits, asked[-1]))
    if args.next:
        parts += scale_sections.build_next_run_parts(each, fits, asked[-1])
    if args.model or args.linear or args.count:
        parts += build_linear_parts(each, args, services)
    if args.export:
        parts += [
            Code(name, args.export, text) for name, text in scale_sections.export_equations(each, fits, args.export)
        ]
    return parts


def _prediction_points(each: ScalingStudy, texts: Sequence[str]) -> FloatArray:
    """Return the points to predict; without any the largest measured values, eight times as many processors."""
    if texts:
        return np.concatenate([study.list_target_points(each, text) for text in texts])
    from advisor_scaling.dominance import find_axis

    point = each.points.max(axis=0)
    point[find_axis(each)] *= 8.0
    return np.asarray(point[None, :])


def build_linear_parts(each: ScalingStudy | None, args: Namespace, services: CommandServices) -> list[Part]:
    """Return what T = X beta says: counts from a model or the runs, costs from the runs or from machine models."""
    from advisor_scaling.linear import application, counted_operations, setup, surfaces
    from advisor_scaling.linear import linear_sections as linear

    given = [services.load_machine(name) for name in args.machine or ()]
    measured = setup.select_measured_times(each) if each is not None else None
    stated = application.read_application(args.model) if args.model else None
    parts: list[Part] = []
    if args.count:
        counted = counted_operations.count_operations(args.count, args.command or (), args.at or "", services)
        stated = setup.replace_counts(stated, counted, args.count[0].stem)
        heads = (Column("loop"), Column("iterations on a processor"))
        parts += [Table("Loops that were counted", heads, tuple(counted.loops.items())), *map(Text, counted.notes)]
    if args.offers is not None or args.budget is not None:
        parts += _build_offers(stated, args, services)
        if not given and measured is None:
            return parts
    models = setup.build_models(stated, each, measured, given)
    at = setup.prediction_points(models[0], each, args.predict or ())
    for one, machine in zip_longest(models, given[: len(models)]):
        parts += linear.build_model_parts(one, at, args.export)
        parts += [Text(text) for text in setup.describe_memory(stated, machine)] if machine is not None else []
        parts += linear.build_error_parts(one, measured) if measured is not None else []
        parts += (
            linear.build_sensitivity_parts(one, at, setup.enlarge_sizes(stated, one, machine))
            if args.sensitivity
            else []
        )
        parts += surfaces.build_surface_parts(one, at) if args.sensitivity else []
        parts += linear.build_price_parts(one, at, args.price) if args.price else []
    return [*parts, *(linear.build_machine_parts(models[0], models[1], at) if len(models) > 1 else [])]


def _build_offers(stated: ApplicationModel | None, args: Namespace, services: CommandServices) -> list[Part]:
    """Return what the job that --predict names would cost on the offers."""
    from pathlib import Path

    from advisor_scaling.linear import expressions, offer_sections, offers

    if stated is None:
        raise UsageError("--offers needs operation counts: --model or --count")
    if not args.predict:
        raise UsageError("say which job it is: --predict 'N=4096'; the number of processors follows from the nodes")
    point = {name: values[-1] for name, values in targets.parse_target(args.predict[-1]).items()}
    table = offers.load_offers(Path(args.offers) if args.offers not in (None, "", "bundled") else None)
    texts = [array.bytes for array in stated.arrays] or ([stated.data] if stated.data else [])
    sizes = [expressions.parse_formula(text, stated.parameters) for text in texts]
    memory = sum(sizes, expressions.require_sympy().Integer(0)) if sizes else None
    choices = offers.rank_choices(stated, table, services.load_machine, point, memory)
    where = " ".join(f"{name}={value:g}" for name, value in point.items())
    return offer_sections.build_offer_parts(table, choices, args.budget, where)
