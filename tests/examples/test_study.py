"""The example of one program and all sets of evidence: the first item of each is that of its page, and is right."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    from advisor.model.records import Advice

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "study"


def load_study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("study", FOLDER / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


STUDY = load_study()
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
TABLE, AT_TARGET = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[:2]


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Advice]:
    """The advice on every set of evidence; nothing of the user's is seen."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    patch.setenv("GAPWATCH_WORKLOADS", "")
    patch.chdir(tmp_path_factory.getbasetemp())
    found = {chosen: STUDY.advise_on(chosen, tmp_path_factory.mktemp("study")) for chosen in STUDY.list_sets()}
    patch.undo()
    return found


def test_the_page_shows_the_first_item_for_every_set(advised: dict[tuple[str, ...], Advice]) -> None:
    assert len(advised) == 32
    shown = [f"{' + '.join(['trace', *chosen]):56} {STUDY.describe_first(each)}" for chosen, each in advised.items()]
    assert TABLE.splitlines() == shown


def test_no_evidence_displaces_what_was_measured(advised: dict[tuple[str, ...], Advice]) -> None:
    """In every order of evidence the coupling is first from the experiment on, and the stride from the loops on."""
    for chosen, each in advised.items():
        first: Any = next(iter(each.recommendations), None)
        if "coupling" in chosen:
            assert (first.action, first.region, first.basis) == ("K-1", "flux and update", "experiment")
            assert first.interval_s[0] <= 2.0 <= first.interval_s[1]
        elif "in-core" in chosen:
            assert (first.action, first.region) == ("P-3", "limiter")
        elif "counts" in chosen:
            assert first.action == "A-21"
        elif "scaling" in chosen:
            assert (first.action, first.region) == ("T-1", "MPI_Allreduce")
        else:
            assert first is None


def test_the_account_of_the_caches_is_the_truth(advised: dict[tuple[str, ...], Advice]) -> None:
    accounts = {one.gap: one for one in advised["coupling", "counts", "in-core", "scaling", "library"].accounts}
    parts = {part.cause: part.seconds for part in accounts["$"].parts}
    assert parts == {"coupling": pytest.approx(2.0, rel=0.05), "stride": pytest.approx(1.3, rel=0.05)}
    assert accounts["$"].unexplained_s == pytest.approx(3.8 - 3.3, abs=0.1)


def test_at_the_target_the_reduction_is_first_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the communication is the halo's today; a study that is later than the run tells what it will be."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("GAPWATCH_WORKLOADS", "")
    monkeypatch.chdir(tmp_path)
    shown = []
    for number, chosen in enumerate((("scaling",), ("coupling", "scaling"), tuple(STUDY.EVIDENCE))):
        advice = STUDY.advise_on(chosen, tmp_path / str(number), STUDY.TARGET)
        shown.append(f"{' + '.join(['trace', *chosen]):56} {STUDY.describe_first(advice, STUDY.TARGET)}")
        measures = next(one.measures for one in advice.findings if one.subject == "C'")
        places = {name: seconds for name, seconds in measures.items() if name.startswith("seconds in ")}
        assert list(places) == ["seconds in MPI_Allreduce", "seconds in MPI_Sendrecv"]
        assert sum(places.values()) <= 1.0001 * measures["seconds"]
    assert AT_TARGET.splitlines() == shown


def test_a_library_of_profiles_is_taken_in_by_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from advisor_similarity import hooks

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    STUDY.write_library(tmp_path)
    found = hooks.advisor_document(tmp_path / "team" / "library.json")
    assert found is not None
    assert found.words == "1 workload (cousin)"
