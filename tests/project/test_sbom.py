"""What is taken from others is pinned: the list of materials names all packages, with versions and hashes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_that_is_installed_is_listed() -> None:
    made = subprocess.run([sys.executable, ROOT / "tools" / "sbom.py"], capture_output=True, check=True, cwd=ROOT)
    document = json.loads(made.stdout)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    text = (ROOT / "requirements" / "newest.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M)
    assert [(one["name"], one["version"]) for one in document["components"]] == pinned
    assert sum(len(one["hashes"]) for one in document["components"]) == text.count("--hash=sha256:")
    assert all(one["hashes"] for one in document["components"]), "what has no hash could be anything"
    marked = [one for one in document["components"] if "properties" in one]
    assert len(marked) == sum("==" in line and ";" in line for line in text.splitlines())
    assert len({one["bom-ref"] for one in document["components"]}) == len(pinned)


def test_actions_are_named_by_commit() -> None:
    """A tag can be moved to other code; the version stands beside the commit."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "packaging").rglob("*.yml"), *ROOT.glob(".github/**/*.yml")]
    used = [line.strip() for page in pages for line in page.read_text("utf-8").splitlines() if " uses: " in line]
    # Of this repository a reader puts in who owns the copy and the commit.
    named = [line for line in used if re.search(r"uses: (?!OWNER/)[\w.-]+/[\w./-]+@", line)]
    assert named
    assert [line for line in named if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []
