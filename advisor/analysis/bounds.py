"""Machine x Profile -> lower bounds on the run time, each adding one constraint (Hung and Davidson, section 3.2.1).

Formulas and symbols are those of docs/concepts.md: N processors, c computation, w work (``wall - wait - sync``), SEQ
and PAR the serial and parallel phases. A bound that cannot be computed says why, and which command would help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.device_ladder import compute_device_bounds
from advisor.analysis.disturbance import has_free_cores
from advisor.analysis.loads import ProfileLoads, summarize_loads
from advisor.analysis.machine_bounds import COUNTS, compute_machine_bound
from advisor.analysis.measures import Quantity, join_reasons, missing_quantity, recording_command, worst_status
from advisor.model.records import BOUND_NAMES, Bound, FloatArray, Profile

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine

#: Bounds that are averages over the processors: their seconds are laid out by ``loads.summarize``.
AVERAGES: Final = ("I", "IP", "IPC", "IPCO")
#: Bounds that exist only where synchronizations divide the run.
NEED_PHASES: Final = ("IP", "IPCOLM", "IPCOLMD", "IPCOLMDS", "IPCOLMDSW")
#: Bounds whose seconds cannot be told apart when processors share cores.
NEED_OWN_CORES: Final = ("IPC", "IPCOLMDS")

WITHOUT_PHASES: Final = "without phases a serial part counts as imbalance"
ONE_ITERATION: Final = "every phase has one iteration, so changes between iterations are not visible"


def compute_bounds(
    profile: Profile, machine: Machine | None = None, loads: ProfileLoads | None = None
) -> tuple[Bound, ...]:
    """Return all bounds of ``model.LEVELS``, or of ``DEVICE_LEVELS``, in their order, in seconds.

    ``loads`` spares the pass over the arrays if it was made already (``loads.summarize``).
    """
    if profile.devices is not None:
        return compute_device_bounds(profile, profile.devices)
    loads = loads or summarize_loads(profile)
    values = compute_bound_seconds(loads)
    return tuple(
        compute_machine_bound(name, profile, machine) if name in COUNTS else _make_bound(name, profile, loads, values)
        for name in BOUND_NAMES
    )


def compute_bound_seconds(loads: ProfileLoads) -> dict[str, float]:
    """Return the bounds I to IPCOLMDS, as far as the quantities are known, whether or not phases are.

    I = sum_q c / N. With x for computation (IP), computation with transfer (IPC) and w (IPCO): sum over the instances
    of SEQ of max_q x, plus sum of x over PAR / N. IPCOL = SEQ + max_q of w in PAR; IPCOLM = SEQ + sum over phases of
    max_q w; IPCOLMD = SEQ + sum over phases and iterations of max_q w; IPCOLMDS + sync of the deciding processors.
    """
    found = {name: float(spread.iterations.sum()) for name, spread in loads.spreads.items() if name in AVERAGES}
    if not loads.quantities.work.is_known:
        return found
    serial = sum(float(phase.peak.sum()) for phase in loads.phases if phase.kind == "serial")
    parallel = [phase for phase in loads.phases if phase.kind != "serial"]
    total = loads.parallel_work
    found["IPCO"] = serial + float(total.mean())
    found["IPCOL"] = serial + float(total.max())
    found["IPCOLM"] = serial + sum(float(phase.work[phase.slowest]) for phase in parallel)
    found["IPCOLMD"] = found["IPCOLM"] + sum(phase.dynamic_s for phase in parallel)
    if "sync" in loads.spreads:
        found["IPCOLMDS"] = found["IPCOLMD"] + float(loads.spreads["sync"].iterations.sum())
    return found


def are_durations_known(profile: Profile) -> bool:
    """Return whether the time between the synchronizations is known for every phase."""
    return profile.has_phases and all(phase.duration_s is not None for phase in profile.phases)


def instance_durations(profile: Profile) -> FloatArray:
    """Return how long each instance lasted, phase by phase, seconds; where ``are_durations_known``."""
    return np.concatenate([phase.duration_s for phase in profile.phases if phase.duration_s is not None])


def _make_bound(name: str, profile: Profile, loads: ProfileLoads, values: dict[str, float]) -> Bound:
    if name == "actual" and profile.has_run_time:
        return Bound(name, profile.actual_s, "measured")
    needs = _required_quantities(name, profile, loads)
    lacking = [need for need in needs if not need.is_known]
    if lacking:
        reason, collect = join_reasons(need.reason for need in lacking), join_reasons(need.collect for need in lacking)
        return Bound(name, None, "unavailable", reason, collect)
    if name == "IPCOLMDSW":
        return Bound(name, float(instance_durations(profile).sum()), "measured")
    return _add_reasons(Bound(name, values[name], worst_status(need.status for need in needs)), profile, needs)


def _required_quantities(name: str, profile: Profile, loads: ProfileLoads) -> list[Quantity]:
    """Return everything that a bound needs; what is missing says so."""
    kinds = loads.quantities
    made_of = {"I": [kinds.computation], "IP": [kinds.computation], "IPC": [kinds.communication]}
    if name == "actual":
        return [missing_quantity(profile, "actual_s")]
    needs = list(made_of.get(name, [kinds.work]))
    if name == "IPCOLMDS":
        needs.append(kinds.sync)
    if name == "IPCOLMDSW":
        needs = [] if are_durations_known(profile) else [missing_quantity(profile, "duration_s")]
    if name in NEED_PHASES and not profile.has_phases and loads.processors > 1:
        return [missing_quantity(profile, "phases")]
    return needs


def _add_reasons(bound: Bound, profile: Profile, needs: list[Quantity]) -> Bound:
    """Return ``bound`` with the reasons that keep it from being measured."""
    reasons = [need.reason for need in needs]
    commands = [need.collect for need in needs]
    status = bound.status
    if bound.name == "IPCOL" and not profile.has_phases and len(profile.processors) > 1:
        status = worst_status(("estimated", status))
        reasons.append(WITHOUT_PHASES)
        commands.append(recording_command(profile, "phases"))
    if bound.name in NEED_OWN_CORES and (shared := explain_shared_cores(profile)):
        status = worst_status(("estimated", status))
        reasons.append(shared)
    if bound.name == "IPCOLMD" and all(phase.iterations == 1 for phase in profile.phases):
        reasons.append(ONE_ITERATION)
    return Bound(bound.name, bound.seconds, status, join_reasons(reasons), join_reasons(commands))


def explain_shared_cores(profile: Profile) -> str | None:
    """Return why transfer, waiting and system time cannot be distinguished, if processors share cores.

    Processors that sleep for most of the time, as those of runtimes that keep many, take no core.
    """
    if profile.cores is None or len(profile.processors) <= profile.cores or has_free_cores(profile):
        return None
    cores = "1 core" if profile.cores == 1 else f"{profile.cores} cores"
    return (
        f"{len(profile.processors)} processors share {cores}, so transfer, waiting and system time cannot be separated"
    )
