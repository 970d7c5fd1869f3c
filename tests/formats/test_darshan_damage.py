"""Damaged and absurd logs of Darshan: one message that names file and place, or the same profile."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import damage
import numpy as np
import pytest
from darshan_logs import rewritten
from patience import PATIENCE_S

from advisor.formats import darshan
from advisor.formats.darshan import container, logs
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.formats.darshan.child import LogContents, RawTable

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("darshan") is None,
    reason="needs the package darshan, which has wheels up to Python 3.12: pip install 'gapwatch[cluster]'",
)

LOG = Path(__file__).parents[1] / "profiles" / "darshan" / "faultlab-io256" / "log.darshan"
HEADER = 1328


def written(folder: Path, content: bytes | bytearray) -> Path:
    path = folder / "log.darshan"
    path.write_bytes(content)
    return path


def test_every_prefix_is_refused(tmp_path: Path) -> None:
    damage.every_prefix(LOG, tmp_path, darshan.advisor_read)


def test_a_flipped_bit_anywhere_changes_nothing_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "TRIED", 300 if damage.FULL else 30)  # each that is not refused starts a process
    assert damage.bit_flips(LOG, tmp_path, darshan.advisor_read) == 0


def is_refused(path: Path, read: Callable[[Path], object] = container.read_unpacked_sizes) -> bool:
    try:
        read(path)
    except InputError as error:
        return error.path == path
    return False


def test_every_flipped_bit_behind_the_header_is_found(tmp_path: Path) -> None:
    content, whole = LOG.read_bytes(), darshan.advisor_read(LOG)
    for bit in range(8 * HEADER, 8 * len(content), 3 if damage.FULL else 11):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path = written(tmp_path, changed)
        assert is_refused(path) or damage.same(darshan.advisor_read(path), whole), "it does not only fill up a byte"


@pytest.mark.parametrize(
    ("at", "value", "reason", "place"),
    [
        (16, 7, "kind of compression is unknown", "byte 16"),
        (16, 1, "compressed part is damaged", "byte 1328"),
        (32, 0, "parts do not follow each other", "byte 234"),
        (40, 9, "parts do not follow each other", "byte 1551"),
        (80, 9, "empty part begins inside another", "byte 80"),
        (200, 105, "parts do not follow each other", "byte 2102"),
    ],
)
def test_a_header_that_contradicts_the_file_is_refused(
    tmp_path: Path, at: int, value: int, reason: str, place: str
) -> None:
    content = bytearray(LOG.read_bytes())
    content[at : at + 2] = value.to_bytes(2, "little")
    with pytest.raises(InputError, match=reason) as caught:
        darshan.advisor_read(written(tmp_path, content))
    assert caught.value.place == place


@pytest.mark.parametrize("module", [1, 9])
def test_records_of_another_version_than_the_header_says_are_refused(tmp_path: Path, module: int) -> None:
    content = bytearray(LOG.read_bytes())
    content[32 + 16 * 65 + 4 * module] -= 1
    with pytest.raises(InputError, match=r"no part holds|a file of rank"):
        darshan.advisor_read(written(tmp_path, content))


def test_what_follows_the_last_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="goes on behind its last part"):
        darshan.advisor_read(written(tmp_path, LOG.read_bytes() + b"\0"))


@pytest.mark.parametrize("content", [b"", b"3.41", b"no log at all", bytes(4096)])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    assert darshan.advisor_sniff(path) is None
    with pytest.raises(InputError):
        darshan.advisor_read(path)


def test_what_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "UNPACKED_LIMIT", 2000)
    with pytest.raises(InputError, match="unpacks to more than 2,000 bytes"):
        darshan.advisor_read(LOG)
    monkeypatch.setattr(container, "FILE_LIMIT", 2000)
    with pytest.raises(InputError, match="larger than 2,000 bytes"):
        darshan.advisor_read(LOG)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.abort()", r"crashed \(SIGABRT\)"),
        ("import time; time.sleep(3600)", "did not end in 1 s"),
        ("raise ValueError('what the last line says')", "what the last line says"),
        ("import sys; sys.exit(3)", "no reason given"),
        (
            "import marshal, sys; sys.stdout.buffer.write(marshal.dumps('a record cannot be read'))",
            "cannot be read: the",
        ),
    ],
)
def test_the_process_that_reads_may_die(program: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_START", program)
    monkeypatch.setattr(logs, "PATIENCE_S", 1.0 if "sleep" in program else PATIENCE_S)
    with pytest.raises(InputError, match=reason):
        darshan.advisor_read(LOG)


@pytest.fixture(scope="module")
def contents() -> LogContents:
    return logs._run_child(LOG)


def changed(contents: LogContents, column: str, values: list[float], kind: type[np.generic]) -> LogContents:
    """The contents with the first numbers of a column of POSIX set: ranks, counters or times."""
    posix: dict[str, Any] = {**contents["tables"]["POSIX"]}
    numbers = np.frombuffer(posix[column], kind).copy()
    numbers[: len(values)] = values
    posix[column] = numbers.tobytes()
    made: LogContents = {**contents, "tables": {**contents["tables"], "POSIX": cast("RawTable", posix)}}
    return made


def test_impossible_numbers_are_refused(contents: LogContents) -> None:
    for name, value in (("processes", 0), ("processes", 1 << 40), ("seconds", 0.0), ("seconds", float("nan"))):
        made: Any = {**contents, name: value}
        with pytest.raises(InputError, match="impossible"):
            logs._check_contents(LOG, made)


@pytest.mark.parametrize(
    ("column", "values", "kind", "reason"),
    [
        ("ranks", [2], np.int64, "rank 2 in a run of 2 processes"),
        ("ranks", [-2], np.int64, "a file of rank"),
        ("counters", [-7], np.int64, "POSIX_OPENS is negative"),
        ("times", [0.0] * 8 + [float("nan")], np.float64, "POSIX_F_READ_TIME holds impossible seconds"),
        ("times", [0.0] * 9 + [1e12], np.float64, "POSIX_F_WRITE_TIME holds impossible seconds"),
    ],
)
def test_impossible_records_are_refused(
    contents: LogContents, column: str, values: list[float], kind: type[np.generic], reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        logs._check_contents(LOG, changed(contents, column, values, kind))
    assert caught.value.place == "POSIX"


NAMES, POSIX, HEATMAP = 0, 2, 16


def test_a_log_that_is_written_anew_is_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, rewritten(LOG.read_bytes(), NAMES, lambda part: part))
    assert damage.same(darshan.advisor_read(path), darshan.advisor_read(LOG))


@pytest.mark.parametrize(
    "name", [b"/a/operator[]<int>, 100 %", b"\xff\xfe\x1b[31m \n\t", "/ä/日本".encode(), b"x" * 4000]
)
def test_names_survive(tmp_path: Path, name: bytes) -> None:
    old = b"/tmp/work/prof/faultlab.0.dat"
    path = written(tmp_path, rewritten(LOG.read_bytes(), NAMES, lambda part: part.replace(old, name)))
    causes = darshan.advisor_read(path).causes
    assert causes is not None
    assert name.decode("utf-8", "surrogateescape") in causes.targets


def test_a_processes_count_that_no_run_has_is_refused(tmp_path: Path) -> None:
    def many(part: bytes) -> bytes:
        return part[:40] + (1 << 40).to_bytes(8, "little") + part[48:]

    with pytest.raises(InputError, match="1099511627776 processes are impossible"):
        darshan.advisor_read(written(tmp_path, rewritten(LOG.read_bytes(), -1, many)))


@pytest.mark.parametrize("keep", [8, 100, 703, 705, 1400])
def test_a_part_that_ends_inside_a_record_is_refused(tmp_path: Path, keep: int) -> None:
    path = written(tmp_path, rewritten(LOG.read_bytes(), POSIX, lambda part: part[:keep]))
    with pytest.raises(InputError):
        darshan.advisor_read(path)


@pytest.mark.parametrize("bins", [1 << 20, 1 << 40, (1 << 63) - 1, 1 << 63])
def test_a_heat_map_that_promises_more_than_there_is_is_refused_or_left_out(tmp_path: Path, bins: int) -> None:
    def wide(part: bytes) -> bytes:
        return part[:24] + bins.to_bytes(8, "little") + part[32:]

    path = written(tmp_path, rewritten(LOG.read_bytes(), HEATMAP, wide))
    assert is_refused(path, darshan.advisor_read) or damage.same(darshan.advisor_read(path), darshan.advisor_read(LOG))


def test_a_module_without_records_says_nothing(tmp_path: Path) -> None:
    found = darshan.advisor_read(written(tmp_path, rewritten(LOG.read_bytes(), POSIX, lambda part: b"")))
    assert not any(region.name.startswith("POSIX") for region in found.regions)


def test_the_package_is_imported_in_a_process_of_its_own_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "darshan", raising=False)  # another test may have imported it
    assert logs.read_log(LOG).processes == 2
    assert "darshan" not in sys.modules
