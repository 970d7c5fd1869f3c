from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_documents import FULL, changed, written
from profile_strategies import plain

from advisor.formats import native
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = jsonschema.Draft202012Validator(native.load_schema())


@pytest.mark.parametrize(
    ("document", "place", "reason"),
    [
        (changed("actual_s", to=float("nan")), "actual_s", "NaN"),
        (changed("actual_s", to=0), "actual_s", "took no time"),
        (changed("actual_s", to="10"), "actual_s", "expected a number, found \"10\""),
        (changed("actual_s", to=True), "actual_s", "expected a number"),
        (changed("run", to=None), None, "'run' is missing"),
        (changed("buidl", to="x"), None, "did you mean 'build'"),
        (changed("regions", 0, "lnie", to=3), "regions[0]", "did you mean 'line'"),
        (changed("regions", 0, "line", to=-3), "regions[0].line", "at least 0"),
        (changed("regions", 0, "line", to=2**70), "regions[0].line", "too large for 63 bits"),
        (changed("regions", 0, "name", to="\ud800"), "regions[0].name", "surrogate"),
        (changed("regions", 0, "name", to="x" * 10_001), "regions[0].name", "10,001 characters"),
        (changed("processors", to=0), "processors", "at least 1"),
        (changed("processors", to=10**9), "processors", "more than"),
        (changed("regions", to=[{}] * 100_001), "regions", "more than 100,000"),
        (changed("processors", 1, "thread", to=0), "processors", "same rank and thread"),
        (changed("phases", 0, "kind", to="paralel"), "phases[0].kind", "did you mean 'parallel'"),
        (changed("phases", 0, "kind", to="whole"), "phases", "there are others beside"),
        (changed("phases", 0, "regions", to=[0, 2]), "phases[0].regions", "an index of no region"),
        (changed("phases", 0, "regions", to=[0, 0]), "phases[0].regions", "the same region"),
        (changed("phases", 0, "regions", to=[0, 1.5]), "phases[0].regions", "integers only"),
        (changed("phases", 0, "wall_s", 1, 0, 1, to=-1), "phases[0].wall_s", "-1 at [1, 0, 1]"),
        (changed("phases", 0, "wall_s", 1, 0, 1, to=float("inf")), "phases[0].wall_s[1][0][1]", "Infinity"),
        (changed("phases", 0, "wall_s", 1, 0, 1, to="1"), "phases[0].wall_s[1][0][1]", "expected a number"),
        (changed("phases", 0, "wall_s", 1, 0, 1, to=False), "phases[0].wall_s[1][0][1]", "expected a number"),
        (changed("phases", 0, "wall_s", 1, 0, to=[1]), "phases[0].wall_s[1][0]", "an array of 2, found one of 1"),
        (changed("phases", 0, "wall_s", 1, to=[]), "phases[0].wall_s[1]", "an array of 2, found one of 0"),
        (changed("phases", 0, "wall_s", to=3), "phases[0].wall_s", "an array of 2, found none"),
        (changed("phases", 0, "wall_s", to="wall"), "phases[0].wall_s", "NPZ"),
        (changed("phases", 0, "duration_s", to=[1, 2, 3]), "phases[0].duration_s", "expected one value per"),
        (changed("phases", 0, "os_s", to=[[1, 1], [1, 1]]), "phases[0].arrays.os_s", "has shape"),
        (changed("phases", 1, "wall_s", to=None), "phases[1]", "none of the measures"),
        (changed("phases", to=[]), "phases", "there are none"),
        (changed("phases", to=None), None, "state measures"),
        (changed("synchronized", to=True), "synchronized", "contradicts"),
        (changed("status", to={"wal_s": "measured"}), "status", "did you mean 'wall_s'"),
        (changed("status", to={"wall_s": "guessed"}), "status.wall_s", "expected one of measured"),
        (changed("outside", to={"idle": [1]}), "outside.idle", "an array of 2, found one of 1"),
        (changed("counts", to={"calls": [[1, 2]]}), "counts.calls", "an array of 2, found one of 1"),
        (changed("counts", to={"calls": [[1, -2], [1, 1]]}), "counts.calls", "-2 at [0, 1]"),
        (changed("causes", "kind", to=[5]), "causes.kind", "an index of nothing"),
        (changed("causes", "count", to=[1, 2]), "causes.count", "has another length"),
        (changed("causes", "seconds", to=[None]), "causes.seconds", "explains nothing"),
        (changed("notes", 0, "penalty", to=1.5), "notes", "penalty"),
        (changed("parameters", to={"n": [1]}), "parameters.n", "expected a number"),
        ([], None, "expected an object, found an array"),
        ({"program": "x"}, None, "'schema' is missing"),
        (changed("schema", to="gapwatch/advice/1"), "schema", "expected 'gapwatch/profile/1'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(tmp_path: Path, document: object, place: str | None, reason: str) -> None:
    path = written(tmp_path, document)
    with pytest.raises(InputError) as caught:
        native.advisor_read(path)
    assert caught.value.place == place
    assert reason in caught.value.reason
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ('{"schema": "gapwatch/profile/1",\n "run": }', "2:9", "Expecting value"),
        ('{"schema": "gapwatch/profile/1",\n "actual_s": ' + "7" * 5000 + "}", "2:14", "too many digits"),
        ("[" * 100_000, None, "nested too deeply"),
        ('{"schema": "gapwatch/profile/1", "run": "1", "run": "2"}', None, 'the key "run" occurs twice'),
        ('{"schema": "gapwatch/profile/1", "actual_s": 1e999}', None, "missing"),
        ("", "1:1", "Expecting value"),
    ],
)
def test_what_is_no_json_is_named_with_line_and_column(
    tmp_path: Path, text: str, place: str | None, reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        native.advisor_read(written(tmp_path, text))
    assert caught.value.place == place


def test_a_number_beyond_floating_point_is_refused(tmp_path: Path) -> None:
    text = json.dumps(FULL).replace('"actual_s": 10.0', '"actual_s": 1e999')
    with pytest.raises(InputError, match="actual_s: the number is too large"):
        native.advisor_read(written(tmp_path, text))
    with pytest.raises(InputError, match=r"wall_s: a number is too large"):
        native.advisor_read(written(tmp_path, changed("phases", 1, "wall_s", to=[[1, 10**400]])))


def test_other_encodings_than_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(json.dumps({**FULL, "program": "Wärme"}, ensure_ascii=False).encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        native.advisor_read(path)


def test_a_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with path.open("wb") as stream:
        stream.write(b'{"schema": "gapwatch/profile/1"')
        stream.truncate(10 << 30)  # sparse
    with pytest.raises(InputError, match="larger than"):
        native.advisor_read(path)


def test_no_prefix_of_a_document_is_another_document(tmp_path: Path) -> None:
    text = json.dumps(FULL)
    whole = plain(native.advisor_read(written(tmp_path, text)))
    for end in range(len(text)):
        with pytest.raises(InputError):
            native.advisor_read(written(tmp_path, text[:end]))
    assert plain(native.advisor_read(written(tmp_path, text + "\n"))) == whole


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_is_read_fits_the_schema(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever single value is replaced by whatever else: a document outside of the schema is never read."""
    places = [*_places(FULL)]
    place = data.draw(st.sampled_from(places))
    value = data.draw(st.sampled_from([None, True, 0, -1, 1.5, 10**30, "x", "", [], [1], [[1]], {}, {"name": "x"}]))
    document = changed(*place, to=value)
    try:
        native.advisor_read(written(tmp_path, document))
    except InputError:
        return
    SCHEMA.validate(document)


def _places(value: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, member in inner for place in [(*at, key), *_places(member, (*at, key))]]
