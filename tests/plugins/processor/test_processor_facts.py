from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from operation_counts import counted, table

from advisor.analysis import bounds, gaps, machines, merging
from advisor.analysis.machines.records import Cache, FunctionalUnit, Machine, Memory, Number, NumberSource
from advisor.model.errors import InputError
from advisor_processor import finite_cache
from advisor_processor.compiled import remarks
from advisor_processor.facts import build_facts
from advisor_processor.findings import build_findings
from advisor_processor.operations_document import read_operations

if TYPE_CHECKING:
    from pathlib import Path

S = "sheet"
MACHINE = Machine(
    name="toy",
    title="Toy",
    description="1 GHz, 32 KiB, 1 MiB and 8 MiB of cache",
    sources={S: NumberSource("its data sheet")},
    frequency=Number(1e9, S),
    flops_per_cycle=Number(16, S),
    units={
        "fp_add": FunctionalUnit(Number(2, S), Number(256, S), pipes="fp"),
        "fp_fma": FunctionalUnit(Number(2, S), Number(256, S), pipes="fp"),
        "load": FunctionalUnit(Number(2, S), Number(256, S)),
    },
    caches={
        "L1": Cache(size=Number(32768, S), line=Number(64, S)),
        "L2": Cache(size=Number(1 << 20, S), bandwidth=Number(64, S), latency=Number(14, S)),
        "L3": Cache(size=Number(8 << 20, S), bandwidth=Number(16, S), latency=Number(50, S)),
    },
    memory=Memory(per_core=Number(8e9, S), latency=Number(1e-7, S)),
)
MISSES = {"misses.L1": 1000.0, "misses.LL": 100.0, "writes.LL": 25.0}


@pytest.mark.parametrize(
    ("simulated", "far_s", "latency_s"),
    [
        (1 << 20, 100 * 64 / 16e9, 900 * 14e-9 + 100 * 50e-9),  # the second cache was simulated: the third delivers
        (8 << 20, 125 * 64 / 8e9, 900 * 14e-9 + 100 * 1e-7),
        (None, 125 * 64 / 8e9, 900 * 14e-9 + 100 * 1e-7),
    ],
)
def test_caches_by_roofline_ecm_and_latency(simulated: float | None, far_s: float, latency_s: float) -> None:
    found = finite_cache.compose_cache_times(500, 400, MISSES, MACHINE, simulated)
    assert found is not None
    near_s = 1000 * 64 / 64e9
    assert found.schedule_s == pytest.approx(500e-9)
    assert found.roofline_s == pytest.approx(max(500e-9, near_s, far_s))
    assert found.ecm_s == pytest.approx(max(500e-9, 400e-9 + near_s + far_s))
    assert found.latency_s == pytest.approx(500e-9 + latency_s)
    assert found.schedule_s <= found.roofline_s <= found.ecm_s


