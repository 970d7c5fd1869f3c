"""``gapwatch convert``: a run in the format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli import user_folders
from advisor.model.errors import AdvisorError

if TYPE_CHECKING:
    import argparse

NAME = "convert"
#: What ``--to`` names.
TARGETS: Final = ("hatchet", "pandas", "parquet", "chrome-trace", "native", "speedscope")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="Profile or trace (of several, the newest)")
    parser.add_argument(
        "--run", metavar="N|NAME", dest="chosen",
        help="Which of several runs: number in the list, name, or part of the path (default: the newest)",
    )  # fmt: skip
    parser.add_argument("--to", choices=TARGETS, required=True, help="Format to write")
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, required=True, help="File to write")


def run_command(args: argparse.Namespace) -> int:
    """Write the file, which appears under its name when it is complete; returns the exit code."""
    from advisor import pipeline
    from advisor.formats import call_tree_writer, table_writers, timeline_writers
    from advisor.formats.native_writer import write_profile
    from advisor.support.atomic_write import atomic_write

    host = user_folders.load_host()
    profile, files = pipeline.read_chosen_run(args.paths, pipeline.Options(run=args.chosen), host)
    if args.to == "native":
        write_profile(profile, args.output)
        return 0
    traces = [found for found in files if host.is_trace(found)]
    if not traces and not any(phase.arrays for phase in profile.phases):
        raise AdvisorError(f"{args.paths[0]} holds counts and no seconds: --to native keeps those")
    with atomic_write(args.output) as partial:
        if args.to == "chrome-trace" and not traces:
            raise AdvisorError(f"{args.paths[0]} holds totals and no events: --to speedscope shows those")
        if args.to == "chrome-trace":
            timeline_writers.write_chrome_trace(host.read_trace(traces[0]), partial)
        elif args.to == "speedscope" and traces:
            timeline_writers.write_speedscope_timeline(host.read_trace(traces[0]), partial)
        else:
            write = {
                "hatchet": call_tree_writer.write_call_tree,
                "pandas": table_writers.write_csv,
                "parquet": table_writers.write_parquet,
                "speedscope": timeline_writers.write_speedscope_totals,
            }[args.to]
            write(profile, partial)
    return 0
