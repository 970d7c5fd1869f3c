"""Names that nobody should give, in every format: verbatim or visibly escaped, and never active."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import advice_samples as samples
import html5lib
import pytest
from command_line import environment, run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from page_elements import Elements
from site_folder import beside_readers

from advisor import cli, pipeline
from advisor.advice.explaining import Explanation, explain_study
from advisor.analysis import comparison
from advisor.history import program_views
from advisor.model.records import Advice, Share
from advisor.model.reports import Code, Column, Report, Table, Text
from advisor.output import explanation_text, report_text, watch_screen
from advisor.output.advice_document import build_advice_document, to_json
from advisor.output.clean import clean_text
from advisor.output.html import index, report_page
from advisor.output.html.advice_page import render_advice_page
from advisor.output.markdown import render_comment
from advisor.output.page import Page
from advisor.output.sarif import render_sarif
from advisor.output.source_tree import open_source_tree
from advisor.output.terminal import render_screen

if TYPE_CHECKING:
    from collections.abc import Callable

FIGURE = Path(__file__).parents[1] / "profiles" / "fig4.json"
TRACE = Path(__file__).parents[1] / "profiles" / "otf2" / "scorep-multiphase"
NAMES = (
    "operator[]", "std::vector<int>::operator[](unsigned long)", "</script><img src=x onerror=alert(1)>", "[/]",
    "[red]x[/red]", "\x1b[2J\x1b]0;title\x07", "z" * 5000, "größe_関数_🚀", "evil\u202egnp.exe", "caf\udce9_\udcff",
    "a\nb\r\nc", "\x00\x85\u2028\u2029\ufeff\ufffe\ufdd0", "--><!-- x", "``` `", "a|b", "@all #1 ![x](y)", "{{ 7*7 }}",
    "%s %n {0}", "'\"><svg onload=alert(1)>", "javascript:alert(1)", "]]>&amp;&#60;", "$(reboot)`reboot`",
)  # fmt: skip
PIECES = st.one_of(st.text(max_size=12), st.sampled_from(NAMES[:6] + NAMES[7:]))
ANY_NAME = st.lists(PIECES, min_size=1, max_size=3).map("".join)
SGR = re.compile(r"\x1b\[[0-9;]*m")
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def of_name(name: str) -> tuple[Advice, Advice]:
    """The same run in two builds; ``name`` stands wherever a profile, a trace or a plugin can put text."""
    now = samples.hostile(name)
    gaps = tuple(replace(gap, regions=(Share(name, gap.seconds + 1, name, name, 3, name),)) for gap in now.gaps)
    earlier = replace(now, gaps=gaps, profile=replace(now.profile, build=f"{name}'"))
    return earlier, replace(now, recommendations=tuple(replace(item, why=name) for item in now.recommendations))


@cache
def of_figure() -> Explanation:
    folder = Path(__file__).parents[1]
    return explain_study(pipeline.study_newest([FIGURE], pipeline.Options(), beside_readers(folder)))


def explanation(name: str) -> Explanation:
    made = of_figure()
    numbers = tuple(
        replace(one, about=name, place=name, notes=(name,), inputs=(*(replace(i, name=name, source=name)
                for i in one.inputs),), parts=(*(replace(i, name=name) for i in one.parts),))
        for one in made.numbers[::14]
    )  # fmt: skip
    return replace(made, program=name, run=name, reader=name, files=(name,), machine=name, numbers=numbers)


def table(name: str) -> Report:
    rows = ((name, 1.0), (None, None))
    return Report(
        name, (Text(f"{name}\n    {name}"), Code(name, name, name), Table(name, (Column(name), Column("x", "s")), rows))
    )


def texts(width: int, *, color: bool = False, encoding: str = "utf-8") -> dict[str, Callable[[str], str]]:
    shown = Page(width, encoding, color=color, verbose=True)
    return {
        "advise": lambda name: render_screen(of_name(name)[1], shown),
        "explain": lambda name: explanation_text.render_explanation(explanation(name), shown),
        "report": lambda name: report_text.render_report(table(name), shown),
        "watch": lambda name: "\n".join(
            [
                watch_screen.render_run_line(1, of_name(name)[1], shown),
                *watch_screen.render_change_lines(changed(name), shown),
            ]
        ),
    }


def changed(name: str) -> comparison.Comparison:
    before, after = of_name(name)
    return comparison.compare_builds([before], [after])


DATA: dict[str, Callable[[str], str]] = {
    "json": lambda name: to_json(build_advice_document(of_name(name)[1])),
    "sarif": lambda name: render_sarif(of_name(name)[1], open_source_tree(Path("/home/me"))),
    "explain": lambda name: to_json(explanation_text.build_explanation_document(explanation(name))),
    "report": lambda name: to_json(report_text.build_report_document(table(name))),
}


PAGES: dict[str, Callable[[str], str]] = {
    "advise": lambda name: render_advice_page(of_name(name)[1]),
    "report": lambda name: report_page.render_report_page(table(name)),
    "index": lambda name: index.render_index_page(
        program_views.group_by_program([program_views.build_run_overview(of_name(name)[1], (), "run-0001.html")])
    ),
}


def inert(text: str) -> bool:
    """Whether nothing in a text acts on a terminal or hides from the eye."""
    return {c for c in text if unicodedata.category(c) in HIDDEN} <= {"\n"}


def beginning(name: str, encoding: str = "utf-8") -> str:
    """How a name begins where it is shown, without what line breaks may change."""
    return "".join(clean_text(name, encoding).split())[:6]


def with_examples(test: Callable[..., None]) -> Callable[..., None]:
    for name in NAMES:
        test = example(name)(test)
    return settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])(given(ANY_NAME)(test))


@pytest.mark.parametrize("form", texts(80))
@with_examples
def test_on_a_terminal(form: str, name: str) -> None:
    for width, color, encoding in ((60, True, "utf-8"), (120, False, "ascii")):
        shown = SGR.sub("", texts(width, color=color, encoding=encoding)[form](name))
        assert inert(shown)
        shown.encode(encoding)
        assert beginning(name, encoding) in "".join(shown.split())


@pytest.mark.parametrize("form", DATA)
@with_examples
def test_for_programs(form: str, name: str) -> None:
    text = DATA[form](name)
    assert text.isascii()
    assert inert(text)
    whole = json.dumps(json.loads(text), ensure_ascii=False)
    kept = clean_text(name) if form == "sarif" else name.encode("utf-8", "backslashreplace").decode()
    assert form == "sarif" or json.dumps(kept, ensure_ascii=False)[1:-1] in whole
    assert form != "sarif" or beginning(kept).isalnum() <= (beginning(kept) in "".join(whole.split()))


@with_examples
def test_in_a_comment(name: str) -> None:
    text = render_comment(of_name(name)[1], changed(name))
    plain, shown = elements("x"), elements(name)
    assert inert(text)
    assert set(shown.names) <= set(plain.names) | {"em"}
    assert shown.names.count("details") == plain.names.count("details")
    assert beginning(name) in "".join(shown.text.split())


def elements(name: str) -> Elements:
    text = render_comment(of_name(name)[1], changed(name))
    return Elements(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


@cache
def tags_of(form: str) -> set[str]:
    """The elements of the page when all names are harmless, and one of them is long."""
    made: Any = html5lib.HTMLParser(strict=True).parse(PAGES[form]("x" * 300))
    return {tag.tag for tag in made.iter()}


@pytest.mark.parametrize("form", PAGES)
@with_examples
def test_on_a_page(form: str, name: str) -> None:
    text = PAGES[form](name)
    assert text.isascii()
    document: Any = html5lib.HTMLParser(strict=True).parse(text)
    assert {tag.tag for tag in document.iter()} <= tags_of(form)
    for tag in document.iter():
        assert not any(attribute.startswith("on") for attribute in tag.attrib)
        assert tag.get("href", "run-0001.html") == "run-0001.html"
    shown = "".join(document.itertext())
    assert inert(shown)
    assert beginning(name) in "".join(shown.split())


# Wherever it goes


@pytest.mark.parametrize("command", ["advise --format html", "explain --format json"])
def test_a_reader_that_leaves_is_no_error(command: str, tmp_path: Path) -> None:
    """As in ``gapwatch … | head -1``: the results are larger than a pipe holds."""
    name, *options = command.split()
    with subprocess.Popen(
        [sys.executable, "-m", "gapwatch", name, str(TRACE), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path), cwd=tmp_path,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert process.returncode == 0


def test_no_color_and_pipes(tmp_path: Path) -> None:
    for more in ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, {}):
        done = run("explain", str(FIGURE), "M'", home=tmp_path, **more)
        assert done.returncode == 0
        assert b"\x1b" not in done.stdout
    assert b"\x1b[" in run("explain", str(FIGURE), "M'", home=tmp_path, FORCE_COLOR="1").stdout


@pytest.mark.parametrize("form", ["text", "json", "markdown", "sarif", "codequality", "openmetrics", "html"])
def test_the_c_locale_stops_no_format(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    content = json.loads(FIGURE.read_text(encoding="utf-8")) | {"program": "größe→"}
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setenv("LC_ALL", "C")
    assert cli.main(["advise", str(tmp_path / "run.json"), "--format", form]) == 0
    written = capfdbinary.readouterr().out
    assert written.isascii() or form in {"markdown", "openmetrics"}
    assert b"gr" in written or form == "codequality"  # which does not name the program
    assert "größe→" in written.decode("utf-8") or form != "markdown"
