"""Programs by seed: a shape, sizes, a machine, noise, and up to three faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from lab.adaptive import Adaptive
from lab.collectives import Pieces, Serial, Transpose
from lab.costs import Network, Storage
from lab.engine import Machine
from lab.exchanges import Exchange, Wavefront
from lab.faults import FAULTS
from lab.groups import Coupled, Ensemble, Pencils
from lab.loads import Load
from lab.masters import Tasks
from lab.matrices import MatrixProduct
from lab.one_sided import OneSided
from lab.output import Output
from lab.patterns import Phase
from lab.refinement import Subcycled
from lab.rings import Ring
from lab.servers import Served
from lab.sorting import SampleSort
from lab.sweeps import Sweeps
from lab.task_graphs import TaskGraph
from lab.teams import Team
from lab.world import Code, Noise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator

#: Work of a rank in the whole run, events that a run should not exceed, and iterations.
WORK_S: Final = (0.3, 2.0)
OPERATIONS: Final = 9000
ITERATIONS: Final = (8, 60)
#: Runs of the fewest iterations may have so many times more operations.
MORE: Final = 2
#: How likely a program has no fault, one, two or three; and their strengths.
FAULT_COUNTS: Final = (0.15, 0.5, 0.25, 0.1)
STRENGTHS: Final = (0.05, 0.1, 0.2, 0.45)


@dataclass(frozen=True, slots=True)
class Shape:
    """The phases of a kind of program, work in shares of an iteration; its threads, and operations of an iteration."""

    phases: tuple[Phase, ...]
    threads: bool = False
    operations: int = 12
    most_ranks: int = 256
    least_ranks: int = 2


def _stencil(dimensions: int, style: str, *, close: str = "MPI_Allreduce", periodic: bool = False) -> Shape:
    sweep = Exchange(
        name="update_cells", work_s=1.0, dimensions=dimensions, style=style, close=close, periodic=periodic
    )
    return Shape((sweep,), operations=6 * dimensions + 4)


def _multigrid(levels: int) -> Shape:
    """Return a V cycle: smoothing on each level, the coarser the less work and data."""
    down = [
        Exchange(
            name=f"smooth_level_{level}", exchange="exchange_ghosts", work_s=0.5 / 4**level, dimensions=2,
            size_B=32768 // 4**level, inner=0.3,
        )
        for level in range(levels)
    ]  # fmt: skip
    up = [replace(each, name=f"prolong_level_{n}", work_s=each.work_s / 2) for n, each in enumerate(down)]
    solve = Pieces(name="solve_coarsest", work_s=0.02, count=1)
    return Shape((*down, solve, *reversed(up)), operations=20 * levels, most_ranks=64)


_CHECKPOINT = Output(name="write_checkpoint", size_B=1 << 18, every=10)
_TIME_STEP = Pieces(name="find_time_step", work_s=0.1, count=1)
_SOLVER = Pieces(name="conjugate_gradient", work_s=0.4, count=2)

SHAPES: Final[Mapping[str, Shape]] = {
    "stencil_1d_blocking": _stencil(1, "blocking"),
    "stencil_1d_sendrecv": _stencil(1, "sendrecv", periodic=True),
    "stencil_1d_nonblocking": _stencil(1, "nonblocking", close=""),
    "stencil_2d_blocking": _stencil(2, "blocking", close=""),
    "stencil_2d_sendrecv": _stencil(2, "sendrecv"),
    "stencil_2d_nonblocking": _stencil(2, "nonblocking"),
    "stencil_2d_free": _stencil(2, "nonblocking", close="", periodic=True),
    "stencil_3d_sendrecv": _stencil(3, "sendrecv", close=""),
    "stencil_3d_nonblocking": _stencil(3, "nonblocking", periodic=True),
    "stencil_barrier": _stencil(2, "nonblocking", close="MPI_Barrier"),
    "hydrodynamics": Shape(
        (
            _TIME_STEP,
            Exchange(name="compute_fluxes", work_s=0.5),
            Exchange(name="update_state", work_s=0.4, close="MPI_Barrier"),
        ),
        operations=26,
    ),
    "two_phases": Shape(
        (
            Exchange(name="compute_forces", work_s=0.6, style="sendrecv", close="MPI_Barrier"),
            Phase(name="integrate", work_s=0.4, close="MPI_Allreduce"),
        ),
        operations=16,
    ),
    "graph_blocking": Shape(
        (Exchange(name="gather_edges", work_s=1.0, dimensions=0, style="blocking", close="MPI_Allreduce"),)
    ),
    "graph_nonblocking": Shape((Exchange(name="scatter_vertices", work_s=1.0, dimensions=0, degree=6),)),
    "graph_unstructured_mesh": Shape(
        (Exchange(name="assemble", work_s=0.5, dimensions=0, degree=5), Pieces(name="solve", work_s=0.5, count=3)),
        operations=24,
    ),
    "wavefront_1d": Shape(
        (Wavefront(name="sweep_lines", work_s=1.0, blocks=16, close="MPI_Allreduce"),), operations=60
    ),
    "wavefront_2d": Shape((Wavefront(name="sweep_planes", work_s=1.0, blocks=16, dimensions=2),), operations=90),
    "transport_sweep": Shape(
        (
            Wavefront(name="sweep_octant", work_s=0.8, blocks=16, dimensions=2),
            Phase(name="update_source", work_s=0.2, close="MPI_Allreduce"),
        ),
        operations=90,
    ),
    "master_on_demand": Shape((Tasks(name="process_task", work_s=1.0),), operations=40, least_ranks=4),
    "master_static": Shape(
        (Tasks(name="process_block", work_s=1.0, mode="static", works=True),), operations=10, least_ranks=4
    ),
    "clustering": Shape(
        (
            Tasks(name="assign_points", work_s=0.9, mode="static", works=True, spread=0.05),
            Pieces(name="update_centers", work_s=0.1, count=1),
        ),
        operations=14,
    ),
    "threads_only": Shape((Team(name="relax_rows", work_s=1.0),), threads=True, operations=12, most_ranks=1),
    "threads_two_loops": Shape(
        (Team(name="compute_rows", work_s=0.7), Team(name="reduce_rows", work_s=0.3)),
        threads=True,
        operations=24,
        most_ranks=1,
    ),
    "hybrid_stencil": Shape(
        (Team(name="update_block", work_s=0.9), Exchange(name="pack_halo", work_s=0.1, close="MPI_Allreduce")),
        threads=True,
        operations=30,
        most_ranks=32,
    ),
    "hybrid_solver": Shape(
        (Team(name="multiply_matrix", work_s=0.8), Pieces(name="dot_products", work_s=0.2, count=2)),
        threads=True,
        operations=24,
        most_ranks=32,
    ),
    "spectral": Shape(
        (Transpose(name="transform_rows", work_s=0.5), Transpose(name="transform_columns", work_s=0.5)), operations=12
    ),
    "spectral_with_output": Shape((Transpose(name="transform", work_s=1.0), _CHECKPOINT), operations=14),
    "multigrid": _multigrid(3),
    "multigrid_deep": _multigrid(4),
    "particles": Shape(
        (Exchange(name="push_particles", work_s=0.8, size_B=20000), Pieces(name="solve_field", work_s=0.2, count=2)),
        operations=24,
    ),
    "particles_with_output": Shape(
        (
            Exchange(name="move_particles", work_s=1.0, size_B=20000, close="MPI_Allreduce"),
            Output(name="write_positions", size_B=1 << 14, every=2),
        ),
        operations=24,
    ),
    "solver": Shape((Exchange(name="multiply_sparse", work_s=0.6), _SOLVER), operations=24),
    "solver_bicgstab": Shape(
        (Exchange(name="multiply_sparse", work_s=0.6, style="sendrecv"), Pieces(name="bicgstab", work_s=0.4, count=4)),
        operations=28,
    ),
    "lagged_residual": Shape(
        (Exchange(name="sweep_grid", work_s=1.0, close="MPI_Allreduce", later=True, inner=0.5),), operations=18
    ),
    "time_step_control": Shape((_TIME_STEP, Exchange(name="advance", work_s=0.9)), operations=18),
    "serial_setup_each_step": Shape(
        (Serial(name="build_tables", serial_s=1e-5), Exchange(name="apply_tables", work_s=1.0, close="MPI_Allreduce")),
        operations=18,
    ),
    "output_each_step": Shape(
        (Exchange(name="march", work_s=1.0, style="sendrecv"), Output(name="write_fields", size_B=1 << 13)),
        operations=18,
    ),
    "checkpoints": Shape((Exchange(name="evolve", work_s=1.0, close="MPI_Barrier"), _CHECKPOINT), operations=18),
    "packages": Shape((Pieces(name="process_package", work_s=1.0, count=6, call="MPI_Allreduce"),), operations=28),
    "embarrassing": Shape((Phase(name="simulate_sample", work_s=1.0, close="MPI_Allreduce"),), operations=5),
    "coupled_codes": Shape((Coupled(name="advance_atmosphere", work_s=1.0),), operations=18, least_ranks=4),
    "coupled_with_output": Shape(
        (Coupled(name="advance_fluid", partner="advance_solid", work_s=1.0, substeps=3), _CHECKPOINT),
        operations=26,
        least_ranks=4,
    ),
    "ensemble": Shape((Ensemble(name="run_member", work_s=1.0, close="MPI_Allreduce"),), operations=26, least_ranks=8),
    "pencil_transform": Shape((Pencils(name="transform_pencils", work_s=1.0),), operations=14, least_ranks=4),
    "one_sided_halo": Shape((OneSided(name="relax_cells", work_s=1.0), _TIME_STEP), operations=20),
    "one_sided_fences": Shape((OneSided(name="relax_points", work_s=1.0, fenced=True),), operations=12),
    "adaptive_mesh": Shape(
        (Adaptive(name="advance_patches", work_s=1.0, load=Load("moving", 0.2, remedy="repeated", period=2)),),
        operations=16,
    ),
    "io_servers": Shape((Served(name="compute_columns", work_s=1.0),), operations=10, least_ranks=8),
    "task_graph": Shape((TaskGraph(name="execute_tasks", work_s=1.0),), operations=50),
    "all_pairs": Shape(
        (Ring(name="compute_pairs", work_s=0.9), Phase(name="move_bodies", work_s=0.1, close="MPI_Allreduce")),
        operations=60,
        most_ranks=16,
    ),
    "sample_sort": Shape((SampleSort(name="sort_keys", work_s=1.0, close="MPI_Allreduce"),), operations=14),
    "refined_levels": Shape((_TIME_STEP, Subcycled(name="advance_level", work_s=0.9)), operations=70, most_ranks=64),
    "sweeps_of_corners": Shape(
        (Sweeps(name="sweep_angles", work_s=0.9, blocks=8, dimensions=2), _TIME_STEP), operations=180, most_ranks=64
    ),
    "matrix_product": Shape((MatrixProduct(name="multiply_panel", work_s=1.0),), operations=22, least_ranks=4),
}


def build(seed: int, shape: str | None = None) -> Code:
    """Return the program of a seed, of its own shape or of the given one."""
    generator = np.random.default_rng([seed, 1])
    names = list(SHAPES)
    drawn = names[int(generator.integers(len(names)))]
    return _with_faults(_clean(seed, shape or drawn, generator), generator)


def halos() -> list[Code]:
    """Return stencils whose only fault is imbalance before the exchange.

    On 4 ranks, where all are neighbours of the busy one, and on 16; three strengths, three styles, with and without a
    reduction at the end of the step.
    """
    codes: list[Code] = []
    for ranks, strength, style, close in product(
        (4, 16), (0.08, 0.2, 0.45), ("blocking", "nonblocking", "sendrecv"), ("", "MPI_Allreduce")
    ):
        load = Load("heavy", strength, len(codes))
        sweep = Exchange(name="update_cells", work_s=0.02, load=load, style=style, close=close, boundary=1.0)
        shape = f"halo_{ranks}_{style}{'_allreduce' if close else ''}_{100 * strength:.0f}"
        noise = Noise(jitter=0.005)
        codes.append(Code(len(codes), shape, ranks, 30, (sweep,), noise=noise, faults=("imbalance",)))
    return codes


def _clean(seed: int, name: str, generator: Generator) -> Code:
    """Return a program of a shape with sizes, machine and noise, and without faults."""
    shape = SHAPES[name]
    ranks = 1
    if shape.most_ranks > 1:
        most = min(shape.most_ranks, MORE * OPERATIONS // (shape.operations * ITERATIONS[0]))
        low, high = np.log2(shape.least_ranks), np.log2(most)
        ranks = round(2 ** generator.uniform(low, high))
    threads = int(generator.choice([2, 4, 8])) if shape.threads else 1
    operations = shape.operations * ranks * threads
    iterations = int(np.clip(OPERATIONS // operations, *ITERATIONS))
    iterations = max(ITERATIONS[0], int(generator.uniform(0.5, 1.0) * iterations))
    work = float(generator.uniform(*WORK_S)) / iterations
    phases = tuple(
        replace(each, work_s=each.work_s * work, load=replace(each.load, seed=seed + number))
        for number, each in enumerate(shape.phases)
    )
    if generator.random() < 0.5:
        phases = tuple(_working_first(each) for each in phases)
    machine = _machine(ranks, threads, generator)
    return Code(seed, name, ranks, iterations, phases, threads, machine=machine, noise=_noise(work, generator))


def _working_first(phase: Phase) -> Phase:
    """Return a phase that works before it exchanges what it computed."""
    return replace(phase, boundary=1.0) if isinstance(phase, Exchange) and not phase.inner else phase


def _machine(ranks: int, threads: int, generator: Generator) -> Machine:
    network = Network(
        latency_s=float(10 ** generator.uniform(-6.0, -5.0)),
        bandwidth=float(10 ** generator.uniform(9.0, 10.2)),
        overhead_s=float(10 ** generator.uniform(-6.3, -5.5)),
        eager_B=int(generator.choice([4096, 8192, 65536])),
        contention=bool(generator.random() < 0.4),
    )
    storage = Storage(
        operation_s=float(10 ** generator.uniform(-5.3, -4.0)),
        sync_s=float(10 ** generator.uniform(-3.3, -2.0)),
        bandwidth=float(10 ** generator.uniform(8.3, 9.3)),
        servers=int(generator.choice([1, 8, 64])),
    )
    divisors = [each for each in range(2, ranks) if ranks % each == 0]
    each = int(generator.choice(divisors)) if divisors and generator.random() < 0.6 else None
    return Machine(network, storage, ranks_per_host=each)


def _noise(work_s: float, generator: Generator) -> Noise:
    """Return noise: nearly none in a third of the programs, jitter in a third, disturbances as well in the others."""
    kind = int(generator.integers(3))
    jitter = (0.0005, float(generator.uniform(0.002, 0.02)), float(generator.uniform(0.002, 0.01)))[kind]
    return Noise(jitter, 0.002 if kind == 2 else 0.0, 0.5 * work_s if kind == 2 else 0.0)


def _with_faults(code: Code, generator: Generator) -> Code:
    """Return the program with its number of faults, each in a phase that can have it, as strong as drawn."""
    wanted = int(generator.choice(len(FAULT_COUNTS), p=FAULT_COUNTS))
    names = list(FAULTS)
    touched: set[str] = set()
    for _ in range(60):
        if len(code.faults) >= wanted:
            break
        name = names[int(generator.integers(len(names)))]
        phase = code.phases[int(generator.integers(len(code.phases)))]
        strength = float(generator.choice(STRENGTHS))
        rare = name in ("slow_core", "oversubscription", "needless_barriers") and generator.random() < 0.5
        if rare or name in code.faults or phase.name in touched:
            continue
        faulty = FAULTS[name](code, phase, strength, generator)
        if faulty is not None:
            touched.add(phase.name)
            code = replace(faulty, faults=(*code.faults, name))
    return code
