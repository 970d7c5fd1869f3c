from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model.errors import DocumentError
from advisor.model.units import Seconds
from advisor.support import documents
from advisor.support.documents import Between, FieldErrors, Mark, Marked, composing, yaml_nodes


@dataclass(frozen=True, slots=True)
class All:
    all: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    not_: Condition


@dataclass(frozen=True, slots=True)
class GapIs:
    gap: Marked[Literal["L", "M'", "C'"]]
    share: str | None = None


@dataclass(frozen=True, slots=True)
class FactIs:
    fact: str
    is_: bool | float | str


Condition = All | Not | GapIs | FactIs


@dataclass(frozen=True, slots=True)
class Even:
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        if not text.isdecimal() or int(text) % 2:
            raise ValueError("expected an even number")
        return cls(int(text))


@dataclass(frozen=True, slots=True)
class Action:
    id: str
    title: str
    effort: Annotated[int, Between(1, 5)]
    mark: Mark
    targets: tuple[Literal["L", "M'", "C'"], ...] = ()
    when: Condition | None = None
    prior: Annotated[float, Between(0, 1)] = 0.5
    latency: Seconds | None = None
    how: dict[Literal["mpi", "openmp"], str | tuple[str, ...]] = field(default_factory=dict)
    change: dict[str, object] = field(default_factory=dict)
    enabled: bool = True
    even: Even | None = None

    def __post_init__(self) -> None:
        if self.title == self.id:
            raise ValueError("the title repeats the id")


PIECES = (
    *(b": ", b"- ", b"\n", b"\n  ", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"!!str ", b"? "),
    *(b'"', b"'", b"|", b"~", b"#", b"\t", b"<<: "),
)

GOOD = """\
- id: A-1
  title: 1.10
  effort: 1
  targets: [L, "M'"]
  when:
    all:
      - {gap: L, share: ">= 3 %"}
      - not: {fact: run.x, is: 1.10}
      - {fact: y, is: true}
      - {fact: z, is: "on"}
  prior: 1e-1
  latency: 2 us
  how:
    mpi: [a, b]
    openmp: |
      #pragma omp
      {x: y}
  change: {schedule: dynamic, n: 1e3, k: [1, 2.5, true, ~]}
  enabled: on
  even: 4
"""


def read(tmp_path: Path, text: str | bytes) -> tuple[Action, ...]:
    path = tmp_path / "actions.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return documents.load_list(path, Action)


def mistakes(tmp_path: Path, text: str | bytes) -> list[str]:
    """The problems as ``line:column: message``."""
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, text)
    return [f"{problem.line}:{problem.column}: {problem.message}" for problem in caught.value.problems]


def test_fields_decide_what_words_mean(tmp_path: Path) -> None:
    path = str(tmp_path / "actions.yaml")
    gap = GapIs(Marked("L", Mark(path, 7, 15)), ">= 3 %")
    condition = All((gap, Not(FactIs("run.x", 1.1)), FactIs("y", True), FactIs("z", "on")))
    assert read(tmp_path, GOOD) == (
        Action(
            id="A-1",
            title="1.10",
            effort=1,
            mark=Mark(path, 1, 3),
            targets=("L", "M'"),
            when=condition,
            prior=0.1,
            latency=2e-6,
            how={"mpi": ("a", "b"), "openmp": "#pragma omp\n{x: y}\n"},
            change={"schedule": "dynamic", "n": 1000, "k": (1, 2.5, True, None)},
            enabled=True,
            even=Even(4),
        ),
    )


