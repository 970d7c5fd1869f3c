"""docs/notebook.ipynb: every cell runs and gives what is stored, and the file stays small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_line import ROOT
from notebooks import read_notebook, run_cell, run_notebook, write_notebook

import gapwatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_every_cell_gives_what_is_stored(monkeypatch: pytest.MonkeyPatch, same_as: Callable[[str, Path], None]) -> None:
    pytest.importorskip("matplotlib", reason="the extra html is not installed")
    for folder in (ROOT, NOTEBOOK.parent):
        monkeypatch.chdir(folder)
        notebook = read_notebook(NOTEBOOK)
        done = run_notebook(notebook)
        for cell, made in done:
            cell["outputs"] = made.outputs
        same_as(write_notebook(notebook), NOTEBOOK)
    assert sum(bool(cell["outputs"]) for cell, _ in done) >= 6
    [page] = [made.value for _, made in done if isinstance(made.value, gapwatch.Run)]
    assert page._repr_html_().startswith("<iframe sandbox")
    assert NOTEBOOK.stat().st_size < 20_000, "pictures are not stored"


def test_the_document_is_one_that_jupyter_opens() -> None:
    notebook = read_notebook(NOTEBOOK)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("code", "markdown")
        assert "".join(cell["source"]).strip()


def test_a_cell_shows_its_last_value_and_what_it_printed() -> None:
    namespace: dict[str, object] = {}
    made = run_cell("a = 2\nprint('x')\na + 1", namespace)
    assert (made.printed, made.value, namespace["a"]) == ("x\n", 3, 2)
    assert [one["output_type"] for one in made.outputs] == ["stream", "display_data"]
    assert run_cell("a + 1;", namespace).outputs == []
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", namespace)