def test_without_misses_or_caches_nothing_is_composed() -> None:
    assert finite_cache.compose_cache_times(1, 1, {}, MACHINE) is None
    assert finite_cache.compose_cache_times(1, 1, MISSES, replace(MACHINE, caches={})) is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("a.c:3:5: optimized: loop vectorized using 32 byte vectors", "vectorized"),
        ("a.c:3:5: missed: couldn't vectorize loop", "other"),
        ("a.c:3:5: missed: not vectorized: possible dependence between data-refs *_3 and *_7", "overlap"),
        ("a.c:3:5: missed: statement clobbers memory: _1 = f (x);", "call"),
        ("a.c:3:5: missed: not vectorized: control flow in loop.", "control"),
        ("a.c:3:5: remark: vectorized loop (vectorization width: 4, interleaved count: 4) [-Rpass=loop-vectorize]",
         "vectorized"),
        ("a.c:3:5: remark: loop not vectorized: cannot prove it is safe to reorder floating-point operations "
         "[-Rpass-analysis=loop-vectorize]", "order"),
        ("a.c:3:5: remark: loop not vectorized: unsafe dependent memory operations in loop. Use #pragma", "overlap"),
        ("a.c:3:5: note: the column is nothing", None),
        ("make: nothing to do", None),
    ],
)  # fmt: skip
def test_reports_of_compilers_are_understood(line: str, kind: str | None, tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text(f"{line}\n")
    assert [one.kind for one in remarks.read_remarks([file])] == ([kind] if kind else [])


def test_a_report_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        remarks.read_remarks([tmp_path / "report.txt"])


def test_facts_are_quotients_of_counts_and_unknown_without_them() -> None:
    counts = {
        "chained_cycles": table(30, 0),
        "scheduled_cycles": table(40, 60),
        "compiled_ops.load": table(10, 10),
        "strided_loads": table(5, 0),
        "source_ops.load": table(4, 4),
    }
    profile = replace(counted(), counts=counts)
    found = {fact.name: fact.compute(profile, 0) for fact in build_facts() if fact.compute}
    assert found["processor.chain_share"] == pytest.approx(0.3)
    assert found["processor.strided_share"] == pytest.approx(0.25)
    assert found["processor.access_ratio"] == pytest.approx(2.5)
    assert found["processor.division_share"] is None
    assert build_facts()[0].compute is not None
    assert build_facts()[0].compute(profile, None) == pytest.approx(0.3)


DOCUMENT = """\
schema: gapwatch/operations/1
program: program
counted_by: {by}
ranks: 2
regions:
  - name: region 0
    counts: {counts}
"""


def test_counts_beside_a_profile_give_all_levels_and_the_accounts_close(tmp_path: Path) -> None:
    """Two documents, of the source and of the binary, and a recording with times: one run."""
    profile = replace(counted(), counts={}, program="program")
    documents = {
        "count": "{source_ops.fp_add: [10.0e+9], source_ops.load: [20.0e+9]}",
        "incore": "{compiled_ops.fp_add: [5.0e+9], compiled_ops.load: [40.0e+9], scheduled_cycles: [30.0e+9]}",
    }
    recordings = [profile]
    for by, counts in documents.items():
        file = tmp_path / f"{by}.operations.yaml"
        file.write_text(DOCUMENT.format(by=by, counts=counts))
        recordings.append(read_operations(file))
    (run,) = merging.group_by_run(recordings)
    merged = merging.merge_recordings(run)
    levels = bounds.compute_bounds(merged, MACHINE)
    known = [level.seconds for level in levels[:5]]
    assert known == [0.625, 2.5, 20.0, 30.0, 60.0]
    found = gaps.attribute_gaps(merged, levels, None, MACHINE)
    assert [gap.name for gap in found[:4]] == ["A", "C", "S", "$"]
    assert sum(gap.seconds for gap in found) + (known[0] or 0.0) == pytest.approx(profile.actual_s)
    for gap in found:
        assert sum(share.seconds for share in gap.regions) == pytest.approx(gap.seconds, abs=1e-9)


def test_misses_of_any_tool_tell_how_much_of_the_cache_gap_they_explain() -> None:
    counts = {"scheduled_cycles": table(15e9, 35e9), "misses.L1": table(1e9, 0), "misses.L3": table(0.25e9, 0)}
    profile = replace(counted(), counts=counts)
    levels = bounds.compute_bounds(profile, MACHINE)
    found = gaps.attribute_gaps(profile, levels, None, MACHINE)
    (finding,) = build_findings(profile, found, MACHINE)
    assert finding.measures["gap_s"] == pytest.approx(10.0)
    assert finding.measures["roofline_s"] == 0.0  # 2 s of transfers hide behind 50 s of schedule
    assert finding.measures["latency_s"] == pytest.approx(0.75e9 * 14e-9 + 0.25e9 * 1e-7)
    assert build_findings(profile, found, None) == ()
    assert build_findings(replace(profile, counts={"scheduled_cycles": table(1, 1)}), found, MACHINE) == ()


def test_a_bundled_machine_gives_bounds_in_order_for_sensible_counts() -> None:
    names = [name for name in machines.list_model_names() if name not in ("host", "x86-64")]
    profile = replace(counted(), counts={
        "source_ops.fp_add": table(1e9, 1e9), "source_ops.fp_fma": table(1e9, 1e9), "source_ops.load": table(2e9, 2e9),
        "compiled_ops.fp_add": table(1e9, 1e9), "compiled_ops.fp_fma": table(1e9, 1e9),
        "compiled_ops.load": table(2e9, 2e9),
    })  # fmt: skip
    for name in names:
        levels = bounds.compute_bounds(profile, machines.load_machine(name))
        known = np.array([level.seconds for level in levels[:3] if level.seconds is not None])
        assert (np.diff(known) >= -1e-12).all(), name
