"""``gapwatch advise``: one run in, ranked advice out."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import forms, gates, history_places, output, places, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.advice.past import Earlier, Past
    from advisor.model.records import Advice
    from advisor.pipeline import Study

NAME = "advise"
_SIZE = re.compile(r"[A-Za-z_]\w*=\d+(\.\d+)?([eE][+-]?\d+)?")
HELP = "say where the seconds of a run go and what to do next"


def configure(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=_path, help="a profile or trace; of several, the newest"
    )
    add_options(parser)
    history_places.add_state(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a command that advises on a run its options."""
    parser.add_argument("--order", choices=("seconds", "steps"), default="seconds", help="by gain, or by tuning step")
    parser.add_argument("--machine", metavar="NAME|FILE", help="the machine model of the run (gapwatch machines list)")
    places.add_rules(parser)
    parser.add_argument("--cores", metavar="N", type=_cores, help="cores the run had, where the profile does not say")
    parser.add_argument(
        "--target", metavar="'P=1024 N=8192'", type=_target,
        help="the size the program is meant for: what will cost most there, by models of earlier runs",
    )  # fmt: skip
    gates.add_option(parser)
    parser.add_argument("--verbose", action="store_true", help="all recommendations, evidence, code and tables")
    forms.add_options(parser)


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("expected a path, found nothing")
    return Path(text)


def _cores(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"expected a number of cores, found {text!r}")
    return int(text)


def _target(text: str) -> str:
    if not text.strip() or not all(_SIZE.fullmatch(part) for part in text.split()):
        raise argparse.ArgumentTypeError(f"expected names and numbers such as 'P=1024 N=8192', found {text!r}")
    return " ".join(text.split())


def run(args: argparse.Namespace) -> int:
    """Advise on what the arguments name; returns the exit code."""
    study = study_of(args.paths, args, history_places.past(args))
    deliver(_as_it_stands(study.advice, args), study.earlier, args)
    return 0


def _as_it_stands(advice: Advice, args: argparse.Namespace) -> Advice:
    """Return the advice with the state of each item in the history; as it is where that cannot be read, which is said
    elsewhere.
    """
    folder = history_places.state(args)
    if not (advice.recommendations and folder.is_dir()):
        return advice
    from advisor.history.past import StoredPast
    from advisor.model.errors import StoreError

    try:
        return StoredPast(folder).as_it_stands(advice)
    except StoreError:
        return advice


def study_of(paths: Sequence[Path], args: argparse.Namespace, past: Past | None) -> Study:
    """Return the advice on the newest of the paths, as the options of the command line want it, after its ``past``."""
    from advisor import pipeline

    rules = (*places.rule_files(), *args.rules)
    options = pipeline.Options(places.machine(args.machine), rules, args.order, args.cores, args.target)
    with progress.stages(f"reading {paths[0]}" if len(paths) == 1 else f"reading {len(paths)} runs") as stage:
        return pipeline.study(paths, replace(options, stage=stage), places.load_host(), past)


def deliver(advice: Advice, earlier: Earlier, args: argparse.Namespace, head: str = "") -> None:
    """Write advice, in text behind ``head``, then judge the gates."""
    from advisor.advice.past import base_of

    text = forms.written(advice, earlier, args)
    comment = args.form == "markdown"
    output.emit(head + text if args.form == "text" else text, args.output, "utf-8" if comment else None)
    gates.judge(args.fail_on, advice, lambda: base_of(advice, earlier.advice(), args.base))
    output.complain(*(problem for problem in earlier.problems if problem not in advice.problems))
