"""``gapwatch count``: programs that are built and run, stated counts, and what is refused."""

from __future__ import annotations

import shutil
from argparse import Namespace
from contextlib import nullcontext
from typing import TYPE_CHECKING

import command_line
import pytest
from counted_sources import EXAMPLES, NEEDS_GCC

from advisor.model.errors import AdvisorError, InputError, UsageError
from advisor_processor import count_command as command
from advisor_processor.operations_document import read_operations
from advisor_processor.source import instrumented_run, model

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
#include <stdlib.h>
static int g(int n, double *a)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (a[i] > 2.5)
            continue;
        a[i] = a[i] > 1.5 && a[i] < 9.0 ? a[i] * 2.0 : a[i] + 1.0;
        switch (i % 3) {
        case 0:
            found++;
            break;
        default:
            found += 2;
        }
    }
    do
        found--;
    while (found > 3);
    return found;
}
int main(void)
{
    double a[] = {1.0, 2.0, 3.0, 4.0};
#ifdef NEVER
    for (int i = 0; i < 9; i++)
        a[0] += 1.0;
#endif
    return g(4, a) != 2;
}
"""


@NEEDS_GCC
@pytest.mark.parametrize(("suffix", "compiler"), [(".c", "gcc"), (".cpp", "g++")])
def test_branches_count_what_they_ran(suffix: str, compiler: str, tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}: apt install {compiler}")
    file = tmp_path / f"x{suffix}"
    file.write_text(PROGRAM)
    found = model.build_model(instrumented_run.count_executions([file], ["./x"], f"{compiler} x{suffix} -o x"))
    totals = {loop.loop.line: (loop.iterations, loop.totals) for loop in found.loops}
    assert totals[6][0] == (4,)
    assert (totals[6][1]["fp_mul"], totals[6][1]["fp_add"]) == (1, 1)
    assert totals[27][0] == (0,)


@NEEDS_GCC
@pytest.mark.parametrize(
    ("command_line", "build", "words"),
    [
        (["./gauss", "5"], "false", "can't be built"), (["./gauss", "5"], "no-such-compiler", "can't be built"),
        (["false"], None, "failed"), (["true"], None, "wrote no counts"),
    ],
)  # fmt: skip
def test_what_fails_is_said(command_line: list[str], build: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        instrumented_run.count_executions(
            [EXAMPLES / "gauss.c"], command_line, build or "gcc gauss.c -o gauss", EXAMPLES
        )


@NEEDS_GCC
def test_what_a_compiler_says_keeps_its_lines(tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text("int main(void) { return nothing; }\n")
    said = command_line.run("count", "bad.c", "--", "./bad", home=tmp_path)
    lines = said.stderr.decode().splitlines()
    assert said.returncode == 2
    assert "can't be built" in lines[0]
    assert "nothing" not in lines[0]
    assert all(line.startswith("gapwatch: ") for line in lines)
    assert any("'nothing'" in line or "‘nothing’" in line for line in lines[1:])
    assert "\\n" not in said.stderr.decode()


def test_a_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        instrumented_run.read_sources([tmp_path / "x.c"])


class Services:
    def show_progress(self, words: str, total: int | None = None) -> nullcontext[object]:
        return nullcontext()


@NEEDS_GCC
def test_the_command_writes_counts_that_are_a_recording(tmp_path: Path) -> None:
    target = tmp_path / "gauss.operations.json"
    args = Namespace(
        source=[EXAMPLES / "gauss.c"], command=["./gauss", "6"], build=None, root=EXAMPLES, program=None, write=target
    )
    report = command.run_count(args, Services())  # type: ignore[arg-type]
    assert report.title == "./gauss 6"
    profile = read_operations(target)
    assert (profile.program, profile.reader, profile.ranks) == ("gauss", "count", 1)
    place = [region.name for region in profile.regions].index("eliminate")
    assert profile.counts["source_ops.fp_fma"][place, 0] == 5 * 6 * 7 / 3
    with pytest.raises(UsageError, match="after --"):
        command.run_count(Namespace(command=[]), Services())  # type: ignore[arg-type]


YAML = """\
schema: gapwatch/operations/1
program: heat
ranks: 2
regions:
  - name: sweep
    file: heat.c
    line: 10
    counts:
      source_ops.fp_add: [400, 500]
      source_ops.load: [1000]
"""


def test_counts_can_be_stated_in_yaml(tmp_path: Path) -> None:
    file = tmp_path / "heat.operations.yaml"
    file.write_text(YAML)
    profile = read_operations(file)
    assert profile.counts["source_ops.fp_add"].tolist() == [[400, 500]]
    assert profile.counts["source_ops.load"].tolist() == [[1000, 1000]]
    assert not profile.has_run_time


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[400, 500]", "[400, 500, 1]", "3 numbers for 2 ranks"), ("[400, 500]", "[400, -1]", "from zero"),
        ("ranks: 2", "ranks: 0", "ranks"), ("source_ops.load", "No name", "not the name of a count"),
        ("program: heat", "programme: heat", "programme"),
    ],
)  # fmt: skip
def test_mistakes_in_stated_counts_are_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "heat.operations.yaml"
    file.write_text(YAML.replace(old, new))
    with pytest.raises(AdvisorError, match=words):
        read_operations(file)


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": "gapwatch/operations/1"}', '{"schema": "gapwatch/operations/1", "program": "a", "regions": 1}',
        '{"schema": "gapwatch/operations/1", "program": "a", "regions": [{"name": "f", "counts": {"a": [NaN]}}]}',
        '{"schema": "gapwatch/operations/1", "program": "a", "regions": [{"name": "f", "counts": {"a": [1, 2]}}]}',
        '{"schema": "gapwatch/operations/1", "program": "a", "regions": [',
    ],
)  # fmt: skip
def test_damaged_documents_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.operations.json"
    file.write_text(text)
    with pytest.raises(InputError):
        read_operations(file)
