"""Damaged Paraver traces: refused, or read with a note; states and events say twice how long calls take."""

from __future__ import annotations

import gzip
import shutil
from typing import TYPE_CHECKING

import damage
import paraver_files
import pytest

from advisor.formats import paraver
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Profile

SMALL = paraver_files.HERE / "npb-bt.S.1"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A recorded trace of one rank, unpacked, with its names."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "trace.prv").write_bytes(gzip.decompress((SMALL / "trace.prv.gz").read_bytes()))
    for folder in (tmp_path, tmp_path / "whole"):
        shutil.copy(SMALL / "trace.pcf", folder)
    return tmp_path / "whole" / "trace.prv"


def test_a_trace_cut_off_anywhere(small: Path, tmp_path: Path) -> None:
    damage.every_prefix(small, tmp_path, paraver.advisor_read)


def test_names_cut_off_anywhere(small: Path, tmp_path: Path) -> None:
    shutil.copy(small, tmp_path)
    names = small.with_name("trace.pcf")
    text = names.read_text()
    names.write_text(text[text.index("EVENT_TYPE") : text.index("GRADIENT_COLOR")] + text[text.rindex("EVENT_TYPE") :])

    def read(_: Path) -> Profile:
        return paraver.advisor_read(tmp_path / "trace.prv")

    damage.every_prefix(names, tmp_path, read, tmp_path)


def test_a_packed_trace_cut_off_anywhere(tmp_path: Path) -> None:
    shutil.copy(SMALL / "trace.pcf", tmp_path)
    damage.every_prefix(SMALL / "trace.prv.gz", tmp_path, paraver.advisor_read)


def test_bits_turned_over(small: Path, tmp_path: Path) -> None:
    tried = damage.TRIED
    assert damage.bit_flips(small, tmp_path, paraver.advisor_read) < 0.01 * tried


def test_bits_turned_over_in_a_packed_trace(tmp_path: Path) -> None:
    shutil.copy(SMALL / "trace.pcf", tmp_path)
    assert damage.bit_flips(SMALL / "trace.prv.gz", tmp_path, paraver.advisor_read) == 0


@pytest.mark.parametrize(
    "content",
    [
        b"#Paraver (",
        b"#Paraver (a):10_ns:1(1):1:1(1:1),0\n",
        b"#Paraver (a):10_ns:1(1):1:1(1:1),0\n\0\n",
        b"#Paraver (a):10_ns:1(1):1:1(1:1),1\nc:1:1:1:2\n",
        b"#Paraver (a):10_ns:1(1):1:1(1:1),1\nc:1:1:9:1\n",
        b"#Paraver (a):" + b"9" * 40 + b"_ns:1(1):1:1(1:1),0\n",
        b"#Paraver (a):10_ns:1(1):1:1(1:1),0\n2:1:1:1:1:5:" + b"9" * 30 + b":1\n",
        b"#Paraver (a):10_ns:1(1):1:1(1:1),0\r\n2:1:1:1:1:5:1:1\r\n",
    ],
)
def test_hostile_content_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trace.prv").write_bytes(content)
    with pytest.raises(InputError):
        paraver.advisor_read(tmp_path / "trace.prv")
