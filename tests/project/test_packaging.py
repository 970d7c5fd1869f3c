"""Installed as a wheel, as a wheel made from the source distribution, and editable: the same gapwatch each time."""

from __future__ import annotations

import os
import re
import tarfile
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest
import yaml
from installed import ROOT, Environment, build, environment

from advisor import __version__

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def from_wheel(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment(tmp_path_factory.mktemp("from_wheel"), str(wheel))


def expected(folder: str) -> list[str]:
    return sorted(entry.name for entry in (ROOT / folder).iterdir() if entry.name.endswith(".yaml"))


def check(installed: Environment) -> None:
    """All that belongs to gapwatch is found, and nothing is wrong with it."""
    found = installed.found()
    own = {name: problem for name, (origin, problem) in found["plugins"].items() if origin == "gapwatch"}
    assert own == dict.fromkeys(PROJECT["project"]["entry-points"]["advisor"])
    assert found["rules"] == expected("rules")
    assert found["machine_models"] == expected("machine_models")
    assert found["rules"]
    assert found["machine_models"]
    assert found["schema"] == "gapwatch/profile/1"


def test_a_wheel_has_everything(from_wheel: Environment) -> None:
    check(from_wheel)
    assert from_wheel.found()["advisor"].startswith(str(from_wheel.folder))


def test_a_wheel_from_the_source_distribution_has_everything(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not in Python 3.11.0 to 3.11.3
        archive.extractall(tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    check(environment(tmp_path / "venv", str(build(source, "wheel", tmp_path / "wheel"))))


def test_an_editable_install_has_everything(tmp_path: Path) -> None:
    installed = environment(tmp_path, "-e", str(ROOT))
    check(installed)
    assert installed.found()["advisor"] == str(ROOT / "advisor" / "__init__.py")


def test_the_wheel_holds_packages_and_nothing_beside_them(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.partition("/")[0] for name in names}
    own_names = {name for name in top if not name.endswith((".dist-info", ".data"))}  # .data: the manual page
    assert own_names == {"advisor", "gapwatch", *plugin_packages()}
    for package in plugin_packages():
        own = {str(path.relative_to(ROOT / "plugins")) for path in sources(ROOT / "plugins" / package)}
        assert own <= set(names), package


def plugin_packages() -> set[str]:
    return {entry.name for entry in (ROOT / "plugins").iterdir() if entry.is_dir() and entry.name != "__pycache__"}


def sources(package: Path) -> list[Path]:
    """All files of a package, those that are no Python too, without what Python makes of them."""
    return [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_plugin_folders_are_packages_and_entry_points() -> None:
    modules = PROJECT["project"]["entry-points"]["advisor"].values()
    assert {module for module in modules if not module.startswith("advisor.")} == plugin_packages()
    assert all((ROOT / "plugins" / package / "__init__.py").is_file() for package in plugin_packages())


# The license


def test_the_wheel_brings_the_license_and_names_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (licensed,) = [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
        metadata = archive.read(licensed.replace("licenses/LICENSE", "METADATA")).decode()
        assert archive.read(licensed) == (ROOT / "LICENSE").read_bytes()
    fields = metadata.partition("\n\n")[0].splitlines()
    assert "License-Expression: BSD-3-Clause" in fields
    assert "License-File: LICENSE" in fields


def test_the_source_distribution_holds_what_an_open_project_has(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "docs/design.md"} <= names
    assert {f"docs/decisions/{path.name}" for path in (ROOT / "docs" / "decisions").iterdir()} <= names


def test_license_citation_and_changelog_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["authors"] == [{"name": "The gapwatch authors"}]
    assert citation["authors"][0]["name"] in (ROOT / "LICENSE").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == citation["version"]
    assert __version__ in versions


# The command


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """A stand-in for the vendor's package of the name ``advisor``, to be put on ``PYTHONPATH``."""
    package = tmp_path / "vendor" / "advisor"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('the package of the vendor was imported')", encoding="utf-8")
    return package.parent


def test_the_command_works_beside_a_foreign_package_advisor(from_wheel: Environment, vendor: Path) -> None:
    for program, arguments in (("gapwatch", ()), ("python", ("-P", "-m", "gapwatch"))):
        done = from_wheel.run(program, *arguments, "plugins", cwd=vendor, PYTHONPATH=str(vendor))
        assert done.returncode == 0, done.stderr
        assert "native" in done.stdout
    assert from_wheel.found(PYTHONPATH=str(vendor))["plugins"]["native"] == ["gapwatch", None]


def test_others_still_get_the_foreign_package(from_wheel: Environment, vendor: Path) -> None:
    done = from_wheel.run("python", "-c", "import advisor", cwd=vendor.parent, PYTHONPATH=str(vendor))
    assert "the package of the vendor was imported" in done.stderr
    inner = "import os, gapwatch, subprocess, sys; gapwatch.bind_own_package(); print(os.environ['PYTHONPATH'])"
    assert from_wheel.run("python", "-c", inner, cwd=vendor.parent, PYTHONPATH=str(vendor)).stdout == f"{vendor}\n"


def test_a_foreign_package_that_is_already_imported_gives_way(from_wheel: Environment, vendor: Path) -> None:
    (vendor / "advisor" / "__init__.py").write_text("", encoding="utf-8")
    (vendor / "advisor" / "model").mkdir()
    (vendor / "advisor" / "model" / "records.py").write_text("", encoding="utf-8")
    program = (
        "import advisor.model.records as theirs, gapwatch; gapwatch.bind_own_package(); "
        "import advisor.model.records; print(hasattr(advisor.model.records, 'Profile'), hasattr(theirs, 'Profile'))"
    )
    done = from_wheel.run("python", "-c", program, cwd=vendor.parent, PYTHONPATH=str(vendor))
    assert done.stdout == "True False\n", done.stderr


@pytest.mark.parametrize(
    ("program", "arguments", "path"),
    [("gapwatch", (), None), ("gapwatch", (), os.pathsep + "/opt/of/others"), ("python", ("-m", "gapwatch"), None)],
)
def test_nothing_is_imported_from_the_current_directory(
    from_wheel: Environment, tmp_path: Path, program: str, arguments: tuple[str, ...], path: str | None
) -> None:
    for name in ("advisor", "numpy", "yaml", "rich", "pluggy", "argparse", "scipy", "psutil"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')", encoding="utf-8")
    variables = {} if path is None else {"PYTHONPATH": path}
    for command in (("--help",), ("plugins",), ("machines", "list"), ("machines", "show", "host")):
        done = from_wheel.run(program, *arguments, *command, cwd=tmp_path, **variables)
        assert (done.returncode, "planted" in done.stderr) == (0, False), done.stderr


def test_an_installed_package_in_the_current_directory_stays_importable(
    from_wheel: Environment, tmp_path: Path
) -> None:
    """A plugin that is installed editable must load also for somebody who works in its folder."""
    (tmp_path / "own_plugin.py").write_text("", encoding="utf-8")
    named = "import sys, gapwatch; gapwatch.bind_own_package(); import own_plugin"
    assert from_wheel.run("python", "-c", named, cwd=tmp_path, PYTHONPATH=str(tmp_path)).returncode == 0
    behind = f"import sys; sys.path.append({str(tmp_path)!r}); sys.path[0] = ''; {named}"
    assert from_wheel.run("python", "-c", behind, cwd=tmp_path).returncode == 0
    assert from_wheel.run("python", "-c", named, cwd=tmp_path).returncode == 1


def test_the_command_works_in_a_directory_that_is_gone(from_wheel: Environment, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    leave = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    command, profile = from_wheel.folder / "bin" / "gapwatch", ROOT / "tests" / "profiles" / "fig4.json"
    done = from_wheel.run("python", "-c", leave, str(command), "advise", str(profile), cwd=gone)
    assert done.returncode == 0
    assert "failed" not in done.stdout + done.stderr
