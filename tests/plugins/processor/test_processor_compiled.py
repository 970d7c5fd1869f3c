from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import command_line
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S

from advisor.analysis.machines.records import FunctionalUnit, Machine, Number, NumberSource
from advisor.model.errors import InputError
from advisor_processor.compiled import binary, executions, external_tools
from advisor_processor.compiled.chains import compute_chain_cycles, find_strides
from advisor_processor.compiled.executions import is_computing_object
from advisor_processor.compiled.instructions import Instruction, classify_access, decode_instructions, find_unit
from advisor_processor.compiled.loops import count_trips, find_innermost_loops
from advisor_processor.compiled.schedule import compute_busy_cycles, compute_schedule

S = "sheet"
LOOPS = Path(__file__).resolve().parents[3] / "examples" / "incore"


def unit(per_cycle: float, latency: float, chained: float | None = None, pipes: str | None = None) -> FunctionalUnit:
    return FunctionalUnit(
        Number(per_cycle, S),
        Number(256, S),
        latency=Number(latency, S),
        chained_latency=Number(chained, S) if chained else None,
        pipes=pipes,
    )


MACHINE = Machine(
    name="toy",
    title="Toy",
    description="for tests",
    sources={S: NumberSource("its data sheet")},
    frequency=Number(1e9, S),
    issue=Number(4, S),
    units={
        "fp_add": unit(2, 3, 2, "fp"),
        "fp_mul": unit(2, 4, None, "fp"),
        "fp_fma": unit(2, 4, None, "fp"),
        "fp_div": unit(0.25, 14),
        "load": unit(2, 5),
        "store": unit(1, 5),
        "int": FunctionalUnit(Number(4, S)),
    },
)


def code(hexadecimal: str) -> list[Instruction]:
    return list(decode_instructions(bytes.fromhex(hexadecimal), 0x1000))


#: Each is the loop of a function: as gcc -O1 -mavx2 emits it.
GAUSS_SEIDEL = code(
    "c5fb1000 c5fb584010 c5fb5844f008 c5fb5844c808 c5fb59c1 c5fb114008 4883c008 4839d0 75d9"
    .replace(" ", "")
)  # fmt: skip
DDOT = code("c5fb1004c6 c5fb5904c2 c5f358c8 4883c001 4839c7 75e9".replace(" ", ""))
HORNER = code("c5fb59c1 c5fb5807 4883c708 4839c7 75ef".replace(" ", ""))


def test_what_an_instruction_reads_writes_and_occupies() -> None:
    load, add, *_, multiply, store, step, compare, jump = GAUSS_SEIDEL
    assert (load.unit, load.load is not None, load.store) == (None, True, None)
    assert (add.unit, add.packed, sorted(add.data), sorted(add.writes)) == ("fp_add", False, ["v0"], ["v0"])
    assert (multiply.unit, sorted(multiply.data)) == ("fp_mul", ["v0", "v1"])
    assert (store.load, store.store is not None) == (None, True)
    assert (step.step, compare.unit, jump.target) == (("rax", 8), "int", 0x1000)


@pytest.mark.parametrize(
    ("mnemonic", "unit_and_vector"),
    [
        ("vaddpd", ("fp_add", True)), ("subsd", ("fp_add", False)), ("vmulps", ("fp_mul", True)),
        ("vfmadd231pd", ("fp_fma", True)), ("vfnmsub132sd", ("fp_fma", False)), ("sqrtsd", ("fp_div", False)),
        ("divpd", ("fp_div", True)), ("vmaxsd", ("fp_add", False)), ("vucomisd", ("fp_add", False)),
        ("lea", ("int", False)), ("cmovl", ("int", False)), ("vpaddd", (None, False)), ("vmovupd", (None, False)),
        ("fmulp", ("fp_mul", False)), ("vxorps", (None, False)),
    ],
)  # fmt: skip
def test_units_by_mnemonic(mnemonic: str, unit_and_vector: tuple[str | None, bool]) -> None:
    assert find_unit(mnemonic) == unit_and_vector


