"""Files of Kokkos Tools' simple kernel timer: kernels, calls and seconds of each process."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from advisor.analysis import soundness
from advisor.analysis.quality import HIDDEN
from advisor.formats import kokkos_timer
from advisor.model.errors import InputError
from advisor.model.records import Profile
from advisor.support import contract

HERE = Path(__file__).parents[1] / "profiles" / "kokkos_timer"


def test_processes_of_a_folder_are_ranks() -> None:
    """The stencil takes 10 ms on one process and 20 ms on the other, five times each."""
    assert kokkos_timer.advisor_sniff(HERE / "ranks") == 1
    profile = kokkos_timer.advisor_read(HERE / "ranks")
    contract.check_value(profile, Profile)
    soundness.check_profile(profile)
    stencil = [region.name for region in profile.regions].index("Heat::Stencil")
    assert profile.phases[0].arrays["wall_s"][stencil, :, 0].tolist() == pytest.approx([0.050616, 0.1092], abs=1e-5)
    assert profile.counts["calls"][stencil].tolist() == [5, 5]
    notes = {note.name: note.text for note in profile.notes}
    assert HIDDEN in notes
    assert "Heat::step" in notes["regions left out"]


def test_binary_files_hold_the_same() -> None:
    assert kokkos_timer.advisor_sniff(HERE / "node-25024.dat") == 1
    profile = kokkos_timer.advisor_read(HERE / "node-25024.dat")
    contract.check_value(profile, Profile)
    assert [region.name for region in profile.regions][1:] == ["Heat::Norm", "Heat::Stencil"]
    assert profile.ranks == 1


def test_files_of_several_runs_are_no_ranks(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(HERE / "ranks", tmp_path / "ranks"))
    text = (folder / "node-25027.json").read_text()
    (folder / "node-25031.json").write_text(text.replace("Heat::Norm", "Heat::Other"))
    assert kokkos_timer.advisor_sniff(folder) is None
    (folder / "node-25031.json").write_text(text.replace("     0.140", "     9.140"))
    assert kokkos_timer.advisor_sniff(folder) is None


def test_what_contradicts_is_refused(tmp_path: Path) -> None:
    text = (HERE / "ranks" / "node-25027.json").read_text()
    for old, new, reason in (
        ("0.050616", "0.950616", "contradict the time of a call"),
        ("     0.150", "     0.250", "states 0.250 s of kernels"),
        ('"call-count"', '"calls"', "'call-count' is missing"),
    ):
        (tmp_path / "a-1.json").write_text(text.replace(old, new, 1))
        with pytest.raises(InputError, match=reason):
            kokkos_timer.advisor_read(tmp_path / "a-1.json")
    content = bytearray((HERE / "node-25024.dat").read_bytes())
    struct.pack_into("<I", content, len(content) - 4, 9)
    (tmp_path / "a-1.dat").write_bytes(content)
    with pytest.raises(InputError, match="impossible times"):
        kokkos_timer.advisor_read(tmp_path / "a-1.dat")


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(bytes(200))
    (tmp_path / "b.json").write_text('{"kokkos": 1}')
    assert kokkos_timer.advisor_sniff(tmp_path / "a.dat") is None
    assert kokkos_timer.advisor_sniff(tmp_path / "b.json") is None
    assert kokkos_timer.advisor_sniff(tmp_path) is None
