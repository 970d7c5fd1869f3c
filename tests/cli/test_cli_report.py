"""Pages over programs and builds."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import html5lib
import pytest
from daemon_runs import Watch, profile

from advisor import cli

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

TRACE = Path(__file__).parents[1] / "profiles" / "otf2" / "eztrace-imbalance"
HTML = "{http://www.w3.org/1999/xhtml}"
HOSTILE = "</a><script>alert(1)</script><img src=x onerror=alert(2)>"


def parsed(file: Path) -> Element:
    document: Element = html5lib.HTMLParser(strict=True).parse(file.read_text(encoding="utf-8"))
    return document


def links(document: Element) -> list[str]:
    return [tag.get("href") or "" for tag in document.iter(f"{HTML}a")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAPWATCH_STATE", str(tmp_path / "state"))
    return tmp_path


def test_a_directory_of_profiles_becomes_an_index_and_a_page_a_run(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for build, elapsed in (("v1", 47.0), ("v2", 52.0)):
        for repeat in range(2):
            started = f"2026-01-0{build[1]}T0{repeat}:00:00+00:00"
            profile(place / "runs" / f"{build}-{repeat}.json", build=build, actual_s=elapsed + 0.01 * repeat,
                    started=started)  # fmt: skip
    profile(place / "runs" / "other.json", program=HOSTILE, build=HOSTILE)
    assert cli.main(["report", "runs", "-o", "pages"]) == 0
    assert capsys.readouterr().out.startswith("pages/index.html: ")
    index = parsed(place / "pages" / "index.html")
    assert sorted(links(index)) == ["#program-1", "#program-2", *[f"run-000{number}.html" for number in range(1, 6)]]
    text = " ".join("".join(index.itertext()).split())
    assert "2 programs, 5 runs" in text
    assert HOSTILE in text
    assert "worse: S'+W+X +5.0" in text
    for link in links(index)[2:]:
        page = parsed(place / "pages" / link)
        assert links(page) == ["index.html"]
        assert not [*page.iter(f"{HTML}script")]
    pages = [parsed(place / "pages" / link) for link in links(index)[2:]]
    over = [any("over builds" in (tag.text or "") for tag in page.iter(f"{HTML}h2")) for page in pages]
    assert sum(over) == 2, "the first build has nothing to stand beside"


def test_the_history_becomes_pages_and_old_pages_go(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    daemon = Watch(place)
    for number in range(3):
        profile(daemon.root / f"{number}.json", build=f"v{number}")
    daemon.once()
    assert cli.main(["report"]) == 0
    folder = place / "gapwatch-report"
    assert sorted(file.name for file in folder.iterdir()) == ["index.html", *(f"run-000{n}.html" for n in (1, 2, 3))]
    assert cli.main(["report", "--limit", "1"]) == 0
    assert sorted(file.name for file in folder.iterdir()) == ["index.html", "run-0001.html"]
    shown = "".join(parsed(folder / "run-0001.html").itertext())
    assert "build v2" in shown
    assert "Run time and gaps over builds" in shown
    (folder / "index.html").write_text("mine")
    assert cli.main(["report"]) == 2
    assert re.search("index.html was not written by gapwatch", capsys.readouterr().err)
    assert (folder / "run-0001.html").exists()


def test_what_is_no_place_for_pages_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "file").touch()
    profile(place / "runs" / "1.json")
    assert cli.main(["report", "runs", "-o", "file"]) == 2
    assert cli.main(["report"]) == 2
    assert "no history in" in capsys.readouterr().err
    assert cli.main(["report", "nothing"]) == 2
    assert not (place / "gapwatch-report" / "index.html").exists()


def test_reports_of_commands_are_pages(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    daemon = Watch(place)
    profile(daemon.root / "1.json", build="v1")
    daemon.once()
    assert cli.main(["history", "--format", "html", "-o", "history.html"]) == 0
    assert [tag.text for tag in parsed(place / "history.html").iter(f"{HTML}h2")] == ["Runs", "Advice"]
    assert cli.main(["similar", "runs/1.json", "--format", "html"]) in (0, 2)


def test_pages_of_the_history_show_the_run_over_time(place: Path) -> None:
    daemon = Watch(place)
    shutil.copytree(TRACE, daemon.root / "trace")
    daemon.once()
    shutil.rmtree(daemon.root / "trace")
    assert cli.main(["report", "-o", "of-history"]) == 0
    assert cli.main(["report", str(TRACE), "-o", "of-profile"]) == 0
    shown = []
    for folder in ("of-history", "of-profile"):
        page = parsed(place / folder / "run-0001.html")
        [data] = [json.loads(tag.text or "") for tag in page.iter(f"{HTML}script") if tag.get("type")]
        titles = [tag.text for tag in page.iter(f"{HTML}h2")]
        shown.append((titles, data["rows"], data["columns"], data["phases"], data["causes"]))
        seconds = sum(part for row in data["cells"] for cell in row for part in cell)
        assert seconds == pytest.approx(len(data["rows"]) * data["span"], rel=0.05)
    assert shown[0] == shown[1]
    assert "Ranks over time" in shown[0][0]
