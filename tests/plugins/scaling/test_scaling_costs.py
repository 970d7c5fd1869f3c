"""Models of counted operations: on machines without any run, fitted to runs, and from sources and calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from scaling_reports import asked, report, table, table_rows
from scaling_runs import Serving, runs

from advisor.analysis import machines
from advisor.model.errors import UsageError
from advisor.model.reports import Text
from advisor_scaling import command
from advisor_scaling.linear import application, counted_operations, expressions

MODEL = """\
name: elimination
parameters: [N, P]
counts: {operations: 2*N**3/(3*P), loops: N, messages: N*log2(P), bytes: 4*N**2*log2(P)}
costs: {loops: 1e-5, misses: 1e-6}
"""


def test_a_model_on_two_machines_without_any_run(tmp_path: Path) -> None:
    (path := tmp_path / "gauss.yaml").write_text(MODEL)
    given = {"paths": "", "model": path, "machine": ["ncube-3200", "a64fx"], "predict": ["P=256 N=512"]}
    found = report([], **given, sensitivity=True, price="2000+0.01*BW")
    first = table(found, "T = X beta of ncube-3200")
    assert first["messages"][1:3] == ("N*log2(P)", 500e-6)
    assert first["operations"][3] == pytest.approx(2 * 512**3 / 3 / 256 / 300e3)
    said = " ".join(part.text for part in found.parts if isinstance(part, Text))
    assert "Each microsecond more of latency costs (microseconds): N*log2(P)." in said
    assert "gives most speed for its price" in said
    assert table_rows(found, "Two machines")[0][-1] < 0.01
    assert not any(getattr(part, "title", "").startswith("What larger sizes save") for part in found.parts)
    with pytest.raises(UsageError, match="must also say N"):
        report([], **{**given, "predict": ["P=256"]})


def test_a_cache_of_twice_the_size_wins_the_misses_of_what_then_fits(tmp_path: Path) -> None:
    size = application.machine_sizes(machines.load_machine("a64fx")).cache
    assert size is not None
    (path := tmp_path / "model.yaml").write_text(
        MODEL + f"arrays:\n  - {{name: rows, bytes: {size * 1.5:.0f}*N/512, passes: 100}}\n"
    )
    found = report([], paths="", model=path, machine=["a64fx"], predict=["P=4 N=512,2048"], sensitivity=True)
    fits, too_large = (row[2:] for row in table_rows(found, "What larger sizes save"))
    assert fits[0] > 0.01
    assert too_large[0] == 0.0


def test_costs_fitted_to_runs(tmp_path: Path) -> None:
    (path := tmp_path / "model.yaml").write_text(
        "name: solver\nparameters: [N, P]\ncounts: {operations: N**3/P, messages: log2(P)}\n"
    )
    found = report(runs(), model=path, predict=["P=16 N=512"])
    rows = table(found, "T = X beta of solver")
    assert rows["operations"][2] == pytest.approx(2.2e-9, rel=0.1)
    assert rows["messages"][2] == pytest.approx(1e-3, rel=0.2)
    assert any("are within 20 %" in part.text for part in found.parts if isinstance(part, Text))


def test_counts_of_the_runs_become_expressions() -> None:
    rows = table(report(runs(), linear=True), "T = X beta of solver")
    assert rows["messages"][1] == "log2(P)"


def test_the_locality_factor_of_runs() -> None:
    found = report(runs())
    rows = table_rows(found, "Locality: total CPU time against that of the fewest processors")
    assert [row[0] for row in rows] == [1, 2, 4, 8, 16]
    assert rows[0][2] == 1.0
    assert rows[1][2] == pytest.approx(1.1, abs=0.03)  # one of two ranks computes a fifth more than its part


def test_times_over_latency_and_bandwidth(tmp_path: Path) -> None:
    points = [(p, lat, bw) for p in (4, 16, 64) for lat in (1e-6, 1e-5, 1e-4) for bw in (1e2, 1e3)]
    data = [0.5 + 40 / p + (100 + 3 * p) * lat + 20 / bw for p, lat, bw in points]
    text = [
        "PARAMETER P",
        "PARAMETER L",
        "PARAMETER BW",
        "POINTS " + " ".join(f"( {p} {a} {b} )" for p, a, b in points),
    ]
    text += ["METRIC time", *(f"DATA {value!r} {value * 1.00001!r}" for value in data), ""]
    (path := tmp_path / "sweep.txt").write_text("\n".join(text))
    found = command.run_scale(asked(paths=[path]), Serving([]))
    title = "T = alpha0 + alpha1/P + (beta0 + beta1 P) L + (gamma0 + gamma1 P)/BW"
    rows = {row[0]: row for row in table_rows(found, title)}
    assert rows["alpha1"][1] == pytest.approx(40.0, rel=1e-3)
    assert rows["beta0"][1] == pytest.approx(100.0, rel=0.05)
    assert rows["gamma1"][3] == "N.S."


def counting(sources: list[Path], command: list[str]) -> dict[str, object]:
    """A service that counts a product of matrices, whose rows go to all as a tree, without running it."""
    n, p = int(command[-1]), int(command[2])
    bcast = {
        "name": "MPI_Bcast",
        "arguments": ["b", "n - k", "MPI_DOUBLE", "0", "comm"],
        "means": [None, (n + 1) / 2] + [None] * 3,
    }
    print_ = {"name": "printf", "arguments": ["text"], "means": [None]}
    block = {"file": "matmul.c", "line": 7, "executions": [n] * p, "calls": [bcast, print_]}
    loop = {
        "function": "main",
        "name": "for k",
        "iterations": [n**3 // p] * p,
        "totals": {"fp_fma": n**3, "fp_add": n**2},
    }
    return {"parameters": {"n": n}, "ranks": p, "loops": [loop], "blocks": [block]}


def test_counted_operations_become_expressions() -> None:
    given = {"paths": "", "count": [Path("matmul.c")], "machine": ["ncube-3200"], "predict": ["N=256 P=4"]}
    command_line = ["mpirun", "-n", "{P}", "./matmul", "{N}"]
    options = asked(**given, at="N=16,32,64,128 P=1,2,4", command=command_line)
    found = command.run_scale(options, Serving([], {"operation_counts": counting}))
    operations = table(found, "T = X beta of ncube-3200")["operations"]
    assert operations[3] == pytest.approx((2 * 256**3 + 256**2) / 4 / 300e3, rel=0.01)
    assert table(found, "Loops that were counted")["main: for k"][1] == "N^3/P"
    messages = table(found, "T = X beta of ncube-3200")
    assert messages["messages"][1] == "N*log2(P)"
    moved = expressions.parse_formula(str(messages["bytes"][1]), ["N", "P"])
    at = {expressions.make_symbol("N"): 256, expressions.make_symbol("P"): 4}
    assert float(moved.subs(at)) == pytest.approx(4 * 256 * 257 * 2, rel=0.02)
    for at, reason in (("N=16,32,64", "no values of P"), ("N=16 M=2 P=1", "{M} stands nowhere")):
        with pytest.raises(UsageError, match=reason):
            command.run_scale(asked(**given, at=at, command=command_line), Serving([], {"operation_counts": counting}))
    with pytest.raises(UsageError, match="say what to run after --"):
        command.run_scale(asked(**given, at="N=16", command=[]), Serving([], {"operation_counts": counting}))


def call(name: str, *arguments: str, mean: float | None = None) -> dict[str, object]:
    place = 2 if name in ("MPI_Reduce", "MPI_Allreduce") else 1
    means = [mean if number == place else None for number in range(len(arguments))]
    return {"name": name, "arguments": list(arguments), "means": means}


@pytest.mark.parametrize(
    ("made", "ranks", "expected"),
    [
        (call("MPI_Send", "b", "n", "MPI_INT", "to", mean=10.0), 4, (3.0, 120.0, ())),
        (call("MPI_Send", "b", "n", "MPI_INT", "to", mean=10.0), 1, (0.0, 0.0, ())),
        (call("MPI_Allreduce", "a", "b", "1", "MPI_DOUBLE", "MPI_SUM", "c", mean=1.0), 5, (9.0, 72.0, ())),
        (call("MPI_Barrier", "comm"), 8, (9.0, 0.0, ())),
        (call("MPI_Alltoall", "a", "n", "MPI_FLOAT", "b", "n", "MPI_FLOAT", "c", mean=2.0), 3, (6.0, 48.0, ())),
        (call("MPI_Isend", "b", "f()", "MPI_INT", "to"), 2, (3.0, 0.0, ("MPI_Isend at a.c:3",))),
        (call("MPI_Send", "b", "n", "own_type", "to", mean=1.0), 2, (3.0, 0.0, ("MPI_Send at a.c:3",))),
        (call("MPI_Recv", "b", "n", "MPI_INT", "from"), 2, (0.0, 0.0, ())),
    ],
)  # fmt: skip
def test_messages_and_bytes_of_calls(
    made: dict[str, object], ranks: int, expected: tuple[float, float, tuple[str, ...]]
) -> None:
    block = {"file": "a.c", "line": 3, "executions": [3] * ranks, "calls": [made]}
    assert counted_operations.sum_messages({"ranks": ranks, "blocks": [block]}) == expected
