"""Names that compilers really make, and some that nobody should: through every reader, to every output, unharmed."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING

import pytest
from named_profiles import JSON, WITHOUT_TIMES, WRITERS, expected

from advisor import cli
from advisor.extension.host import PluginHost, load_plugins
from advisor.model.errors import InputError
from advisor.output.advice_document import build_advice_document, to_json
from advisor.output.clean import clean_text
from advisor.output.page import Page
from advisor.output.terminal import render_screen
from advisor.pipeline import Options, advise

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.model.records import Advice

NAMES = {
    "template": "std::map<int, std::vector<Foo<double>>>::operator[](unsigned long const&) const",
    "operator": 'operator""_km(long double) [inlined]',
    "clone": "foo<int> [clone .cold]",
    "with": "T f() [with T = int; U = std::basic_string<char>]",
    "lambda": "solve(int)::{lambda(auto:1)#1}::operator()<double> [clone ._omp_fn.0]",
    "markup": "[bold red]foo[/bold red][/] [link=http://x]y",
    "closing": "foo[/]",
    "signs": "a:b@c=>d|e;f\\n%s${x}`y`&amp;<b>#",
    "utf8": "größe_λ_関数<🚀>",
    "reversed": "evil\u202egnp.exe",
    "escape": "x\x1b[2J\x1b]0;title\x07\x1b[31mred",
    "undecodable": "caf\udce9_\udcff",
    "long": "ns::" + "Expr<Mul, " * 499 + ">>" + "z",
}
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def host() -> PluginHost:
    return load_plugins()


@pytest.fixture(params=WRITERS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return NAMES[request.param]


@pytest.fixture
def advice(form: str, name: str, host: PluginHost, tmp_path: Path) -> Advice | None:
    """The advice on a profile with the name; None where the format can't hold it and said so."""
    path = WRITERS[form](name, tmp_path)
    if form not in JSON or not any("\ud800" <= c <= "\udfff" for c in name):
        return advise([path], Options(), host)
    with pytest.raises(InputError):
        advise([path], Options(), host)
    return None


def joined(text: str) -> str:
    """The text without what line breaks may change."""
    return "".join(text.split())


def test_a_name_survives(advice: Advice | None, form: str, name: str) -> None:
    """Through the reader verbatim, as escaped text in JSON, and on the screen without acting on it."""
    if advice is None:
        return
    name = expected(form, name)
    assert name in {region.name for region in advice.profile.regions}
    text = to_json(build_advice_document(advice))
    assert text.isascii()
    assert all(c == "\n" or c.isprintable() for c in text)
    kept = name.encode("utf-8", "backslashreplace").decode()
    regions = {region["name"] for gap in json.loads(text)["gaps"] for region in gap["regions"]}
    assert kept in regions or form in WITHOUT_TIMES
    for page in (Page(100, verbose=True), Page(100, color=True), Page(60, "ascii", verbose=True)):
        shown = render_screen(advice, page)
        plain = SGR.sub("", shown) if page.color else shown
        assert {c for c in plain if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} <= {"\n"}
        beginning = joined(clean_text(name, page.encoding))[:6]
        assert form in WITHOUT_TIMES or not page.verbose or beginning in joined(plain)
        plain.encode(page.encoding)


@pytest.mark.parametrize("form", ["native", "talp report", "mpip"])
@pytest.mark.parametrize("key", ["markup", "escape", "reversed", "undecodable", "long"])
def test_the_command_prints_nothing_that_acts(
    form: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if form in JSON and key == "undecodable":
        key = "utf8"
    path = str(WRITERS[form](NAMES[key], tmp_path))
    assert cli.main(["advise", path, "--color", "always", "--width", "100", "--verbose"]) == 0
    shown = SGR.sub("", capsys.readouterr().out)
    assert {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} <= {"\n"}
    assert form in WITHOUT_TIMES or joined(clean_text(NAMES[key]))[:6] in joined(shown)
    assert cli.main(["advise", path, "--format", "json"]) == 0
    text = capsys.readouterr().out
    assert text.isascii()
    assert "\x1b" not in text
    kept = NAMES[key].encode("utf-8", "backslashreplace").decode()
    assert form in WITHOUT_TIMES or json.dumps(kept)[1:-1] in text
