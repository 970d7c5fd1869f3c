"""What holds for all tests: nothing of the host gets in, and what is drawn is compared with ``tests/golden``.

``pytest --rewrite-golden`` writes the golden files anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from isolation import isolate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOLDEN = Path(__file__).parent / "golden"
REPOSITORY = Path(__file__).parents[1]

# How long an example takes says how busy the machine is, and nothing about the program.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="write tests/golden and docs/commands.md anew")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported, and after pytest has looked at the terminal."""
    patch = pytest.MonkeyPatch()
    closing = isolate(patch)
    config.add_cleanup(closing.close)
    config.add_cleanup(patch.undo)


@pytest.fixture(scope="session", autouse=True)
def _no_history_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Advice in tests knows of no runs that somebody's daemon has seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAPWATCH_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def every_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands filled in as on a machine on which all tools are installed."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.fixture
def same_as(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """Compare a text with a file, or write it there under ``--rewrite-golden``."""

    def check(text: str, path: Path) -> None:
        if request.config.getoption("--rewrite-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
        assert path.is_file(), f"{path.name} is missing; pytest --rewrite-golden writes it"
        assert text == path.read_bytes().decode(), f"{path.name} differs; see the change, then pytest --rewrite-golden"

    return check


@pytest.fixture
def golden(same_as: Callable[[str, Path], None]) -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name."""
    return lambda text, name: same_as(text, GOLDEN / name)
