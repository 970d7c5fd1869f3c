"""What a template of a library takes is told of the line of the program that used it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recorded_runs import SOURCES, compile_program, record_run

from gapwatch import load

if TYPE_CHECKING:
    from pathlib import Path


def test_functions_that_templates_call_stand_where_the_program_uses_the_template(tmp_path: Path) -> None:
    program = compile_program(tmp_path, ("g++",), "lookup.cpp")
    recording, _, said = record_run(tmp_path, str(program))
    lines = (SOURCES / "lookup.cpp").read_text("ascii").splitlines()
    find = next(number for number, line in enumerate(lines, start=1) if "table.find" in line)
    regions = load(recording).advise().profile.regions
    walks = [(one.file, one.line) for one in regions if one.name == "walking through std::map or std::set"]
    assert ("lookup.cpp", find) in walks, said
