"""What other tools say about a loop, where installed: llvm-mca (part of LLVM) and OSACA.

Both are run as external programs. llvm-mca takes every store for done before the next load, and its cycles may exceed
a measurement on loops that carry a chain from iteration to iteration.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.support.child_process import run_child

if TYPE_CHECKING:
    from advisor_processor.compiled.instructions import Instruction

_LIMIT_S: Final = 60.0
_ITERATIONS: Final = 100
_NAMES: Final = ("llvm-mca", *(f"llvm-mca-{version}" for version in range(21, 10, -1)))


@dataclass(frozen=True, slots=True)
class ToolEstimate:
    """Cycles per iteration by another tool: of the busiest unit, and in all."""

    tool: str
    throughput: float
    cycles: float


def run_llvm_mca(body: Sequence[Instruction]) -> ToolEstimate | None:
    """Return what llvm-mca says of a loop; None where it is not installed or does not know an instruction."""
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="gapwatch-mca-") as folder:
        source = Path(folder) / "loop.s"
        source.write_text(format_assembly(body), encoding="ascii", errors="replace")
        words = [program, "-mcpu=native", "-json", f"-iterations={_ITERATIONS}", str(source)]
        done = run_child(words, _LIMIT_S)
    try:
        view = json.loads(done.text)["CodeRegions"][0]["SummaryView"] if done.status == 0 else None
    except (ValueError, KeyError, IndexError):
        return None
    if view is None:
        return None
    return ToolEstimate("llvm-mca", float(view["BlockRThroughput"]), view["TotalCycles"] / view["Iterations"])


def run_osaca(body: Sequence[Instruction], architecture: str) -> ToolEstimate | None:
    """Return what OSACA says of a loop on one of its architectures (``SPR``); None where it is not installed."""
    program = shutil.which("osaca")
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="gapwatch-osaca-") as folder:
        source = Path(folder) / "loop.s"
        text = f"# OSACA-BEGIN\n{_format_body(body)}\n# OSACA-END\n"
        source.write_text(text, encoding="ascii", errors="replace")
        words = [program, "--arch", architecture, "--syntax", "Intel", "--ignore-unknown", str(source)]
        done = run_child(words, _LIMIT_S)
    return _parse_osaca(done.text) if done.status == 0 else None


def _parse_osaca(text: str) -> ToolEstimate | None:
    """Return the sums below OSACA's table: ports, the critical path and the loop-carried dependence."""
    sums = [line for line in text.splitlines() if re.fullmatch(r"[\s\d.|]+", line) and len(line.split()) > 4]
    if not sums:
        return None
    numbers = [float(word) for word in re.findall(r"\d+\.\d+|\d+", sums[-1])]
    throughput, carried = max(numbers[:-2], default=0.0), numbers[-1]
    return ToolEstimate("OSACA", throughput, max(throughput, carried))


def format_assembly(body: Sequence[Instruction]) -> str:
    """Return a loop in Intel's syntax, as an assembler takes it."""
    return f".intel_syntax noprefix\n{_format_body(body)}\n"


def _format_body(body: Sequence[Instruction]) -> str:
    return "\n".join([".L1:", *(one.text if one.target is None else f"{one.mnemonic} .L1" for one in body)])