def test_every_mistake_is_reported_at_its_place(tmp_path: Path) -> None:
    bad = """\
- id: A-1
  titel: x
  effort: 9
  targets: [L, Q]
  when: {all: [{gap: L, shre: "3"}, {nott: {fact: x, is: 1}}, {fact: y, is: on}]}
  latency: 2 mss
  how: {mpj: [a, b]}
  change: {schedule: no}
  enabled: maybe
  enabled: true
  even: 3
- id: [a]
  title:
  effort: "3"
  prior: nan
- 7
- id: A-2
  effort: 1.5
"""
    assert mistakes(tmp_path, bad) == [
        "2:3: unknown key 'titel' (did you mean 'title'?); expected id, title, effort, targets, when, prior, latency, "
        "how, change, enabled, even",
        "3:11: effort: found '9', expected a number from 1 to 5",
        "4:16: targets: found 'Q', expected one of L, M', C'",
        "5:25: unknown key 'shre' (did you mean 'share'?); expected gap, share",
        "5:37: all: found a mapping with nott (did you mean 'not'?), expected a mapping with all or a mapping with not "
        "or a mapping with gap, share or a mapping with fact, is",
        "5:77: is: found 'on', expected true or false, or the word in quotes",
        "6:12: latency: found '2 mss', the unit is not known (did you mean 'ms'?); expected a time such as '2 us'",
        "7:9: how: found 'mpj', expected one of mpi, openmp (did you mean 'mpi'?)",
        "8:22: schedule: found 'no', expected true or false, or the word in quotes: \"no\"",
        "9:12: enabled: found 'maybe', expected true or false",
        "10:3: key 'enabled' a second time; the first is in line 9",
        "11:9: even: found '3', expected an even number",
        "12:7: id: found a list, expected text",
        "13:9: title: found nothing, expected text",
        '14:11: effort: found "3", expected a whole number without quotes',
        "15:10: prior: found 'nan', expected a number such as 3 or 1.5e-3",
        "16:3: found '7', expected a mapping with id, title, effort, targets, when, prior, latency, how, change, "
        "enabled, even",
        "17:3: missing key 'title'",
        "18:11: effort: found '1.5', expected a whole number such as 3",
    ]


def test_a_misspelt_required_key_is_one_mistake_not_two(tmp_path: Path) -> None:
    assert len(mistakes(tmp_path, "- {id: a, titel: b, effort: 1}")) == 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1.234,5", "expected a number"),
        ("12:30:45", "expected a number"),
        ("010", "expected a number"),
        (".inf", "expected a number"),
        ("1e999", "not too large"),
        ("0x10", "expected a number"),
        ("yes", "expected a number"),
        ("'0.5'", "without quotes"),
        ("~", "found '~', expected a number"),
    ],
)
def test_what_is_no_plain_number_is_refused(tmp_path: Path, value: str, said: str) -> None:
    (mistake,) = mistakes(tmp_path, f"- id: a\n  title: b\n  effort: 1\n  prior: {value}\n")
    assert mistake.startswith("4:10: prior: ")
    assert said in mistake


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- &x {id: a, title: b, effort: 1}\n- *x\n", ["1:3: anchor &x", "2:3: alias *x"]),
        ("- {id: !!python/object:os.system a, title: b, effort: 1}", ["1:8: tag !!python/object:os.system"]),
        ("- id: a\n  title: b\n  effort: 1\n  <<: {id: c}\n", ["4:3: merge keys (<<)"]),
        ("- {id: a, title: b, effort: 1}\n---\n[]\n", ["2:1: a second document starts here"]),
        ("- {? [a] : b, id: a, title: b, effort: 1}", ["1:6: a list or a mapping cannot be a key"]),
        ("- ?\n  : 3\n  id: a\n  title: b\n  effort: 1\n", ["a key is missing before ':'"]),
        ('- {id: a, title: "\\e[31m", effort: 1}', ["1:18: the text contains the control character U+001B"]),
        ("", ["1:1: found nothing, expected a list"]),
        ("# only a comment\n", ["1:1: found nothing, expected a list"]),
        ("id: a\n", ["1:1: found a mapping, expected a list"]),
        ("- a: b: c\n", ["1:7: not YAML: mapping values are not allowed"]),
        ("- {id: a", ["not YAML: "]),
        ("- {id: a, title: a, effort: 1}", ["1:3: the title repeats the id"]),
    ],
)
def test_what_yaml_allows_and_authors_do_not_mean_is_refused(tmp_path: Path, text: str, said: list[str]) -> None:
    found = mistakes(tmp_path, text)
    assert len(found) == len(said)
    assert [part if part in mistake else mistake for part, mistake in zip(said, found, strict=True)] == said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"- id: \xff\n", "1:7: not UTF-8 text"),
        ("- id: a\n".encode("utf-16"), "1:1: not UTF-8 text"),
        (b"- id: a\n  title: \x1b[31m\n", "2:10: the character U+001B cannot stand in a YAML file"),
        (b"- id: a\x00", "1:8: the character U+0000"),
        (b"#" * (yaml_nodes.LARGEST + 1), "1:1: larger than the 1000000 bytes"),
        (b"[" * 100_000, "1:51: nested deeper than 50 levels"),
        (b"- " * 100_000, "1:101: nested deeper than 50 levels"),
        (b"{a: " * 100_000, "1:201: nested deeper than 50 levels"),
        (b"? " * 100_000, "1:101: nested deeper than 50 levels"),
    ],
)
def test_files_that_cannot_be_read_on_give_one_message(tmp_path: Path, content: bytes, said: str) -> None:
    (mistake,) = mistakes(tmp_path, content)
    assert mistake.startswith(said)


