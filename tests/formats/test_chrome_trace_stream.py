"""Events of Chrome traces in chunks: the same as those of the whole document, wherever chunks end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from advisor.formats.chrome_trace import stream
from advisor.formats.chrome_trace.stream import Event, EventStream
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_FRAMES: list[dict[str, Any]] = [{"name": "f", "args": {}}, {"ph": "X", "deep": [{"name": "g"}, {"name": "h"}]}]


def list_events() -> list[dict[str, Any]]:
    """Events that are hard to cut: boundaries in strings and in nested lists, names beyond ASCII."""
    events: list[dict[str, Any]] = []
    for number in range(300):
        name = ("kernel", 'a "},\n{"ph": "X"}, {"name": "b"', "Ümläut ↑", "\\")[number % 4]
        args: dict[str, Any] = {"correlation": number, "frames": _FRAMES if number % 3 else [], "grid": [1, 2, number]}
        events.append({"ph": "X", "name": name, "pid": 1, "tid": str(number), "ts": number + 0.5, "args": args})
    return events


def read_events(path: Path) -> list[Event]:
    return [event for batch in EventStream(path).iterate_batches() for event in batch]


@pytest.mark.parametrize("chunk", [64, 1000, 7777, 1 << 22])
@pytest.mark.parametrize("indent", [None, 2])
def test_chunks_may_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    monkeypatch.setattr(stream, "_CHUNK", chunk)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list_events(), "more": _FRAMES}, indent=indent))
    found = read_events(path)
    assert [(event.name, event.tid, event.ts) for event in found] == [
        (event["name"], event["tid"], event["ts"]) for event in list_events()
    ]
    assert [event.args.grid[2] for event in found if isinstance(event.args, stream.EventArgs)] == list(range(300))


def test_what_only_python_takes_is_read_as_well(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": list_events()}).replace('"ts": 7.5', '"ts": NaN')
    path = tmp_path / "trace.json"
    path.write_bytes(text.encode().replace(b"kernel", b"k\xe9rnel", 1))
    found = read_events(path)
    assert len(found) == 300
    assert found[7].ts != found[7].ts
    assert found[0].name == "k\ufffdrnel"


@pytest.mark.parametrize("chunk", [64, 1 << 22])
def test_shapes_of_operators_are_read_wherever_a_chunk_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(stream, "_CHUNK", chunk)
    args = {"Input Dims": [[64, 3], []], "Input type": ["float", "Scalar"]}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", "name": "gloo:all_reduce", "args": args}] * 3}))
    found = [event.args for event in read_events(path)]
    assert len(found) == 3
    for each in found:
        assert isinstance(each, stream.EventArgs)
        assert stream.read_tensors(each) == [("float", [64, 3]), ("Scalar", [])]


def test_things_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([3, "x", None, [], *list_events()]))
    assert len(read_events(path)) == 300


def test_a_list_without_an_end_says_where(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": list_events()})[:-40])
    with pytest.raises(InputError, match="byte"):
        read_events(path)


@pytest.mark.parametrize("end", ["", ",", ",\n "])
def test_a_bare_list_may_lack_its_end(tmp_path: Path, end: str) -> None:
    """The format allows it, so that programs can end at any time; the reader says that it was so."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(list_events()).removesuffix("]") + end)
    whole = EventStream(path)
    assert sum(map(len, whole.iterate_batches())) == 300
    assert whole.open_ended
    path.write_text(json.dumps(list_events())[:-9])
    with pytest.raises(InputError, match="byte"):
        read_events(path)
