"""Damaged, foreign and absurd Caliper files: refused with a place, or read with a note."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import damage
import pytest
from caliper_files import as_split, native, write_split

from advisor.formats import caliper
from advisor.model.errors import InputError

RECORDED = Path(__file__).parents[1] / "profiles" / "caliper"
NATIVE = RECORDED / "small" / "rank-0.cali"
JSON = RECORDED / "faultlab-imbalance30" / "hatchet" / "region_profile.json"


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A small json-split with ends of regions, inclusive times, means and counts."""
    records = json.loads((RECORDED / "faultlab-imbalance30" / "profile.json").read_text())
    few = [
        record
        for record in records
        if record.get("iteration#timestep", 0) == 0 and "timestep" not in record.get("path", "")
    ]
    for rank in (0, 1):
        for n, record in enumerate(record for record in few if record["mpi.rank"] == rank):
            record["aggregate.slot"] = n
    (tmp_path / "made").mkdir()
    return as_split(few, tmp_path / "made" / "split.json", mpi_world_size="2")


def test_a_native_file_cut_off_anywhere(tmp_path: Path) -> None:
    damage.every_prefix(NATIVE, tmp_path, caliper.advisor_read)


def test_a_list_of_records_cut_off_anywhere(tmp_path: Path) -> None:
    damage.every_prefix(JSON, tmp_path, caliper.advisor_read)


def test_a_json_split_cut_off_anywhere(tmp_path: Path, split: Path) -> None:
    damage.every_prefix(split, tmp_path, caliper.advisor_read)


def test_a_file_of_several_cut_off_anywhere(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(RECORDED / "faultlab-imbalance30", tmp_path / "run"))
    content = (directory / "rank-1.cali").read_bytes()
    whole = caliper.advisor_read(directory)
    for length in range(0, len(content), 997):
        (directory / "rank-1.cali").write_bytes(content[:length])
        try:
            found = caliper.advisor_read(directory)
        except InputError:
            continue
        assert found.ranks < 2 == found.ranks_expected or len(found.notes) > len(whole.notes), length


def test_bits_of_a_native_file_turned_over(tmp_path: Path) -> None:
    tried = damage.TRIED
    assert damage.bit_flips(NATIVE, tmp_path, caliper.advisor_read) < 0.1 * tried, (
        "more than names and numbers told once"
    )


def test_bits_of_a_json_split_turned_over(tmp_path: Path, split: Path) -> None:
    tried = damage.TRIED
    assert damage.bit_flips(split, tmp_path, caliper.advisor_read) < 0.1 * tried, (
        "more than names and numbers told once"
    )


def test_bits_of_a_list_turned_over(tmp_path: Path) -> None:
    """These records hold a name, a rank and a time, and nothing twice: every digit and letter may change unseen."""
    tried = damage.TRIED
    assert damage.bit_flips(JSON, tmp_path, caliper.advisor_read) < 0.5 * tried