@pytest.mark.parametrize(
    ("mnemonic", "first", "expected"),
    [
        ("vmovupd", True, (False, True)), ("vmovupd", False, (True, False)), ("add", True, (True, True)),
        ("cmp", True, (True, False)), ("vextractf128", True, (False, True)), ("vaddpd", False, (True, False)),
        ("inc", True, (True, True)), ("sete", True, (False, True)), ("imul", True, (True, False)),
    ],
)  # fmt: skip
def test_whether_memory_is_read_or_written(mnemonic: str, first: bool, expected: tuple[bool, bool]) -> None:
    assert classify_access(mnemonic, first) == expected


def test_a_sum_waits_for_the_sum_before() -> None:
    assert compute_chain_cycles(DDOT, MACHINE) == 2  # addition after addition


def test_horner_waits_for_a_multiplication_and_an_addition() -> None:
    assert compute_chain_cycles(HORNER, MACHINE) == 4 + 3


def test_a_chain_through_memory_is_followed() -> None:
    """Load of what was stored before (5), three additions (3 + 2 + 2), a multiplication (4)."""
    assert find_strides(GAUSS_SEIDEL) == {"rax": 8, "rsi": 0, "rcx": 0}
    assert compute_chain_cycles(GAUSS_SEIDEL, MACHINE) == 5 + 3 + 2 + 2 + 4


def test_throughput_counts_units_pipes_and_slots() -> None:
    busy = compute_busy_cycles(((one, 1.0) for one in GAUSS_SEIDEL), MACHINE)
    assert busy == {"load": 4 / 2, "fp": 4 / 2, "store": 1.0, "int": 2 / 4, "issue": (9 - 1) / 4}


def test_a_wider_instruction_does_not_do_more_per_cycle_than_a_full_one() -> None:
    divider = Machine(
        name="d", title="d", description="d", sources={S: NumberSource("s")}, frequency=Number(1e9, S),
        units={"fp_div": FunctionalUnit(Number(1 / 16, S), Number(512, S), Number(1 / 4, S))},
    )  # fmt: skip
    cycles = {
        width: compute_busy_cycles([(code(text)[0], 1.0)], divider)["fp_div"]
        for width, text in ((64, "c5fb5ec1"), (128, "c5f95ec1"), (256, "c5fd5ec1"))
    }
    assert cycles == {64: 4.0, 128: 4.0, 256: 8.0}


def test_the_innermost_loop_is_found_although_an_outer_one_jumps_to_its_head() -> None:
    """Two jumps back to one address: the shorter loop is inside, the longer around it."""
    both = code("ffc0 39d0 75fa ffc1 39f1 75f4 c3")
    (loop,) = find_innermost_loops(both)
    assert (loop.begin, len(loop.body)) == (0x1000, 3)
    executed = {0x1000: 60.0, 0x1002: 60.0, 0x1004: 60.0, 0x1006: 6.0, 0x1008: 6.0, 0x100A: 6.0, 0x100C: 1.0}
    found = count_trips(loop, executed)
    assert (found.iterations, found.entries) == (60, 6)


@given(st.integers(1, 10**9), st.integers(1, 1000))
def test_macs_is_never_below_mac(iterations: int, entries: int) -> None:
    executed = {one.address: float(iterations) for one in GAUSS_SEIDEL}
    executed[GAUSS_SEIDEL[-1].end] = float(min(entries, iterations))
    found = compute_schedule(GAUSS_SEIDEL, executed, MACHINE)
    assert found.macs_cycles >= found.mac_cycles * (1 - 1e-12)
    assert found.macs_cycles <= iterations * 16 * (1 + 1e-12)


def test_short_loops_may_overlap_with_what_follows() -> None:
    """A chain of 3 iterations leaves the window of the core long before it would hold it up."""
    executed = {one.address: 3000.0 for one in DDOT} | {DDOT[-1].end: 1000.0}
    found = compute_schedule(DDOT, executed, MACHINE)
    assert found.macs_cycles == pytest.approx(max(found.busy.values()))


def test_only_the_program_and_computing_libraries_are_work() -> None:
    names = [
        "/home/me/heat",
        "/usr/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/libc.so.6",
        "/lib64/ld-linux.so.2",
        "???",
    ]
    assert [is_computing_object(name) for name in names] == [True, True, False, False, False]


CALLGRIND = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 7
cmd:  ./heat 10
positions: instr line
events: Ir D1mr
summary: 30 1

