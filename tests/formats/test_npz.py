from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from native_documents import FULL, WALL, archived, changed, npy
from profile_strategies import plain

from advisor.formats import native
from advisor.formats.native import npz
from advisor.model.errors import InputError


def test_large_arrays_are_mapped_and_read_only(tmp_path: Path) -> None:
    wall = np.arange(8.0).reshape(2, 2, 2)
    profile = native.advisor_read(archived(tmp_path, {**changed("phases", to=[WALL]), "status": None}, wall=wall))
    read = profile.phases[0].arrays["wall_s"]
    assert read.tolist() == wall.tolist()
    base: object = read
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not read.flags.writeable


@pytest.mark.parametrize(
    "wall",
    [
        np.arange(8, dtype=np.float32).reshape(2, 2, 2),
        np.arange(8, dtype=np.int32).reshape(2, 2, 2),
        np.arange(8, dtype=">f8").reshape(2, 2, 2),
        np.asfortranarray(np.arange(8.0).reshape(2, 2, 2)),
        np.arange(4.0).reshape(2, 2),
    ],
)
def test_other_kinds_of_numbers_are_converted(tmp_path: Path, wall: npt.NDArray[Any]) -> None:
    document = {**changed("phases", to=[WALL]), "status": None}
    expected = wall.tolist() if wall.ndim == 3 else wall[..., None].tolist()
    stored = native.advisor_read(archived(tmp_path, document, wall=wall)).phases[0].arrays["wall_s"]
    assert stored.dtype == np.float64
    assert stored.tolist() == expected
    np.savez_compressed(tmp_path / "packed.npz", profile=np.array(json.dumps(document)), wall=wall)
    packed = native.advisor_read(tmp_path / "packed.npz").phases[0].arrays["wall_s"]
    assert packed.tolist() == expected


def test_many_arrays_need_few_file_descriptors(tmp_path: Path) -> None:
    count = 300
    phases = [{"name": f"p{i}", "regions": [0], "wall_s": f"w{i}"} for i in range(count)]
    arrays = {f"w{i}": np.full((1, 2, 1), float(i)) for i in range(count)}
    before = len(os.listdir("/proc/self/fd"))
    profile = native.advisor_read(
        archived(tmp_path, {**changed("phases", to=phases), "status": None, "causes": None}, **arrays)
    )
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert profile.phases[250].arrays["wall_s"].tolist() == [[[250], [250]]]


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"wal": np.zeros((2, 2, 2))}, "did you mean 'wal'"),
        ({"wall": np.zeros((2, 3, 2))}, r"has the shape \(2, 3, 2\), expected \(2, 2, any\)"),
        ({"wall": np.zeros((2, 2, 2)), "more": np.zeros(1)}, "names no array 'more'"),
        ({"wall": np.array([[["a"]]])}, "expected"),
        ({"wall": np.full((2, 2, 2), np.nan)}, r"nan at \[0, 0, 0\] is impossible"),
        ({"wall": np.full((2, 2, 2), -np.inf)}, "impossible"),
        ({"wall": np.array([[[1.0, 2], [3, 4]], [[5, 6], [7, -8]]])}, r"-8 at \[1, 1, 1\]"),
    ],
)
def test_a_mistake_in_an_archive_is_named(tmp_path: Path, arrays: dict[str, Any], reason: str) -> None:
    path = archived(tmp_path, {**changed("phases", to=[WALL]), "status": None}, **arrays)
    with pytest.raises(InputError, match=reason):
        native.advisor_read(path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (trap,))

    path = tmp_path / "run.npz"
    with zipfile.ZipFile(path, "w") as archive:
        member = io.BytesIO()
        np.lib.format.write_array(member, np.array([Trap()], dtype=object), allow_pickle=True)
        archive.writestr("wall.npy", member.getvalue())
        archive.writestr("profile.npy", npy(np.array(json.dumps({**changed("phases", to=[WALL]), "status": None}))))
    with pytest.raises(InputError, match="holds object"):
        native.advisor_read(path)
    assert not trap.exists()


def test_a_header_that_claims_terabytes_is_refused(tmp_path: Path) -> None:
    header = npy(np.zeros(1)).replace(b"'shape': (1,), }" + b" " * 13, b"'shape': (1000000000000,), }"[:29].ljust(29))
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = tmp_path / f"run{compression}.npz"
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("profile.npy", header)
        with pytest.raises(InputError, match=r"claims 8,000,000,000,000 bytes"):
            native.advisor_read(path)


def test_an_archive_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    np.savez_compressed(path, profile=np.zeros(npz.RATIO_FREE + 1, np.uint8))
    with pytest.raises(InputError, match="200 times"):
        native.advisor_read(path)


def test_what_must_be_unpacked_has_a_limit_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "run.npz", profile=np.array("x"), a=np.zeros(1000), b=np.zeros(1000))
    archive = npz.open_archive(tmp_path / "run.npz")
    archive.budget = 12_000
    archive.load_array("a")
    with pytest.raises(InputError, match="read into memory"):
        archive.load_array("b")


def test_a_list_of_members_that_is_too_long_is_refused_unread(tmp_path: Path) -> None:
    path = archived(tmp_path, FULL)
    data = bytearray(path.read_bytes())
    end = data.rfind(b"PK\x05\x06")
    struct.pack_into("<I", data, end + 12, npz.DIRECTORY_LIMIT + 1)
    path.write_bytes(data)
    with pytest.raises(InputError, match="too many members"):
        native.advisor_read(path)


def test_an_archive_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = archived(tmp_path, FULL)
    with path.open("r+b") as stream:
        stream.truncate(npz.FILE_LIMIT + 1)  # sparse
    with pytest.raises(InputError, match="larger than 8 GiB"):
        native.advisor_read(path)


def test_a_member_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("profile.npy", npy(np.array("{}")))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("profile.npy", npy(np.array("{}")))
    with pytest.raises(InputError, match="second member"):
        native.advisor_read(path)


def test_an_archive_in_the_form_for_files_beyond_4_gib_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in (("profile", np.array(json.dumps(FULL))),):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(npy(array))
    assert native.advisor_read(path).program == "heat"


@pytest.mark.parametrize("packed", [False, True])
def test_no_damaged_archive_is_read_as_another_profile(tmp_path: Path, packed: bool) -> None:
    """Every prefix and many flipped bits end in one clean refusal or in the very same profile."""
    document = {**changed("phases", to=[WALL]), "status": None}
    path = tmp_path / "run.npz"
    save = np.savez_compressed if packed else np.savez
    save(path, profile=np.array(json.dumps(document)), wall=np.arange(8.0).reshape(2, 2, 2))
    data = path.read_bytes()
    whole = plain(native.advisor_read(path))
    random = np.random.default_rng(1)
    damaged = [data[:end] for end in random.choice(len(data), 150, replace=False)]
    for bit in random.choice(8 * len(data), 400, replace=False):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        with contextlib.suppress(InputError):
            assert plain(native.advisor_read(path)) == whole
