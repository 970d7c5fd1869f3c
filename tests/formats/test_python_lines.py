"""What lines of Python ask of the interpreter, by their source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from advisor.formats.recording.python_lines import LineKind, read_line_kinds

if TYPE_CHECKING:
    from pathlib import Path

SEARCHES, GROWS = LineKind.SEARCHES, LineKind.GROWS
LATER = 4e9


def kinds_of(folder: Path, source: str, before_s: float = LATER) -> dict[int, LineKind]:
    file = folder / "program.py"
    file.write_text(source, "utf-8")
    return dict(read_line_kinds(str(file), before_s))


@pytest.mark.parametrize(
    "line", ["if a not in b: pass", "at = b.index(a)", "x = c[b.index(a)]", "b.remove(a)", "n = b.count(a)"]
)
def test_lines_that_search(tmp_path: Path, line: str) -> None:
    assert kinds_of(tmp_path, f"x = 1\n{line}\n") == {2: SEARCHES}


@pytest.mark.parametrize(
    "line",
    [
        "text += a", "text = text + a + b", "self.text = self.text + a", "b.pop(0)", "b.insert(0, a)", "b = b[1:]",
    ],
)  # fmt: skip
def test_lines_that_copy_what_grows_or_shrinks(tmp_path: Path, line: str) -> None:
    found = kinds_of(tmp_path, f"\n{line}\n")
    assert {number: kind & ~LineKind.COMBINES for number, kind in found.items()} == {2: GROWS}


@pytest.mark.parametrize("line", ["b = np.append(b, a)", "b = pd.concat([b, a])"])
def test_lines_that_make_a_new_array_or_table_of_the_old_one(tmp_path: Path, line: str) -> None:
    assert kinds_of(tmp_path, f"\n{line}\n") == {2: GROWS | LineKind.EXTENDS}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("r = u + c * (v - w)", LineKind.COMBINES),
        ("u = u + c * v", GROWS | LineKind.COMBINES),
        ("f(a * b ** 2)", LineKind.COMBINES),
        ("u = c * v", None),
        ("u = v[i * n + 1]", None),
        ("u = (a & b) | c", None),
    ],
)
def test_lines_that_combine_arrays(tmp_path: Path, line: str, kind: LineKind | None) -> None:
    assert kinds_of(tmp_path, f"\n{line}\n").get(2) == kind


@pytest.mark.parametrize("line", ["import numba", "from numba import njit"])
def test_lines_that_load_modules(tmp_path: Path, line: str) -> None:
    assert kinds_of(tmp_path, f"\n{line}\n") == {2: LineKind.IMPORTS}


@pytest.mark.parametrize("line", ["comm.send(a, 1)", "a = comm.recv()", "b = comm.allgather(a)"])
def test_lines_that_send_objects(tmp_path: Path, line: str) -> None:
    assert kinds_of(tmp_path, f"\n{line}\n") == {2: LineKind.SENDS}


@pytest.mark.parametrize(
    "line",
    [
        "comm.Send(a, 1)", "send(a)",
        "text = a + text2", "b.pop()", "b.insert(1, a)", "b = c[1:]", "for a in b: pass", "n += 1",
        "n += len(bytes(a))", "n += out.write(a) + 1", 'if a in ("GET", "POST"): pass', "if a in {1, 2}: pass",
    ],
)  # fmt: skip
def test_lines_that_do_neither(tmp_path: Path, line: str) -> None:
    assert kinds_of(tmp_path, f"{line}\n") == {}


def test_a_statement_of_several_lines_does_so_on_each(tmp_path: Path) -> None:
    assert kinds_of(tmp_path, "text = (\n    text\n    + a\n)\n") == dict.fromkeys(range(1, 5), GROWS)


def test_nothing_is_known_of_a_source_that_was_changed_since_is_damaged_or_no_file(tmp_path: Path) -> None:
    assert kinds_of(tmp_path, "a in b\n", before_s=1.0) == {}
    assert kinds_of(tmp_path, "a in (\n") == {}
    assert kinds_of(tmp_path, "(" * 100_000) == {}
    os.mkfifo(tmp_path / "pipe")
    assert read_line_kinds(str(tmp_path / "pipe"), LATER) == {}
    assert read_line_kinds(str(tmp_path / "absent.py"), LATER) == {}
