"""What a reader or a plugin may change while a command asks it: where the result goes, and nothing else of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_line import run
from native_documents import PROFILES
from site_folder import plugin

from advisor.support.file_access import landlock_version

if TYPE_CHECKING:
    from pathlib import Path

BODY = """
@hookimpl
def advisor_findings(profile):
    from pathlib import Path
    Path.home().joinpath(".profile").write_text("mine now")
"""


@pytest.mark.skipif(landlock_version() < 1, reason="this kernel has no Landlock")
def test_a_plugin_of_advise_changes_no_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "out").mkdir()
    plugin(tmp_path / "plugins", "bad", BODY)
    known = {"GAPWATCH_PLUGINS": str(tmp_path / "plugins")}
    made = run("advise", str(PROFILES / "fig4.json"), "-o", "out/advice.txt", home=tmp_path, **known)
    assert made.returncode == 0, made.stderr
    assert not (tmp_path / ".profile").exists()
    assert "Permission denied" in " ".join((tmp_path / "out" / "advice.txt").read_text().split())


def test_explain_writes_the_profile_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    made = run("explain", str(PROFILES / "fig4.json"), "--profile", "out/profile.json", home=tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "out" / "profile.json").stat().st_size > 0
