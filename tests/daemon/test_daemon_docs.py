"""The pages on the daemon say what it does: settings are real, tests that are named exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from advisor.daemon import config

ROOT = Path(__file__).parents[2]
DAEMON = (ROOT / "docs" / "daemon.md").read_text(encoding="utf-8")
FAULTS = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")


def test_the_configuration_on_the_page_is_one(tmp_path: Path) -> None:
    [block] = re.findall(r"```toml\n(.*?)```", DAEMON, re.DOTALL)
    path = tmp_path / "gapwatch.toml"
    path.write_text(block, encoding="utf-8")
    found = config.read_config(path)
    assert found.quiet_s == config.DaemonConfig().quiet_s
    assert found.memory_B == config.DaemonConfig().memory_B
    assert found.roots == (Path("~/runs").expanduser(),)
    assert set(tomllib.loads(block)) == config.format_settings(found).keys()


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(test_\w+\.py)(?:::(\w+)…?)?`", FAULTS)
    assert len(named) > 20
    paths = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}
    for file, test in named:
        text = paths[file].read_text(encoding="utf-8")
        assert f"def {test}" in text, f"{file}::{test}"
