"""What Slurm's ``sacct -P`` and ``seff`` print of a job: elapsed time, CPU time, cores, tasks and memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.plain_text import read_plain_text
from advisor.model.errors import InputError
from advisor.model.job_account import JobAccount

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.formats.plain_text import PlainText

#: Columns of ``sacct`` without which nothing can be said.
REQUIRED_COLUMNS: Final = ("JobID", "Elapsed", "TotalCPU", "NCPUS")
_OTHER_NAMES: Final = {"AllocCPUS": "NCPUS", "JobIDRaw": "JobID"}
_SEFF_LINE: Final = re.compile(r"([A-Z][\w/ -]*): (.*)$")
_TIME: Final = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,5}):)?(\d{1,5}):(\d{1,2}(?:\.\d{1,6})?)$")
_CORE_TIME: Final = re.compile(r"([\d.]+)% of (\S+) core-walltime")
_SIZE: Final = re.compile(r"([\d.]+) ?([KMGT]?)B?$")
_POWER: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_JOB: Final = re.compile(r"[\w\[\]_+-]+$")


def has_sacct_head(line: str) -> bool:
    """Return whether a line is the head of a table of ``sacct -P`` with the columns that are needed."""
    return {_OTHER_NAMES.get(title, title) for title in line.strip().rstrip("|").split("|")} >= set(REQUIRED_COLUMNS)


def read_account(path: Path) -> JobAccount:
    """Return the job in the file at ``path``; raises ``InputError`` with the line of what is damaged."""
    text = read_plain_text(path)
    if text.lines[-1]:
        raise text.make_error(len(text.lines) - 1, "the last line has no end: the file is cut off")
    head = next((n for n, line in enumerate(text.lines[:50]) if has_sacct_head(line)), None)
    return _read_seff(text) if head is None else _read_sacct(text, head)


def _read_sacct(text: PlainText, head: int) -> JobAccount:
    titles = [_OTHER_NAMES.get(title, title) for title in text.lines[head].rstrip("|").split("|")]
    jobs: list[tuple[int, dict[str, str]]] = []
    steps: list[tuple[int, dict[str, str]]] = []
    for line in range(head + 1, len(text.lines)):
        if not text.lines[line].strip():
            continue
        cells = text.lines[line].split("|")
        cells = cells[:-1] if len(cells) == len(titles) + 1 and not cells[-1] else cells
        if len(cells) != len(titles):
            raise text.make_error(line, f"{len(cells)} cells below {len(titles)} titles")
        row = dict(zip(titles, cells, strict=True))
        (jobs if _JOB.match(row["JobID"]) else steps).append((line, row))
    if len(jobs) != 1:
        names = ", ".join(row["JobID"] for _, row in jobs[:3])
        raise InputError(text.path, f"{len(jobs)} jobs ({names or 'none'}): print one, sacct -j ID -P --format=…")
    line, job = jobs[0]
    # The job script and what the system adds are no tasks of the program, unless it is started by neither.
    own = [step for step in steps if step[1]["JobID"].rpartition(".")[2].isdigit()]
    steps = own or steps
    tasks = [int(row["NTasks"]) for _, row in steps if row.get("NTasks", "").isdigit()]
    sizes = [_parse_size(row["MaxRSS"]) for _, row in steps if row.get("MaxRSS")]
    nodes = job.get("NNodes", job.get("AllocNodes", ""))
    return JobAccount(
        job=job["JobID"],
        name=job.get("JobName", ""),
        elapsed_s=_parse_time(text, job["Elapsed"], line),
        cpu_s=_parse_time(text, job["TotalCPU"], line),
        cores=int(text.parse_number(job["NCPUS"], line)),
        nodes=int(nodes) if nodes.isdigit() else None,
        tasks=max(tasks, default=None),
        memory=max((size for size in sizes if size is not None), default=None),
        state=job.get("State", ""),
        started=job.get("Start"),
        folder=job.get("WorkDir") or None,
    )


def _read_seff(text: PlainText) -> JobAccount:
    found = {cells[1]: (n, cells[2].strip()) for n, line in enumerate(text.lines) if (cells := _SEFF_LINE.match(line))}
    for name in ("Job ID", "CPU Utilized", "CPU Efficiency", "Job Wall-clock time"):
        if name not in found:
            raise InputError(text.path, f"the report lacks {name!r}")
    nodes = int(text.parse_number(found["Nodes"][1], found["Nodes"][0])) if "Nodes" in found else 1
    each = found.get("Cores per node", found.get("Cores", (0, "")))
    cores = int(text.parse_number(each[1], each[0])) * (nodes if "Cores per node" in found else 1)
    cpu_s, elapsed_s = (_parse_time(text, found[n][1], found[n][0]) for n in ("CPU Utilized", "Job Wall-clock time"))
    line, efficiency = found["CPU Efficiency"]
    stated = _CORE_TIME.match(efficiency)
    if stated is None:
        raise text.make_error(line, "no share of the core-walltime")
    if abs(_parse_time(text, stated[2], line) - cores * elapsed_s) > cores:
        raise text.make_error(line, f"{stated[2]} are not {cores} times {elapsed_s:g} s")
    if elapsed_s and abs(text.parse_number(stated[1], line) - 100 * cpu_s / (cores * elapsed_s)) > 0.02:
        raise text.make_error(line, f"{cpu_s:g} s are not {stated[1]} % of the core-walltime")
    memory = _parse_size(found["Memory Utilized"][1].split(" (")[0]) if "Memory Utilized" in found else None
    return JobAccount(
        found["Job ID"][1], "", elapsed_s, cpu_s, cores, nodes, memory=memory, state=found.get("State", (0, ""))[1]
    )


def _parse_time(text: PlainText, cell: str, line: int) -> float:
    """Return seconds of ``[days-][hours:]minutes:seconds``."""
    found = _TIME.match(cell.strip())
    if found is None:
        raise text.make_error(line, f"{cell[:40]!r} is not a time")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + seconds


def _parse_size(cell: str) -> float | None:
    found = _SIZE.match(cell.strip())
    return float(found[1]) * 2.0 ** _POWER[found[2]] if found else None
