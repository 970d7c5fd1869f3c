"""What tells sums, lists and logs of device activities by NVIDIA's tools from other text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from advisor.formats.plain_text import read_ends

_NVPROF: Final = re.compile(
    rb"^[ \t]*\"?(?:Type\"?[, ]+\"?)?Time\(%\)\"?[, ]+\"?Time\"?[, ]+\"?Calls\"?[, ]+\"?Avg\"?", re.M
)
_LIST: Final = re.compile(
    rb'^[ \t]*"?Start(?: ?\((?:ns|sec|s)\))?"?(?:,|  +)"?Duration(?: ?\((?:nsec|ns)\))?"?(?:,|  +)'
    rb'"?(?:Grid|CorrId|Name)',
    re.M,
)
_NSYS: Final = re.compile(rb"^ *Time ?\(%\)[ ,]+Total Time \(ns\)[ ,]+(?:Instances|Count|Operations)[ ,]", re.M)

_LOG: Final = re.compile(rb"^# CUDA_PROFILE_LOG_VERSION [\d.]+", re.M)
_LOG_HEAD: Final = re.compile(rb"^(?:\w+,)*method,(?:\w+,)*gputime\b", re.M)


def is_command_line_log(path: Path) -> bool:
    """Return whether the file is a log of CUDA's command-line profiler, which ended with CUDA 7.5."""
    ends = read_ends(path)
    return _LOG.search(ends) is not None and _LOG_HEAD.search(ends) is not None


def is_summary(path: Path) -> bool:
    """Return whether the file holds sums of kernels or copies by nvprof or ``nsys stats``."""
    ends = read_ends(path)
    return _NVPROF.search(ends) is not None or _NSYS.search(ends) is not None


def is_activity_list(path: Path) -> bool:
    """Return whether the file lists single activities of devices, or calls, by nvprof or ``nsys stats``."""
    return _LIST.search(read_ends(path)) is not None
