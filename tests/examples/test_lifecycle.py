"""A fault is switched on, its remedy applied, and back again: the life of an item over recorded builds of one program.

The daemon reads real traces, and what is said of the item is said by the commands that a user has.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon_process import settle

from advisor import cli

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "profiles" / "faults"
PAGE = ROOT / "docs" / "daemon.md"
SECTION = re.compile(r"(?<=<!-- life: begin -->\n).*?(?=\n<!-- life: end -->)", re.DOTALL)
#: Without the fault; with parts of different size (and late messages); with even parts again.
BUILDS = {"v1": ("clean-send",), "v2": ("repeat-1", "repeat-2", "repeat-3", "repeat-4"), "v3": ("late-send-05",)}


class User:
    """Who runs builds below ``top`` and asks gapwatch for its opinion."""

    def __init__(self, top: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.top, self._capsys = top, capsys

    def builds(self, build: str, *names: str) -> None:
        for name in names:
            place = self.top / "runs" / f"{build}-{name}"
            shutil.copytree(RECORDED / name, place)
            said = json.loads((place / "gapwatch.json").read_text())
            (place / "gapwatch.json").write_text(json.dumps(said | {"build": build}))
        assert cli.main(["watch", str(self.top / "runs"), "--once", "--format", "lines"]) == 0
        self._capsys.readouterr()

    def says(self, *arguments: str) -> str:
        assert cli.main(arguments) == 0
        return self._capsys.readouterr().out

    def item(self, action: str) -> dict[str, Any]:
        table = json.loads(self.says("history", "stencil", "--format", "json"))["parts"][1]
        [row] = [row for row in table["rows"] if row[1] == action]
        return dict(zip((column["name"] for column in table["columns"]), row, strict=True))


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> User:
    for name, value in settle(tmp_path).items():
        monkeypatch.setenv(name, value)
    return User(tmp_path, capsys)


def test_a_fault_is_new_applied_resolved_and_back_with_its_seconds(user: User, request: pytest.FixtureRequest) -> None:
    user.builds("v1", *BUILDS["v1"])
    user.builds("v2", BUILDS["v2"][0])
    assert user.item("A-28")["state"] == "new"
    user.builds("v2", *BUILDS["v2"][1:])
    assert user.item("A-28")["state"] == "open"
    said = user.says("applied", "A-28", "--region", "compute_fluxes")
    assert user.item("A-28")["state"] == "applied"
    user.builds("v3", *BUILDS["v3"])
    item = user.item("A-28")
    assert item["state"] == "resolved"
    assert item["realised"] == pytest.approx(item["at most"], rel=0.05)
    assert item["promised"] == pytest.approx(item["realised"], rel=0.15)
    kept(request, said, user.says)
    user.builds("v4", "repeat-5")
    assert user.item("A-28")["state"] == "back"
    advice = json.loads(user.says("advise", str(RECORDED / "imbalance+late"), "--format", "json"))
    [again] = [one for one in advice["recommendations"] if one["action"] == "A-28"]
    assert again["basis"] == "history"
    share = min(item["realised"] / item["at most"], 1.0)  # nothing is expected above the ceiling
    # the simulation counts as much as the one gain that was realised
    assert 0.9 * share < again["expected_s"] / again["ceiling_s"] < share


def kept(request: pytest.FixtureRequest, said: str, says: Callable[..., str]) -> None:
    """Compare what the commands say with the page."""
    shown = [
        ("applied A-28 --region compute_fluxes", said),
        ("history stencil --width 110", says("history", "stencil", "--width", "110")),
        ("compare v2 v3 --width 110", says("compare", "v2", "v3", "--width", "110")),
    ]
    text = "```text\n" + "\n".join(f"$ gapwatch {command}\n{out}" for command, out in shown).rstrip() + "\n```"
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "2026-11-21T12:00:00", text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    page = PAGE.read_text(encoding="utf-8")
    found = SECTION.search(page)
    assert found is not None
    if request.config.getoption("--rewrite-golden"):
        PAGE.write_text(page[: found.start()] + text + page[found.end() :], encoding="utf-8")
    else:
        assert found[0] == text, "run: pytest --rewrite-golden tests/examples/test_lifecycle.py"
