"""Judge the advice on the same faults recorded by other tools, a column for each; writes it to ``docs/validation.md``.

python examples/faults/tools.py DIR      # DIR/TOOL/faultlab-FAULT: recordings of a program of that name
"""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from advisor import pipeline
from advisor.extension import host
from advisor.model.errors import InputError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "validation.md"
BEGIN, END = "<!-- tools: begin -->", "<!-- tools: end -->"
#: What is wrong in each recording, by the names of ``accepted.yaml``; nothing where the list is empty.
FAULTS = {
    "clean": (),
    "membound2048": (),
    "omppadded": (),
    "imbalance30": ("imbalance",),
    "sleep4imbalance50": ("imbalance",),
    "multiphase30": ("multiphase",),
    "dynamic40": ("dynamic",),
    "serial4": ("serial",),
    "sleep4serial5": ("serial",),
    "late4": ("late",),
    "messages64": ("messages",),
    "io256": ("fsync", "io-all"),
    "thrash2048": ("thrash",),
    "ompfalse": ("false-sharing",),
}
TOOLS = ("eztrace", "scorep", "extrae", "dimemas", "caliper", "tau", "mpip", "talp", "gprof", "perf", "darshan")


def accepted() -> dict[str, tuple[str, ...]]:
    """Return the actions that are right as first advice on each fault."""
    table = yaml.safe_load((HERE / "accepted.yaml").read_text(encoding="utf-8"))
    return {fault: tuple(row["actions"]) for fault, row in table.items()}


def judge(path: Path, faults: tuple[str, ...], plugins: host.PluginHost) -> str:
    """Return one cell: ``hit``, ``miss`` with the action, ``open`` (asks for more evidence), ``silent`` or ``-``."""
    if not path.is_dir():
        return "-"
    try:
        advice = pipeline.advise([path], pipeline.Options(), plugins)
    except InputError:
        return "-"
    if advice.verdict == "insufficient evidence":
        return "open"
    if advice.verdict == "nothing significant":
        return "silent" if faults else "hit (silent)"
    first = advice.recommendations[0].action
    right = {action for fault in faults for action in accepted()[fault]}
    return f"{'hit' if first in right else 'miss'} {first}"


def table(folder: Path) -> str:
    """Return the table of all faults and tools recorded below ``folder``."""
    plugins = host.load_plugins()
    rows = ["| fault | " + " | ".join(TOOLS) + " |", "|---" * (len(TOOLS) + 1) + "|"]
    for name, faults in FAULTS.items():
        cells = [judge(folder / tool / f"faultlab-{name}", faults, plugins) for tool in TOOLS]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    """Write the table to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path)
    made = table(parser.parse_args().folder)
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
