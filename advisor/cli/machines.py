"""``gapwatch machines``: which machine models there are, and the numbers of one with their sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli import output, report_output, subcommands, user_folders

if TYPE_CHECKING:
    import argparse

    from advisor.model.reports import Report

NAME = "machines"
#: Under this name a plugin offers to measure: ``probe(name, folder, working) -> Report``, as in ``commands.Services``.
PROBE = "machine_probe"
#: Under this name one offers to read benchmarks: ``import(measurements, name, base, folder) -> Report``.
IMPORT = "machine_import"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the command its arguments."""
    commands = subcommands.add_command_group(parser)
    output.add_output_arguments(
        subcommands.add_command(commands, "list", "list the models that --machine accepts by name")
    )
    one = subcommands.add_command(commands, "show", "show every number of a model with its source")
    one.add_argument("machine", metavar="NAME|FILE", help="Model name, model file, or host for this machine")
    output.add_output_arguments(one)
    probe = subcommands.add_command(commands, "probe", "measure this machine and save the result as a machine model")
    probe.add_argument("--name", default="probed", help="Name of the model (default: probed)")
    output.add_output_arguments(probe)
    measured = subcommands.add_command(commands, "import", "save what OSU, IMB or STREAM measured as a machine model")
    measured.add_argument("files", metavar="FILE", nargs="+", type=Path, help="Output of one of these benchmarks")
    measured.add_argument("--name", default="measured", help="Name of the model (default: measured)")
    measured.add_argument("--base", metavar="NAME|FILE", help="Model whose other numbers are kept")
    output.add_output_arguments(measured)


def run_command(args: argparse.Namespace) -> int:
    """List the models, show one, measure one or make one of benchmarks; returns the exit code."""
    if args.what == "probe":
        return report_output.show_report(_probe_machine(args.name), args)
    if args.what == "import":
        return report_output.show_report(_import_benchmarks(args), args)
    found = (*user_folders.machine_folders(), *user_folders.load_host().machine_files())
    if args.what == "list":
        return report_output.show_report(_list_machines(found), args)
    from advisor.analysis import machines

    document = machines.to_document(machines.load_machine(args.machine, found))
    return report_output.show_document(document, _build_machine_report(document), args)


def _probe_machine(name: str) -> Report:
    from advisor.cli.services import HostServices
    from advisor.extension.host import answers

    services = HostServices(user_folders.load_host())
    folder = services.user_folder("config") / "machine_models"
    return answers.require_report(services.find_service(PROBE)(name, folder, services.show_progress))


def _import_benchmarks(args: argparse.Namespace) -> Report:
    from advisor.analysis import machines
    from advisor.cli.services import HostServices
    from advisor.extension.host import answers
    from advisor.formats.machine_outputs import read_outputs

    measured = [one for path in args.files for one in read_outputs(path)]
    host = user_folders.load_host()
    places = (*user_folders.machine_folders(), *host.machine_files())
    base = machines.load_machine(user_folders.resolve_machine(args.base) or args.base, places) if args.base else None
    services = HostServices(host)
    folder = services.user_folder("config") / "machine_models"
    return answers.require_report(services.find_service(IMPORT)(measured, args.name, base, folder))


def _list_machines(found: tuple[Path, ...]) -> Report:
    from advisor.analysis import machines
    from advisor.model.reports import Column, Report, Table

    names = machines.list_model_names(found)
    rows = tuple((name, machines.load_machine(name, found).title) for name in names)
    return Report("", (Table("", (Column("name"), Column("machine")), rows),))


def _build_machine_report(document: dict[str, object]) -> Report:
    from advisor.model.reports import Column, Report, Table, Text

    sources = document.get("sources")
    told = {key: content for key, content in document.items() if key not in ("sources", "name", "title")}
    rows = tuple(_iterate_numbers(told, ""))
    cited = [
        line
        for name, source in (sources.items() if isinstance(sources, dict) else ())
        for line in _iterate_source_lines(name, source)
    ]
    description = str(document.get("description", ""))
    return Report(
        f"{document['name']}: {document['title']}",
        (
            Text(" ".join(description.split())),
            Table("Numbers", (Column("what"), Column("value"), Column("source")), rows),
            Text("\n".join(["Sources", *cited])),
        ),
    )


def _iterate_source_lines(name: str, source: dict[str, str]) -> Iterator[str]:
    """Yield a source as lines, its address on one of its own so that it can be copied."""
    yield f"  {name}: {source['title']}"
    if "url" in source:
        yield f"      {source['url']}"


def _iterate_numbers(value: object, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, value and source of everything in a document but its prose."""
    if isinstance(value, dict) and "value" in value:
        yield path, str(value.get("text", value["value"])), str(value.get("source", "computed"))
    elif isinstance(value, dict):
        for key, content in value.items():
            if key != "description":
                yield from _iterate_numbers(content, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        yield path, ", ".join(map(str, value)), ""
    else:
        yield path, str(value), ""
