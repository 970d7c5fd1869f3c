"""What distributions are made of follows pyproject.toml and the parsers: recipes, the manual page, completion."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from advisor import __version__
from advisor.cli.commands import COMMANDS
from advisor.cli.completion import list_command_entries, write_bash_script, write_fish_script, write_zsh_script

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = PACKAGING / "conda" / "recipe.yaml"
#: What conda calls packages otherwise.
CONDA_NAMES = {"msgspec": "msgspec-python", "matplotlib": "matplotlib-base"}


def requirements(lines: list[str]) -> dict[str, str]:
    """Names and lowest versions."""
    found = [re.match(r"([\w-]+)>=([\d.]+)", line) for line in lines]
    assert all(found), lines
    return {match[1]: match[2] for match in found if match}


def test_spack_asks_for_what_the_project_asks_for() -> None:
    text = (PACKAGING / "spack" / "package.py").read_text(encoding="utf-8")
    compile(text, "package.py", "exec")
    assert "from spack_repo.builtin.build_systems.python import PythonPackage" in text, "as Spack 1.0 wants it"
    base = dict(re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):", type=\("build", "run"\)\)', text))
    assert base == requirements(PROJECT["dependencies"])
    extras = re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):", when="\+(\w+)"', text)
    for name, version, extra in extras:
        assert requirements(PROJECT["optional-dependencies"][extra])[name] == version
        assert f'variant("{extra}"' in text
    assert f"python@{PROJECT['requires-python'].removeprefix('>=')}:" in text


def test_conda_asks_for_what_the_project_asks_for() -> None:
    recipe = yaml.safe_load(CONDA.read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == __version__
    asked = recipe["requirements"]
    wanted = requirements(PROJECT["dependencies"])
    assert dict(line.split(" >=") for line in asked["run"]) == {"python": "3.11"} | {
        CONDA_NAMES.get(name, name): version for name, version in wanted.items()
    }
    every = {
        CONDA_NAMES.get(name, name): version
        for extra in ("screen", "html", "fast")
        for name, version in requirements(PROJECT["optional-dependencies"][extra]).items()
    }
    assert dict(line.split(" >=") for line in asked["run_constraints"]) == every


def test_rattler_build_renders_the_recipe_of_conda() -> None:
    rattler_build = pytest.importorskip("rattler_build", reason="not installed: pip install py-rattler-build")
    [variant] = rattler_build.Stage0Recipe.from_file(CONDA).render()
    assert (variant.recipe.package.name, str(variant.recipe.package.version)) == ("gapwatch", __version__)


def test_the_image_installs_extras_that_there_are() -> None:
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    [extras] = re.findall(r"/source\[([\w,]+)\]", text)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert "USER 1000" in text, "a number: hosts that forbid root cannot look a name up"
    assert "--uid 1000" in text


def test_the_manual_page_says_what_the_parsers_say(same_as: Callable[[str, Path], None]) -> None:
    spec = importlib.util.spec_from_file_location("man_page", PACKAGING / "man_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    same_as(module.render_man_page(), PACKAGING / "gapwatch.1")


def test_the_manual_page_has_no_fault() -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("there is no mandoc here: apt-get install mandoc")
    command = ["mandoc", "-T", "lint", "-W", "warning", PACKAGING / "gapwatch.1"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line for line in made.stdout.splitlines() if "missing date" not in line] == []


def complete_in_bash(*words: str) -> list[str]:
    """What bash proposes for the last of these words."""
    script = write_bash_script(list_command_entries([("scale", "a plugin's")]))
    typed = " ".join(f"'{word}'" for word in ("gapwatch", *words))
    call = f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _gapwatch; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    made = subprocess.run(["bash", "-c", f"{script}\n{call}"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert made.stderr == ""
    return made.stdout.split()


def test_bash_completes_commands_options_and_values() -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    assert complete_in_bash("wa") == ["watch"]
    assert set(complete_in_bash("")) == {*COMMANDS, "scale", "--help", "--version"}
    assert "--once" in complete_in_bash("watch", "--o")
    assert complete_in_bash("watch", "--format", "li") == ["live", "lines"]
    assert complete_in_bash("rules", "t") == ["test"]
    assert "--help" in complete_in_bash("rules", "list", "--h")
    assert complete_in_bash("advise", "pyproj") == ["pyproject.toml"]


@pytest.mark.parametrize(("shell", "write"), [("zsh", write_zsh_script), ("fish", write_fish_script),
                                              ("bash", write_bash_script)])  # fmt: skip
def test_shells_read_their_scripts(shell: str, write: Callable[..., str], tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here: apt-get install {shell}")
    file = tmp_path / "script"
    file.write_text(write(list_command_entries([("odd", 'it\'s [a] command: \\ "quoted" $HOME `x`')])), "utf-8")
    made = subprocess.run([shell, "-n", file], capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")


def test_fish_completes_commands_options_and_values(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("there is no fish here: apt-get install fish")
    (tmp_path / "script").write_text(write_fish_script(list_command_entries()), encoding="utf-8")

    def complete(line: str) -> list[str]:
        command = ["fish", "-N", "-c", f"source {tmp_path / 'script'}; complete -C '{line}'"]
        made = subprocess.run(command, capture_output=True, text=True, check=True)
        return [row.split("\t")[0] for row in made.stdout.splitlines()]

    assert complete("gapwatch wat") == ["watch"]
    assert set(complete("gapwatch watch --format l")) == {"live", "lines"}
    assert complete("gapwatch rules tes") == ["test"]