ob=(1) /home/me/heat
fl=(1) heat.c
fn=(1) main
0x1000 3 1 1
+2 +1 2
cob=(2) /usr/lib/libm.so.6
cfn=(2) exp
calls=1 0x500 0
* * 20
ob=(2)
fn=(2)
0x500 0 20
ob=(1)
fn=(1)
-0x4fe +3 4

totals: 30 1
"""


def test_counts_by_instruction_without_what_calls_cost(tmp_path: Path) -> None:
    text = CALLGRIND.replace("-0x4fe", "+0xb04")
    file = tmp_path / "callgrind.out.7"
    file.write_text(text)
    (found,) = executions.read_executions(file)
    assert (found.program, found.pid, found.events) == ("heat", 7, ("Ir", "D1mr"))
    assert found.instruction_counts("/home/me/heat") == {0x1000: 1, 0x1002: 2, 0x1004: 4}
    assert found.instruction_counts("/usr/lib/libm.so.6") == {0x500: 20}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("positions: instr line", "positions: line", "--dump-instr=yes"),
        ("totals: 30 1\n", "", "cut off"),
        ("+2 +1 2", "+2 +1 x", "damaged"),
        ("ob=(2)\n", "ob=(9)\n", "damaged"),
        ("Ir D1mr", "Dr D1mr", "Ir"),
        ("creator: callgrind-3.19.0", "creator: someone", "no output of callgrind"),
    ],
)
def test_damaged_recordings_are_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "callgrind.out.7"
    file.write_text(CALLGRIND.replace(old, new))
    with pytest.raises(InputError, match=words):
        executions.read_executions(file)


def test_ranks_are_what_names_end_in_or_the_order_of_processes(tmp_path: Path) -> None:
    for name, pid in (("cg.1", 3), ("cg.0", 9)):
        (tmp_path / name).write_text(CALLGRIND.replace("pid: 7", f"pid: {pid}"))
    assert [(one.rank, one.pid) for one in executions.read_executions(tmp_path)] == [(0, 9), (1, 3)]
    (tmp_path / "cg.0").rename(tmp_path / "cg.x")
    assert [(one.rank, one.pid) for one in executions.read_executions(tmp_path)] == [(0, 3), (1, 9)]


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF" + bytes(100), b"not a program"])
def test_what_is_no_program_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_bytes(data)
    with pytest.raises(InputError):
        binary.read_binary(file)


def test_bytes_that_are_no_instructions_are_skipped() -> None:
    found = list(decode_instructions(b"\x06\x06\x90\xc3", 0))
    assert [one.mnemonic for one in found] == ["nop", "ret"]


def test_llvm_mca_gives_a_second_opinion() -> None:
    if not any(shutil.which(name) for name in ("llvm-mca", "llvm-mca-14", "llvm-mca-15", "llvm-mca-16")):
        pytest.skip("needs llvm-mca: apt install llvm")
    found = external_tools.run_llvm_mca(HORNER)
    assert found is not None
    assert found.cycles >= found.throughput > 0


#: The end of what OSACA 0.7.1 prints of DDOT for SPR.
OSACA_SAID = """
   5 |             | 0.37        |      |      |      | 0.630 |      |  2.0 |  2.0 |   vaddsd xmm1, xmm1, xmm0
   7 | 0.00        | 0.00        |      |      |      | -0.01 | 0.50 |      |      |   cmp rdi, rax

       0.80          0.80          0.67   0.67          0.810   0.79                        0.79   0.67    11.0    2.0

Loop-Carried Dependencies Analysis Report
-----------------------------------------
   5 |  2.0 | vaddsd xmm1, xmm1, xmm0             | [5]
"""


def test_osaca_is_asked_as_a_program_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that prints what OSACA printed stands for it where it is not installed."""
    script = tmp_path / "osaca"
    script.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\ncat <<'END'{OSACA_SAID}END\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert external_tools.run_osaca(DDOT, "SPR") == external_tools.ToolEstimate("OSACA", 0.81, 2.0)
    assert "--arch SPR --syntax Intel" in (tmp_path / "asked").read_text()