def test_another_time_anywhere_is_noticed(tmp_path: Path) -> None:
    """Sums, means, counts and times with and without what was called tell of each other."""
    lines = NATIVE.read_text().splitlines(keepends=True)
    whole = caliper.advisor_read(NATIVE)
    tried = 0
    for number, line in enumerate(lines):
        if not line.startswith("__rec=ctx") or "=106=" not in line:
            continue
        head, _, data = line.partition(",data=")
        values = data.split("=")
        place = head.partition("attr=")[2].split("=").index("106")
        values[place] = str(int(values[place]) * 2 + 5000)
        changed = [*lines[:number], f"{head},data={'='.join(values)}", *lines[number + 1 :]]
        (tmp_path / "x.cali").write_text("".join(changed))
        found = caliper.advisor_read(tmp_path / "x.cali")
        assert damage.same(found, whole) or {note.name for note in found.notes} & {
            "contradictory records",
            "contradictory times",
        }
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("drop", [20, 60, 90])
def test_a_lost_record_is_noticed(tmp_path: Path, drop: int) -> None:
    lines = NATIVE.read_text().splitlines(keepends=True)
    records = [n for n, line in enumerate(lines) if line.startswith("__rec=ctx")]
    gone = records[drop * (len(records) - 1) // 100]
    (tmp_path / "x.cali").write_text("".join(lines[:gone] + lines[gone + 1 :]))
    assert "records missing" in {note.name for note in caliper.advisor_read(tmp_path / "x.cali").notes}


def test_traces_of_caliper_1_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.cali").write_text("__rec=node,id=0,attr=9,data=usr\n__rec=node,id=1,attr=9,data=int\n")
    with pytest.raises(InputError, match="a trace of Caliper 1"):
        caliper.read_call_paths(tmp_path / "x.cali")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("__rec=ctx,ref=999,attr=106,data=5\n", "node 999 is not defined"),
        ("__rec=ctx,ref=x,attr=106,data=5\n", "'x' is not a node number"),
        ("__rec=ctx,attr=106,data=5=6\n", "as many attributes as values"),
        ("__rec=ctx,attr=106,data=five\n", "'five' is not a finite number for sum#time.duration.ns"),
        ("__rec=ctx,attr=106,data=nan\n", "not a finite number"),
        ("__rec=ctx,attr=106,data=1e999\n", "not a finite number"),
        ("__rec=ctx,attr=106,data=-1\n", "-1 is impossible"),
        ("__rec=ctx,attr=106,data=1e19\n", "1e.19 is impossible"),
        ("__rec=ctx,attr=94=106,data=0.5=1\n", "0.5 is impossible for mpi.rank"),
        ("__rec=ctx,attr=94=106,data=99999999=1\n", "impossible for mpi.rank"),
        ("__rec=ctx,attr=3=106,data=0=1\n", "node 3 is not an attribute"),
        ("__rec=node,id=20,attr=8,data=other,parent=18\n", "node 20 is defined twice"),
        ("__rec=node,id=500,attr=20\n", "a node without id, attr or data"),
        ("__rec=node,id=500,attr=20,data=x,parent=500\n", "node 500 is not defined"),
        ("__rec=node,id=500,attr=20,data=x,data=y\n", "not a Caliper record"),
        ("__rec=what,id=1\n", "unknown record"),
        ("nothing of it\n", "not a Caliper record"),
        ("__rec=globals,ref=3\n__rec=ctx,attr=106,data=5\n", "several profiles in one file"),
        ("__rec=ctx,attr=106,data=5", "ends in the middle of a line"),
        ("__rec=ctx,attr=106,data=" + "5" * (1 << 20) + "\n", "a line of more than"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    file = native(tmp_path / "x.cali", line, end="" if not line.endswith("\n") else "__rec=globals,ref=3\n")
    with pytest.raises(InputError, match=reason) as caught:
        caliper.read_call_paths(file)
    assert caught.value.place is not None
    assert caught.value.path == file


PATH = [{"label": "main", "column": "path"}]


@pytest.mark.parametrize(
    ("rows", "names", "nodes", "reason"),
    [
        ([[0, 1.5, 7]], ["mpi.rank", "time", "path"], PATH, "7 is not a node for path"),
        ([[0, 1.5, 0.5]], ["mpi.rank", "time", "path"], PATH, "0.5 is not a node for path"),
        ([[0, -1.5, 0]], ["mpi.rank", "time", "path"], PATH, "-1.5 is impossible for time"),
        ([[0.5, 1.5, 0]], ["mpi.rank", "time", "path"], PATH, "0.5 is impossible for mpi.rank"),
        ([[0, 1.5]], ["mpi.rank", "time", "path"], PATH, "rows from 1 on"),
        ([[0, "x", 0]], ["mpi.rank", "time", "path"], PATH, r"`\$\[0\]\[1\]`"),
        ([[0, 1.5, 0]], ["mpi.rank", "time", "what"], PATH, "no column with the path of regions"),
        ([[0, 1.5, 0]], ["mpi.rank", "bytes", "path"], PATH, "holds no times"),
        ([], ["mpi.rank", "time", "path"], PATH, "holds no records"),
        (
            [[0, 1.5, 0]],
            ["mpi.rank", "time", "path"],
            [{"label": "x", "column": "path", "parent": 0}],
            "before its child",
        ),
        ([[0, 1.5, 0]], ["time", "time", "path"], PATH, "columns"),
    ],
)
def test_a_wrong_row_is_named(
    tmp_path: Path, rows: list[list[object]], names: list[str], nodes: list[dict[str, object]], reason: str
) -> None:
    file = write_split(tmp_path / "x.json", rows, names, nodes, [True, True, False])
    with pytest.raises(InputError, match=reason):
        caliper.read_call_paths(file)


def test_rows_of_other_lengths_are_refused(tmp_path: Path) -> None:
    """Even where all rows together have the numbers that they should."""
    rows: list[list[object]] = [[0, 1.5], [0, 0, 1.5, 0]]
    file = write_split(tmp_path / "x.json", rows, ["mpi.rank", "time", "path"], PATH, [True, True, False])
    with pytest.raises(InputError, match="rows from 1 on"):
        caliper.read_call_paths(file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"path":"main","time":"x"}]', "'x' is not a number for time"),
        ('[{"path":1,"time":2}]', "expected a string for path"),
        ('[{"region":"main","time":2}]', "separate-nested"),
        ('[{"path":"main","mpi.rank":0}]', "holds no times"),
        ('[{"path":"main","time":1},{"path":"main","time":{}}]', "records from 1 on"),
        ('[{"path":"main","time":NaN}]', "damaged or cut off"),
        ('[{"path":"main","time":1', "is cut off"),
        ('{"records": [{"path":"main","time":1}], "globals": []}', "globals"),
        ("plain words", "is not a Caliper profile"),
        ("", "is not a Caliper profile"),
        ('{"data": [' + "[" * 100_000, "."),
        ('{"data": [[1]], "columns": ["time"]}', "has no column_metadata and no nodes"),
    ],
)
def test_wrong_json_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=reason):
        caliper.read_call_paths(tmp_path / "x.json")


def test_bytes_that_are_no_text_are_refused_in_json(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'[{"path":"caf\xe9","time":1}]')
    with pytest.raises(InputError):
        caliper.read_call_paths(tmp_path / "x.json")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        caliper.read_call_paths(tmp_path / "none.cali")
