"""What Slurm's ``sacct -P`` and ``seff`` print of a job: elapsed time, CPU time, cores, tasks and memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError
from advisor.model.job_account import JobAccount

#: Columns of ``sacct`` without which nothing can be said.
REQUIRED_COLUMNS: Final = ("JobID", "Elapsed", "TotalCPU", "NCPUS")
_OTHER_NAMES: Final = {"AllocCPUS": "NCPUS", "JobIDRaw": "JobID"}
_DELIMITERS: Final = "|,;\t"
_RULE: Final = re.compile(r" *-+(?: -+)+ *$")
_SEFF_LINE: Final = re.compile(r"([A-Z][\w/ -]*): (.*)$")
_TIME: Final = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,5}):)?(\d{1,5}):(\d{1,2}(?:\.\d{1,6})?)$")
_CORE_TIME: Final = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)% of (\S+) core-walltime")
_SIZE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?) ?([KMGT]?)B?$")
_POWER: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_JOB: Final = re.compile(r"[\w\[\]_+-]+$")


def has_sacct_head(line: str, rule: str = "") -> bool:
    """Return whether a line is the head of a table of ``sacct`` with the columns that are needed."""
    return {*_make_columns(line, rule).titles} >= set(REQUIRED_COLUMNS)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The titles of a table, and how its lines are cut: at a delimiter, or at the places of the rule below the head."""

    titles: tuple[str, ...]
    delimiter: str = "|"
    places: tuple[tuple[int, int], ...] = ()

    def split_line(self, line: str) -> list[str]:
        """Return the cells of a line."""
        if self.places:
            return [line[start:stop].strip() for start, stop in self.places]
        cells = line.split(self.delimiter)
        return cells[:-1] if len(cells) == len(self.titles) + 1 and not cells[-1].strip() else cells


def _make_columns(head: str, rule: str) -> _Columns:
    """Return the columns below ``head``; without ``-P`` a rule of dashes below it says how wide they are."""
    if _RULE.match(rule):
        places = tuple((dashes.start(), dashes.end()) for dashes in re.finditer("-+", rule))
        columns = _Columns((), places=places)
    else:
        columns = _Columns((), max(_DELIMITERS, key=head.count))
    titles = [title.strip() for title in columns.split_line(head.rstrip("\n"))]
    titles = titles[:-1] if titles and not titles[-1] else titles
    return replace(columns, titles=tuple(_OTHER_NAMES.get(title, title) for title in titles))


def read_account(path: Path) -> JobAccount:
    """Return the job in the file at ``path``; raises ``InputError`` with the line of what is damaged.

    Of several jobs it is the one whose cores were idle longest, all of them together.
    """
    text = read_plain_text(path)
    if text.lines[-1]:
        raise text.make_error(len(text.lines) - 1, "the last line has no end: the file is cut off")
    heads = zip(text.lines[:50], (*text.lines[1:50], ""), strict=False)
    head = next((n for n, (line, rule) in enumerate(heads) if has_sacct_head(line, rule)), None)
    return _read_seff(text) if head is None else _read_sacct(text, head)


def _read_sacct(text: PlainText, head: int) -> JobAccount:
    rule = text.lines[head + 1] if head + 1 < len(text.lines) else ""
    columns = _make_columns(text.lines[head], rule)
    titles = columns.titles
    jobs: list[tuple[int, dict[str, str]]] = []
    steps: list[tuple[int, dict[str, str]]] = []
    for line in range(head + (2 if columns.places else 1), len(text.lines)):
        if not text.lines[line].strip():
            if columns.places:
                break  # what follows is no more of the table
            continue
        cells = columns.split_line(text.lines[line])
        if len(cells) != len(titles):
            raise text.make_error(line, f"{len(cells)} cells below {len(titles)} titles")
        row = dict(zip(titles, cells, strict=True))
        (jobs if _JOB.match(row["JobID"]) else steps).append((line, row))
    if not jobs:
        raise InputError(text.path, "holds no job, or steps alone: sacct -j ID -P --format=…")
    idle = [_find_idle_seconds(text, line, job) for line, job in jobs] if len(jobs) > 1 else [0.0]
    line, job = jobs[idle.index(max(idle))]
    steps = [step for step in steps if step[1]["JobID"].partition(".")[0] == job["JobID"]]
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
        others=len(jobs) - 1,
    )


def _find_idle_seconds(text: PlainText, line: int, job: Mapping[str, str]) -> float:
    """Return how long the cores of a job were idle together; less than none of one that never ran."""
    if (
        not job["NCPUS"].isdigit()
        or not _TIME.match(job["Elapsed"].strip())
        or not _TIME.match(job["TotalCPU"].strip())
    ):
        return -1.0
    elapsed_s = _parse_time(text, job["Elapsed"], line)
    return int(job["NCPUS"]) * elapsed_s - _parse_time(text, job["TotalCPU"], line) if elapsed_s > 0 else -1.0


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