def test_osaca_sees_the_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("osaca"):
        pytest.skip("needs OSACA: pipx install osaca")
    cycles = [found.cycles for body in (DDOT, HORNER) if (found := external_tools.run_osaca(body, "SPR"))]
    assert cycles == [2.0, 6.0]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc") or not shutil.which("make"):
        pytest.skip("needs gcc and make: apt install build-essential")
    folder = tmp_path_factory.mktemp("incore")
    for file in LOOPS.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    subprocess.run(["make", "-s"], cwd=folder, check=True, timeout=PATIENCE_S)
    return folder / "build"


@pytest.mark.parametrize(
    ("level", "loop", "per_iteration", "numbers"),
    [
        ("O1", "triad", {"load": 2, "store": 1}, 1), ("O1", "horner", {"fp_mul": 1, "fp_add": 1, "load": 1}, 1),
        ("O3", "triad", {"load": 2, "store": 1, "fp_fma": 1}, 4), ("O1", "quotient", {"fp_div": 1}, 1),
        ("O3", "reciprocal", {"fp_mul": 1, "load": 1, "store": 1}, 4),
    ],
)  # fmt: skip
def test_operations_of_loops_that_a_compiler_emitted(
    built: Path, level: str, loop: str, per_iteration: dict[str, float], numbers: int
) -> None:
    program = binary.read_binary(built / f"incore-{level}")
    function = next(one for one in program.image.functions if one.name == loop)
    instructions = list(decode_instructions(program.image.read_code(function.begin, function.end), function.begin))
    body = find_innermost_loops(instructions)[0].body
    executed = {one.address: 10.0 for one in body}
    found = compute_schedule(body, executed, MACHINE)
    assert {unit: found.operations[unit] / 10 for unit in per_iteration} == per_iteration
    assert (found.vectorized > 0) == (numbers > 1)
    file, line = program.find_declaration(function.begin)
    assert (file or "").endswith("loops.c")
    assert loop in (LOOPS / "loops.c").read_text().splitlines()[(line or 0) - 2]


def test_a_profile_chooses_the_functions_of_a_program(tmp_path: Path) -> None:
    """gprof says where the time goes, the program which loops are there: how often they ran nobody knows."""
    if not shutil.which("gcc") or not shutil.which("gprof"):
        pytest.skip("needs gcc and gprof: apt install build-essential")
    sources = [str(LOOPS / name) for name in ("incore.c", "loops.c")]
    build = ["gcc", "-O1", "-g", "-pg", "-fno-inline", *sources, "-o", "incore"]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=PATIENCE_S)
    subprocess.run(
        ["./incore", "horner", "24576", "100"], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S
    )
    text = subprocess.run(
        ["gprof", "incore", "gmon.out"], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S
    )
    (tmp_path / "gprof.txt").write_bytes(text.stdout)
    asked = ("incore", "--profile", "gprof.txt", "--machine", "xeon-8480", "--format", "json")
    report = command_line.run("incore", *asked, home=tmp_path)
    assert report.returncode == 0, report.stderr
    loops = json.loads(report.stdout)["parts"][-1]
    place = [column["name"] for column in loops["columns"]].index("function")
    assert {"horner"} <= {row[place] for row in loops["rows"]} <= {"horner", "cycle"}, "and none of the other loops"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--function", "nowhere"), "no function that ran or contains a loop has a matching name"),
        (("--osaca", "SPR"), "OSACA is not installed"),
    ],
)
def test_what_would_leave_a_table_empty_is_refused(built: Path, options: tuple[str, ...], words: str) -> None:
    """Without a hint an empty table looks as if there were no loops."""
    if options[0] == "--osaca" and shutil.which("osaca"):
        pytest.skip("OSACA is installed here")
    said = command_line.run("incore", str(built / "incore-O1"), "--machine", "xeon-8480", *options, home=built)
    assert said.returncode == 2
    assert words in said.stderr.decode()


def test_a_program_without_names_of_functions_is_told(built: Path) -> None:
    stripped = built / "stripped"
    shutil.copy(built / "incore-O1", stripped)
    subprocess.run(["strip", str(stripped)], check=True, timeout=PATIENCE_S)
    said = command_line.run("incore", "stripped", "--machine", "xeon-8480", home=built)
    assert "the executable is stripped" in " ".join(said.stdout.decode().split())