def test_the_largest_and_deepest_documents_are_still_read(tmp_path: Path) -> None:
    inner = composing.DEEPEST - 3
    entry = f"- {{id: a, title: b, effort: 1, change: {{x: {'[' * inner}{']' * inner}}}}}\n"
    (action,) = read(tmp_path, entry + "#" * (yaml_nodes.LARGEST - len(entry)))
    assert str(action.change["x"]).count("(") == inner


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf- {id: a, title: b, effort: 1}")[0].id == "a"


def test_missing_files_and_folders_are_problems_too(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"none\.yaml:1:1: cannot be read: No such file"):
        documents.load_document(tmp_path / "none.yaml", Action)
    with pytest.raises(DocumentError, match="cannot be read: Is a directory"):
        documents.load_document(tmp_path, Action)


def test_mistakes_are_collected_over_files(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.yaml" for name in "ab"]
    for path in paths:
        path.write_text("- {id: a, titel: b, effort: 1}\n- {id: a, title: b, effort: 6}\n")
    with pytest.raises(DocumentError) as caught:
        documents.load_lists(paths, Action)
    assert [(Path(problem.path).name, problem.line) for problem in caught.value.problems] == [
        ("a.yaml", 1),
        ("a.yaml", 2),
        ("b.yaml", 1),
        ("b.yaml", 2),
    ]


def test_many_documents_give_one_record_each(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.yaml" for name in "ab"]
    for path in paths:
        path.write_text(f"{{id: {path.stem}, title: x, effort: 1}}")
    assert [action.id for action in documents.load_many(paths, Action)] == ["a", "b"]


@dataclass(frozen=True, slots=True)
class Inner:
    size: int


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner

    def __post_init__(self) -> None:
        raise FieldErrors([(("inner", "size"), "is wrong"), (("inner", "absent"), "is missing")])


def test_mistakes_found_by_a_record_stand_at_their_fields(tmp_path: Path) -> None:
    path = tmp_path / "outer.yaml"
    path.write_text("inner:\n  size: 3\n")
    with pytest.raises(DocumentError) as caught:
        documents.load_document(path, Outer)
    assert [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems] == [
        "2:3: is missing",
        "2:9: is wrong",
    ]


@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_any_mutation_gives_records_or_a_document_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(start + 6, len(content))))
        piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=4))
        content[start:end] = piece
    path = tmp_path_factory.getbasetemp() / "mutated.yaml"
    path.write_bytes(content)
    try:
        actions = documents.load_list(path, Action)
    except DocumentError as error:
        problems = error.problems
    else:
        problems = ()
        assert all(isinstance(action, Action) for action in actions)
    for problem in problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message.isprintable()


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_records_or_a_document_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(DocumentError) as caught:
        documents.load_document(path, Inner)
    assert all(problem.message.isprintable() for problem in caught.value.problems)
