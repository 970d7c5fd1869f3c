"""Timing tables that do not fit together: units, ranks and runs that were mixed up are refused or named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from advisor.cli import main
from advisor.formats import timing_tables
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parents[1] / "profiles" / "timing_tables"


def multiply(pattern: str, factor: float) -> Callable[[str], str]:
    """Return what multiplies the number in the group of each match."""

    def change(text: str) -> str:
        def scale(found: re.Match[str]) -> str:
            at = found.start(1) - found.start(0)
            return f"{found[0][:at]}{float(found[1]) * factor:.3f}{found[0][at + len(found[1]) :]}"

        return re.sub(pattern, scale, text, flags=re.MULTILINE)

    return change


def exchange(one: str, other: str) -> Callable[[str], str]:
    """Return what exchanges two pieces of a text."""
    return lambda text: text.replace(one, "\0").replace(other, one).replace("\0", other)


def leave_out(piece: str) -> Callable[[str], str]:
    """Return what drops the lines that hold a piece."""
    return lambda text: "\n".join(line for line in text.split("\n") if piece not in line)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("fhi-aims.out", multiply(r"(\d+\.\d+) s\)?$", 1000)),
        ("fhi-aims.out", multiply(r"(\d+\.\d+) s\)?$", 1e-3)),
        ("al3x3.castep", multiply(r"time +=\s+(\d+\.\d+) s", 1000)),
        ("timing.output", multiply(r"^ +\d +\| +(\d+\.\d+)", 1000)),
        ("hpcg.txt", multiply(r"Benchmark Time Summary::\w+=(\d\S+)$", 1000)),
        ("hpl.out", multiply(r"^WR\S+ .* (\d+\.\d\d) +\d\.\d+e", 1000)),
        ("hpl.out", multiply(r"^WR\S+ .* (\d+\.\d\d) +\d\.\d+e", 60)),
    ],
)
def test_other_units_are_refused(name: str, change: Callable[[str], str], tmp_path: Path) -> None:
    text = (HERE / name).read_text()
    assert change(text) != text
    (tmp_path / name).write_text(change(text))
    with pytest.raises(InputError):
        timing_tables.advisor_read(tmp_path / name)


@pytest.mark.parametrize(
    "change",
    [
        exchange("    1         |     100.500", "    2         |     100.500"),
        leave_out("    3         |"),
        leave_out("    0         |"),
        exchange("    3         |     100.400", "    2         |     100.400"),
    ],
)
def test_ranks_that_are_not_all_there_once_are_refused(change: Callable[[str], str], tmp_path: Path) -> None:
    text = (HERE / "timing.output").read_text()
    assert change(text) != text
    (tmp_path / "timing.output").write_text(change(text))
    with pytest.raises(InputError):
        timing_tables.advisor_read(tmp_path / "timing.output")


def test_the_table_of_another_run_below_the_first_lines_of_one_is_refused(tmp_path: Path) -> None:
    text = (HERE / "fhi-aims.out").read_text()
    later = text.replace("20180909, Time     :  070108", "20180911, Time     :  070108")
    (tmp_path / "aims.out").write_text(later)
    with pytest.raises(InputError, match="lie between the dates"):
        timing_tables.advisor_read(tmp_path / "aims.out")


@pytest.mark.parametrize("name", ["fhi-aims.out", "al3x3.castep", "timing.output", "hpcg.txt", "hpl.out"])
def test_a_copy_of_a_table_is_no_second_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for copy in ("first", "second"):
        (tmp_path / copy).mkdir()
        (tmp_path / copy / name).write_bytes((HERE / name).read_bytes())
    assert main(["advise", str(tmp_path)]) == 0
    assert "holds 2 runs" not in capsys.readouterr().err


def test_tables_of_different_programs_are_not_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("fhi-aims.out", "al3x3.castep", "hpcg.txt"):
        (tmp_path / name).write_bytes((HERE / name).read_bytes())
    assert main(["advise", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "holds 3 runs" in told
    assert all(program in told for program in ("aims", "castep", "xhpcg"))
