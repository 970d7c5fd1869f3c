"""The README shows what the program prints, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import run

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SCREEN = re.compile(r"```text\n\$ gapwatch (demo --width 100)\n(.*?)```", re.DOTALL)


def test_the_screen_is_that_of_the_demo(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = README.read_text(encoding="utf-8")
    found = SCREEN.search(text)
    assert found is not None
    shown = run(*found[1].split(), home=tmp_path).stdout.decode()
    if request.config.getoption("--rewrite-golden"):
        README.write_text(text.replace(found[0], f"```text\n$ gapwatch {found[1]}\n{shown}```"), encoding="utf-8")
    else:
        assert found[2] == shown, "run: pytest --rewrite-golden tests/docs/test_readme.py"


@pytest.mark.parametrize("page", [README, *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing
