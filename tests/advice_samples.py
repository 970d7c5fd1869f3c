"""Advice records made by hand for the tests of renderers and commands."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from advisor.model.recommendations import Effect, Evidence, HowTo, Need, Recommendation, Total
from advisor.model.records import (
    LEVELS,
    Advice,
    Bound,
    Efficiency,
    Finding,
    Gap,
    Grade,
    Note,
    Phase,
    Processor,
    Profile,
    Region,
    Share,
    Status,
)

REGION = "void solver::Grid<double, 3>::exchange_halo(solver::Field<double> const&, std::vector<int> const&)"


def profile(program: str = "jacobi", regions: tuple[str, ...] = (REGION, "smooth")) -> Profile:
    """A run of 47 s on four ranks with one phase."""
    arrays = {"wall_s": np.ones((len(regions), 4, 3))}
    return Profile(
        program=program,
        run="2026-11-20T10:12:07",
        reader="otf2",
        actual_s=47.0,
        processors=tuple(Processor(rank, host="node17") for rank in range(4)),
        regions=tuple(Region(name, "src/solver.cpp", 120 + at) for at, name in enumerate(regions)),
        phases=(Phase("MPI_Barrier after smooth", "parallel", np.arange(len(regions)), arrays),),
        status={"wall_s": "measured"},
        build="4f2c1e",
        cores=4,
        language="cxx",
        paradigms=("mpi",),
        machine="node17",
    )


def recommendation(rank: int = 1, region: str | None = REGION, gap: str = "L") -> Recommendation:
    """A recommendation with every field filled."""
    return Recommendation(
        rank=rank,
        action="A-29",
        title="Self-scheduling",
        step=4,
        issue="I-15",
        gaps=(gap,),
        phase="MPI_Barrier after smooth",
        region=region,
        file="src/solver.cpp" if region else None,
        line=120 if region else None,
        processors=("rank 3", "rank 1"),
        ceiling_s=4.0 / rank,
        expected_s=None,
        interval_s=None,
        basis=None,
        confidence=0.8,
        effort=2,
        may_help=(Effect("D", 1.0),),
        may_hurt=(Effect("C'", 0.3), Effect("S'", 0.12)),
        conflicts=("A-28",),
        alternatives=("A-30",),
        how=(
            HowTo(
                "mpi",
                "Keep a queue of row blocks on rank 0. Each rank asks for the next block when done.",
                "cxx",
                "for (int row = first; row < last; ++row)\n\tsmooth(row);",
                "while (next_block(&first, &last))\n\tfor (int row = first; row < last; ++row)\n\t\tsmooth(row);",
            ),
        ),
        why="Some processors work longer than others in this phase – the rest wait at its end. Handing out the work in "
        "small portions lets the fast ones take more.",
        evidence=(
            Evidence("L", 0.0851, "share", ">= 3 %", "gap L of the phase / actual"),
            Evidence("phase.imbalance", 1.4231, "", ">= 1.10", "max / mean of the work over the processors"),
            Evidence("phase.closed_by", "MPI_Barrier", "", "== MPI_Barrier", "the call that ends the phase"),
        ),
        fingerprint="a29-5b1c",
        rule_place="rules/4-load-per-phase.yaml:12",
    )


def full() -> Advice:
    """Advice with everything in it: all levels from I on, four recommendations, needs, findings, a problem."""
    statuses: dict[str, Status] = {"I": "estimated", "P": "estimated"}
    bounds = [
        Bound(level.bound, None, "unavailable", "no counts of operations", "gapwatch machines list")
        for level in LEVELS[:4]
    ]
    seconds = {"P": 2.5, "C'": 0.3, "O": 0.0, "L": 8.0, "M'": 4.0, "D": 1.0, "S'": 0.12, "W": 0.7, "X": -0.02}
    value = 30.4
    bounds.append(Bound("I", value, "estimated", "the operating system's share is not known"))
    gaps = []
    for before, level in pairwise(LEVELS[4:]):
        name = str(level.gap)
        status = statuses.get(name, "measured")
        amount = seconds[name]
        value = round(value + amount, 6)
        bounds.append(Bound(level.bound, value, status))
        gaps.append(
            Gap(
                name,
                (name,),
                before.bound,
                level.bound,
                amount,
                amount / 47.0,
                status,
                "the clocks are known to 20 ms" if amount < 0 else None,
                (
                    Share(REGION, amount * 0.75, "MPI_Barrier after smooth", "src/solver.cpp", 120),
                    Share("smooth", amount * 0.25, "MPI_Barrier after smooth", "src/solver.cpp", 121),
                ),
                (Share("rank 3", amount),),
                (Share("iteration 2", amount, "MPI_Barrier after smooth"),),
                (Share("MPI_Recv from rank 3", amount, kind="late sender"),),
            )
        )
    return Advice(
        profile=profile(),
        grade=Grade(
            "B",
            0.84,
            (
                Note("clocks", "the clocks of the ranks agree to 20 ms", 0.1, "mpirun --report-bindings"),
                Note("messages", "3 % of the messages have no partner", 0.06),
                Note("length", "47 s is long enough"),
            ),
        ),
        bounds=tuple(bounds),
        gaps=tuple(gaps),
        efficiencies=(
            Efficiency("load_balance", 0.82, "measured"),
            Efficiency("communication", 0.98, "measured"),
            Efficiency("parallel", 0.804, "estimated"),
            Efficiency("transfer", None, "unavailable", "needs a replay"),
        ),
        findings=(Finding("scaling", "outlier", "smooth", "twice as slow as in the last run", {"ratio": 2.04}),),
        recommendations=(
            recommendation(),
            recommendation(2, "smooth", "M'"),
            recommendation(3, None, "D"),
            recommendation(4, None, "W"),
        ),
        total=Total(11.5, None, None),
        steps_to_revisit=(1, 2),
        needs=(
            Need("cache.l1_miss_ratio", "valgrind --tool=cachegrind ./jacobi"),
            Need("memory.bandwidth_share", "valgrind --tool=cachegrind ./jacobi"),
        ),
        verdict="advice",
        problems=("plugin coupling: ValueError: no history",),
    )


def expected() -> Advice:
    """As ``full``, with one recommendation whose gain was simulated."""
    item = replace(recommendation(), expected_s=3.1, interval_s=(2.5, 3.6), basis="simulation")
    return replace(full(), recommendations=(item,), total=Total(4.0, 3.1, (2.5, 3.6)), problems=())


def without_phases() -> Advice:
    """Only the levels up to IPCOL; what follows is one merged gap."""
    advice = full()
    known = [
        bound
        if at < 9 or bound.name == "actual"
        else Bound(bound.name, None, "unavailable", "the profile has no phases", "gapwatch advise TRACE")
        for at, bound in enumerate(advice.bounds)
    ]
    merged = Gap(
        "M'+D+S'+W+X",
        ("M'", "D", "S'", "W", "X"),
        "IPCOL",
        "actual",
        5.8,
        5.8 / 47,
        "measured",
        "the profile has no phases",
    )
    return replace(advice, bounds=tuple(known), gaps=(*advice.gaps[:4], merged), recommendations=())


def nothing() -> Advice:
    """A run in which nothing is worth doing."""
    return replace(
        full(),
        recommendations=(),
        total=Total(0.0),
        steps_to_revisit=(),
        needs=(),
        findings=(),
        problems=(),
        verdict="nothing significant",
    )


def insufficient() -> Advice:
    """A run that was too short to advise from."""
    notes = (
        Note("length", "the run took 8 ms, less than what its clock can resolve", 0.7, "./jacobi -steps 1000"),
        Note("ranks", "2 of 4 ranks are missing", 0.5, "eztrace -t mpi mpirun -np 4 ./jacobi"),
    )
    return replace(nothing(), grade=Grade("F", 0.0, notes), verdict="insufficient evidence")


def hostile(text: str) -> Advice:
    """Advice in which ``text`` stands wherever a profile, a plugin or a trace can put text."""
    advice = full()
    share = Share(text, 1.0, text, text, 7, text)
    items = tuple(
        replace(
            item,
            phase=text,
            region=text,
            file=text,
            processors=(text,),
            evidence=(Evidence("phase.closed_by", text, "", "== x", "f"),),
        )
        for item in advice.recommendations
    )
    gaps = tuple(
        replace(gap, regions=(share,), processors=(share,), iterations=(share,), causes=(share,)) for gap in advice.gaps
    )
    run = replace(advice.profile, program=text, run=text, build=text, machine=text)
    return replace(
        advice,
        profile=run,
        recommendations=items,
        gaps=gaps,
        problems=(text,),
        findings=(Finding(text, text, text, text, {text: 1.0}),),
        grade=replace(advice.grade, notes=(Note(text, text, 0.1, text),)),
        needs=(Need("a.b", text),),
    )
