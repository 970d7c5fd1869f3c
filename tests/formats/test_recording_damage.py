"""Damaged recordings, cut off anywhere or with single bits turned over: refused in one message, or sound."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import damage
import numpy as np
import pytest
from test_recording import write_rank

from advisor.advice import facts
from advisor.analysis import bounds, gaps, soundness
from advisor.formats import recording
from advisor.model.errors import InputError
from advisor.model.records import Note, Profile
from advisor.support import contract
from advisor.trace.recordings.command import current_command, write_command
from advisor.trace.recordings.layout import SAMPLE
from advisor.trace.recordings.passes import Conclusions, write_conclusions
from advisor.trace.recordings.places import CodePlace, write_places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = ("node.10.process", "node.10.0.records", "node.11.0.records", "node.10.0.samples", "places", "command",
         "passes.json")  # fmt: skip
#: Of each file so many prefixes and so many flips.
TRIED = damage.TRIED // 10


def write_recording(folder: Path) -> None:
    """A recording of two ranks with every file that there can be."""
    for rank in (0, 1):
        write_rank(folder, rank)
        process = folder / f"node.{10 + rank}.process"
        more = "machine begin 1 2 3 4 5 6 7 8 100\nmachine end 9 9 9 9 9 9 9 9 100\nsampling 250\nprices 1 2 3 4 5\n"
        process.write_text(process.read_text().replace("thread 0 10", f"{more}thread 0 10"))
    samples = np.zeros(3, dtype=SAMPLE)
    samples["time_ns"] = (1200, 4000, 7000)
    samples["cpu_ns"] = (100, 200, 300)
    samples["address"] = 0x1100
    samples.tofile(folder / "node.10.0.samples")
    write_places(folder, {("/home/me/app", 0x500): (CodePlace("solve", "solve.c", 7),)})
    write_command(folder, current_command(["mpirun", "-n", "2", "./app"], {}))
    write_conclusions(folder, Conclusions((Note("second run", "much the same", 0.1),), 0.5))


def damaged_copies(content: bytes) -> Iterator[bytes]:
    """Yield the file cut off at some bytes, then with some bits turned over."""
    lengths = range(len(content))
    yield from (content[:length] for length in random.Random(1).sample(lengths, min(TRIED, len(lengths))))
    bits = range(8 * len(content))
    for bit in random.Random(2).sample(bits, min(TRIED, len(bits))):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_recording_is_refused_or_sound(tmp_path: Path, name: str) -> None:
    sound = tmp_path / "sound"
    sound.mkdir()
    write_recording(sound)
    folder = tmp_path / "damaged"
    shutil.copytree(sound, folder)
    assert read_soundly(folder) is not None
    for content in damaged_copies((sound / name).read_bytes()):
        (folder / name).write_bytes(content)
        read_soundly(folder)


def read_soundly(folder: Path) -> Profile | None:
    """Return a profile of which advice can be made, None where the recording is refused."""
    try:
        found = recording.advisor_read(folder)
    except InputError:
        return None
    contract.check_value(found, Profile)
    soundness.check_profile(found)
    levels = bounds.compute_bounds(found, None)
    facts.collect_facts(found, levels, gaps.attribute_gaps(found, levels))
    return found
