"""What is said to be supported is tested: versions of Python, versions of packages, formats and screens."""

from __future__ import annotations

import re
import tomllib

import pytest
from installed import ROOT
from interpreters import SUPPORTED, find_interpreter
from packaging.requirements import Requirement

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SUBSET = (ROOT / "tests" / "subset.txt").read_text(encoding="utf-8").split()


def locked(name: str) -> dict[str, list[str]]:
    """The versions of each package in a file of requirements/."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"([a-z0-9-]+)==(\S+)", line):
            found.setdefault(row[1], []).append(row[2])
    return found


def requirements() -> list[Requirement]:
    extras = PROJECT["project"]["optional-dependencies"]
    groups = PROJECT["dependency-groups"]
    stated = [*PROJECT["project"]["dependencies"], *(each for name in extras if name != "all" for each in extras[name])]
    return [Requirement(each) for each in (*stated, *groups["test"])]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("lock", ["newest", "lowest"])
def test_every_requirement_is_locked_to_versions_that_it_allows(lock: str) -> None:
    versions = locked(lock)
    for each in requirements():
        found = versions.get(canonical(each.name), [])
        assert found, f"{each} is missing in requirements/{lock}.txt: run make lock"
        assert all(each.specifier.contains(version) for version in found), f"{each}: {found}; run make lock"


def test_the_lowest_versions_are_those_that_the_project_states() -> None:
    versions = locked("lowest")
    for each in requirements():
        (stated,) = (one.version for one in each.specifier if one.operator == ">=")
        (found,) = versions[canonical(each.name)]
        assert f"{found}.0.0".startswith(f"{stated}."), f"{each} is tested with {found}"


@pytest.mark.parametrize("lock", ["newest", "lowest"])
def test_every_locked_package_has_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    for entry in re.split(r"\n(?=[a-z])", text)[1:]:
        assert "--hash=sha256:" in entry, entry


def test_the_subset_reads_every_format_and_draws_every_screen() -> None:
    readers = {
        module.rpartition(".")[2]
        for module in PROJECT["project"]["entry-points"]["advisor"].values()
        if module.startswith("advisor.formats.")
    }
    # Tests of OTF2 write archives with the otf2 wheel, which is for Python 3.11; test_every_format reads others.
    expected = {f"tests/formats/test_{reader}.py" for reader in (readers - {"otf2"}) | {"every_format"}}
    expected |= {f"tests/output/{path.name}" for path in (ROOT / "tests" / "output").glob("test_render_*.py")}
    assert expected <= set(SUBSET)
    assert all((ROOT / path).is_file() for path in SUBSET)


def test_classifiers_name_supported_versions() -> None:
    stated = re.findall(r"Python :: (3\.\d+)\b", "\n".join(PROJECT["project"]["classifiers"]))
    assert stated == [version for version in SUPPORTED if version in stated]
    assert PROJECT["project"]["requires-python"] == f">={SUPPORTED[0]}"


def test_interpreters_are_what_they_are_asked_for() -> None:
    assert find_interpreter("3.1") is None
    assert any(find_interpreter(version) for version in SUPPORTED)
