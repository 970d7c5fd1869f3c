"""Packed profiles of ParaProf: what is in them is what TAU's own files of the same run say."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from advisor.analysis import soundness
from advisor.formats import tau
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

if TYPE_CHECKING:
    from pathlib import Path

METRICS = ("TIME", "PAPI_TOT_INS")
GROUPS = ("TAU_DEFAULT", "MPI")
FUNCTIONS = (("main()", (0,)), ("solve()", (0,)), ("MPI_Allreduce()", (1,)))
EVENTS = ("Message size for all-reduce",)
TOLD = {"Executable": "/home/user/heat", "Hostname": "n1"}
#: Calls, calls from it, then exclusive and inclusive value of each metric, by rank and function.
ROWS = {
    0: ((1, 2, 1e5, 2e6, 4e6, 9e7), (1, 0, 1.4e6, 1.4e6, 8e7, 8e7), (9, 0, 5e5, 5e5, 6e6, 6e6)),
    1: ((1, 2, 1e5, 2e6, 4e6, 9e7), (1, 0, 0.9e6, 0.9e6, 8e7, 8e7), (9, 0, 1e6, 1e6, 6e6, 6e6)),
}


def text(word: str) -> bytes:
    return struct.pack(">H", len(word.encode())) + word.encode()


def whole(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def packed(form: int = 2) -> bytes:
    told = whole(len(TOLD)) + b"".join(text(name) + text(value) for name, value in TOLD.items())
    head = "PPK".encode("utf-16-be") + whole(form, 1)
    head += whole(len(told) + 4, 0) + told + whole(0) if form > 1 else whole(0)
    names = whole(len(METRICS)) + b"".join(map(text, METRICS)) + whole(len(GROUPS)) + b"".join(map(text, GROUPS))
    functions = [text(name) + whole(len(groups), *groups) for name, groups in FUNCTIONS]
    names += whole(len(functions)) + b"".join(functions) + whole(len(EVENTS)) + b"".join(map(text, EVENTS))
    threads = []
    for rank, rows in ROWS.items():
        values = [whole(n) + struct.pack(">6d", *row) for n, row in enumerate(rows)]
        event = whole(1, 0, 9) + struct.pack(">4d", 8.0, 8.0, 8.0, 576.0)
        threads.append(whole(rank, 0, 0, len(values)) + b"".join(values) + event)
    return head + names + whole(len(threads)) + b"".join(threads)


def write_files(folder: Path) -> Path:
    """Write the same run as TAU does, a folder for each metric."""
    told = "".join(f"<attribute><name>{n}</name><value>{v}</value></attribute>" for n, v in TOLD.items())
    for n, metric in enumerate(METRICS):
        (folder / f"MULTI__{metric}").mkdir(parents=True)
        for rank, rows in ROWS.items():
            lines = [
                f'"{name}" {row[0]} {row[1]} {row[2 + 2 * n]} {row[3 + 2 * n]} 0 GROUP="{GROUPS[groups[0]]}"'
                for (name, groups), row in zip(FUNCTIONS, rows, strict=True)
            ]
            content = [f"{len(rows)} templated_functions_MULTI_{metric}",
                       f"# Name Calls Subrs Excl Incl ProfileCalls # <metadata>{told}</metadata>", *lines,
                       "0 aggregates", "1 userevents", "# eventname numevents max min mean sumsqr",
                       f'"{EVENTS[0]}" 9 8 8 8 576', ""]  # fmt: skip
            (folder / f"MULTI__{metric}" / f"profile.{rank}.0.0").write_text("\n".join(content))
    return folder


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_same_as_in_files(tmp_path: Path, pack: type[bytes]) -> None:
    (tmp_path / "heat.ppk").write_bytes(pack(packed()))
    assert tau.advisor_sniff(tmp_path / "heat.ppk") == 1
    found, files = tau.advisor_read(tmp_path / "heat.ppk"), tau.advisor_read(write_files(tmp_path / "files"))
    contract.check_value(found, Profile)
    soundness.check_profile(found)
    assert (found.program, found.actual_s, found.ranks) == ("heat", 2.0, 2)
    assert found.regions == files.regions
    for name, values in files.phases[0].arrays.items():
        assert np.array_equal(found.phases[0].arrays[name], values), name
    assert {name: values.tolist() for name, values in found.counts.items()} == {
        name: values.tolist() for name, values in files.counts.items()
    }


def test_the_first_form_says_nothing_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "heat.ppk").write_bytes(packed(form=1))
    assert tau.advisor_read(tmp_path / "heat.ppk").program == ""


def test_every_prefix_and_damaged_numbers_are_refused_or_read(tmp_path: Path) -> None:
    content = packed()
    file = tmp_path / "heat.ppk"
    for length in range(6, len(content), 7):
        file.write_bytes(content[:length])
        with pytest.raises(InputError):
            tau.advisor_read(file)
    random = np.random.default_rng(1)
    for place in random.integers(6, len(content), 400).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(8))
        file.write_bytes(bytes(damaged))
        try:
            soundness.check_profile(tau.advisor_read(file))
        except InputError:
            continue


def test_other_packed_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a text"))
    (tmp_path / "y.gz").write_bytes(gzip.compress(packed())[:9])
    assert tau.advisor_sniff(tmp_path / "x.gz") is None
    assert tau.advisor_sniff(tmp_path / "y.gz") is None
