"""What the computation of a run is bound by, where it is most of the run, or which measurement would tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.code_facts import COUNTED_IF_ANY, code_seconds
from advisor.analysis.disturbance import undisturbed_seconds
from advisor.analysis.measures import recording_command
from advisor.analysis.quality import HIDDEN
from advisor.model import policy
from advisor.model.gap_parts import GapPart
from advisor.model.recommendations import Need
from advisor.model.records import COMPUTATION, DEVICES_UNSEEN, Bound, Finding, Gap, Profile
from advisor.model.units import format_share
from advisor.trace.library_functions import COUNTED_KINDS

if TYPE_CHECKING:
    from advisor.model.devices import DeviceUse

NEED: Final = "what bounds the computation"
_LISTED: Final = 3
#: Kinds of code, those that say most about what to do first.
KIND_WORDS: Final = {
    "code.unoptimized_share": "in code compiled without optimization",
    "code.subnormal_share": "with numbers too small to be normal",
    "code.math_share": "in mathematical functions and loops that call them",
    "code.inlinable_share": "in calls of mathematical functions that an instruction or two would do",
    "code.copied_share": "in copying objects",
    "code.rebuilt_share": "in putting text into new memory",
    "code.hashed_share": "in lookups in hash tables",
    "code.ordered_share": "in walking through ordered trees",
    "code.constructed_share": "in constructing regular expressions, streams and generators",
    "code.thrown_share": "in throwing and catching exceptions",
    "code.synced_share": "in std::cin and std::cout in step with stdio",
    "code.buffered_share": "in calls that pass single characters and pieces to and from streams",
    "code.allocation_share": "in allocating and freeing memory",
    "code.copy_share": "in copying and clearing memory",
    "code.lock_share": "in taking and releasing locks",
    "code.text_share": "in turning numbers into text and back",
    "code.random_share": "in drawing random numbers by rand and the like",
    "code.sort_share": "in sorting",
    "code.string_share": "in comparing and scanning text",
    "code.length_share": "in going to the ends of texts",
    "code.packing_share": "in MPI_Pack and MPI_Unpack",
    "code.interpreted_share": "in the interpreter of Python",
    "code.pickled_share": "in packing and unpacking what processes of Python send",
    "code.keyed_share": "in the interpreter of Python, at dictionaries and text",
    "code.listed_share": "in searching lists of Python",
    "code.regrown_share": "in copying text and lists that grow",
    "code.decoded_share": "in reading and writing JSON",
    "code.rowwise_share": "in taking tables of pandas apart by rows",
    "code.garbage_share": "in making objects and collecting those no longer used",
    "code.collected_share": "in the collection of garbage of Python",
    "code.stepwise_share": "in arrays of NumPy that are combined one operation at a time",
    "code.jitted_share": "in compiling functions of Python while it runs",
    "code.import_share": "in loading modules of Python",
    "code.deep_copy_share": "in copying objects with all they hold",
    "code.pattern_share": "in matching regular expressions",
    "code.page_share": "in loops that step over whole pages",
    "code.transpose_share": "in loops that transpose",
    "code.stride_share": "in loops that step over numbers",
    "code.objects_share": "in loops that take a few numbers of each object",
    "code.streamed_share": "in loops that wait for memory",
    "code.shape_share": "in loops over arrays that the compiler does not know to be contiguous",
    "code.order_share": "in sums that keep their order",
    "code.pointer_share": "in following pointers",
    "code.chain_share": "in lookups that wait for the one before",
    "code.recomputed_share": "in functions that call themselves again with equal arguments",
    "code.search_share": "in searching through arrays",
    "code.selection_share": "in looking for the smallest of many elements",
    "code.filter_share": "in tests that few elements pass",
    "code.scatter_share": "in waiting for scattered numbers",
    "code.quotient_share": "in divisions of integers",
    "code.guess_share": "in branches that were guessed wrong",
    "code.recurrence_share": "in loops whose iterations wait for the one before",
    "code.overlap_share": "in loops on one number at a time",
    "code.branch_share": "in scalar loops that branch",
    "code.call_share": "in scalar loops that call functions",
    "code.division_share": "in loops that divide or take roots",
    "code.update_share": "in loops that store to one place, or where other threads store",
    "code.baseline_share": "in floating-point code for the oldest processors",
}
#: Kinds that need no look into compiled code: without others nothing is known of that.
_BY_NAME: Final = frozenset(f"code.{kind}_share" for kind in (*COUNTED_IF_ANY, *COUNTED_KINDS.values()))
#: What the issue slots of a processor are used for, or lost to, by top-down counters.
_SLOT_WORDS: Final = {
    "topdown.memory_s": "wait for data",
    "topdown.core_s": "wait for execution units",
    "topdown.frontend_s": "wait for instructions",
    "topdown.speculation_s": "are lost to mispredicted branches",
    "topdown.retiring_s": "do work",
}
#: What costs something only where several threads do it.
_SHARED: Final = "code.update_share"
_MENTIONED: Final = 0.01
#: A function is named from this share of the computation on.
_LEAST: Final = 0.05
#: What of the time of a function is no computation.
_NO_WORK: Final = ("wait_s", "transfer_s", "sync_s", "io_s", "os_s")
_ROUNDING: Final = 1e-9
#: Notes of readers by which waiting for ranks or devices counts as computation.
_COUNTED_AS_WORK: Final = (HIDDEN, DEVICES_UNSEEN)
#: Bounds that say what computation is bound by: the schedule, below which the rest is the caches'.
_MACHINE_BOUNDS: Final = ("MAC", "MACS")


def need_computation(profile: Profile, bounds: Sequence[Bound], gaps: Sequence[Gap]) -> Need | None:
    """Return what would tell more of the computation where it is more than all that is told apart besides; else None.

    A run that shared its cores spends most of its time off them: what it did in the rest still counts.
    """
    computed = next((bound.seconds for bound in bounds if bound.name == "I"), None)
    others = sum(
        max(gap.seconds, 0.0) for gap in gaps if len(gap.members) == 1 and gap.name not in ("A", "C", "S", "$")
    )
    if not profile.has_run_time or computed is None or computed <= others:
        return None
    if any(bound.seconds is not None for bound in bounds if bound.name in _MACHINE_BOUNDS):
        return None
    shares = _code_shares(profile)
    if shares is not None and shares.get("code.unoptimized_share", 0.0) >= policy.CODE_KIND:
        return None  # what is measured of such code says nothing about the optimized one
    return Need(NEED, recording_command(profile, "functions" if shares is None else "compiled_ops"))


def describe_computation(profile: Profile, bounds: Sequence[Bound]) -> Finding | None:
    """Return a sentence on what the computation is bound by; None where it is less than half of the run."""
    values = {bound.name: bound.seconds for bound in bounds}
    if profile.devices is not None:
        return _describe_devices(profile, profile.devices, values)
    seconds = values.get("I")
    if not profile.has_run_time or seconds is None:
        return None
    own_s = undisturbed_seconds(profile)
    if own_s <= 0 or seconds < policy.COMPUTATION_SHARE * own_s:
        return None
    of_what = "the run" if own_s == profile.actual_s else "what other programs left of the run"
    # Where waiting counts as computation, the share is the most there can be.
    most = "at most " if any(note.name in _COUNTED_AS_WORK for note in profile.notes) else ""
    whole = f"Computation takes {most}{format_share(min(seconds / own_s, 1.0))} of {of_what}"
    shares = _code_shares(profile)
    named = sorted(((share, fact) for fact, share in (shares or {}).items() if share >= policy.CODE_KIND), reverse=True)
    slots = _describe_slots(profile)
    if slots is not None:
        text = f"{whole}: {slots}."
    elif shares is None and (kernel := _describe_kernel(profile)) is not None:
        text = f"{whole}; {kernel}; what it is bound by was not measured."
    elif any(values.get(name) is not None for name in _MACHINE_BOUNDS):
        text = f"{whole}; the gaps below it say what it is bound by."
    elif not named and (shares is None or shares.keys() <= _BY_NAME):
        text = f"{whole}{_describe_functions(profile)}; what it is bound by was not measured."
    elif named:
        listed = "; ".join(f"{format_share(share)} of it {KIND_WORDS[fact]}" for share, fact in named[:_LISTED])
        text = f"{whole}: {listed}."
    else:
        text = (
            f"{whole}; its loops are optimized and nothing in their code stands out, so that it is bound by the "
            "order of operations or by memory."
        )
    measures = {"share": seconds / profile.actual_s} | {fact: share for share, fact in named}
    parts = tuple(_build_part(profile, fact, share * seconds) for share, fact in named)
    return Finding("code", COMPUTATION, "I", text, measures, explains=parts)


def _describe_devices(profile: Profile, use: DeviceUse, values: Mapping[str, float | None]) -> Finding | None:
    """Return which kernels, or operators of hosts, take most of a run; None where it is known how fast they can be."""
    seconds = values.get("K")
    if seconds is None or values.get("R") is not None or seconds < policy.COMPUTATION_SHARE * profile.actual_s:
        return None
    causes = sorted((one for one in use.causes if one.gap == "compute"), key=lambda one: -one.seconds)
    named = [f"{one.name} {format_share(one.seconds / seconds)}" for one in causes if one.seconds >= _LEAST * seconds]
    listed = f", of it {', '.join(named[:_LISTED])}" if named else ""
    what, peak = ("Operators of hosts", "the cores") if use.facts.get("on_host") else ("Kernels", "the devices")
    share = seconds / profile.actual_s
    whole = f"{what} take {format_share(share)} of the run{listed}"
    text = f"{whole}; how far they are from the peak of {peak} is not known."
    return Finding("code", COMPUTATION, "K", text, {"share": share})


def _describe_functions(profile: Profile) -> str:
    """Return which functions compute longest, where there are several; nothing where none stands out."""
    table = profile.sum_by_region("cpu_s").sum(axis=1)
    if not table.any():
        table = profile.sum_by_region("wall_s").sum(axis=1)
        table = table - sum(profile.sum_by_region(name).sum(axis=1) for name in _NO_WORK)
    named: dict[str, float] = {}
    for region, seconds in zip(profile.regions, np.maximum(table, 0.0).tolist(), strict=True):
        named[region.name] = named.get(region.name, 0.0) + seconds
    total = max(sum(named.values()), 1e-30)
    largest = sorted(named.items(), key=lambda pair: -pair[1])[:_LISTED]
    listed = [f"{name} {format_share(seconds / total)}" for name, seconds in largest if seconds >= _LEAST * total]
    several = sum(seconds > 0 for seconds in named.values()) > 1
    return f", of it {', '.join(listed)}" if several and listed else ""


def _describe_slots(profile: Profile) -> str | None:
    """Return what the processor's slots were lost to, by top-down counters; None where they were not counted."""
    everything = profile.counts.get("topdown.all_s")
    if everything is None or everything.sum() <= 0:
        return None
    total = float(everything.sum())
    found = [(float(profile.counts[name].sum()) / total, words) for name, words in _SLOT_WORDS.items()
             if name in profile.counts]  # fmt: skip
    listed = [f"{format_share(share)} {words}" for share, words in sorted(found, reverse=True) if share >= _MENTIONED]
    largest = int(everything.sum(axis=1).argmax())
    place = f"{profile.regions[largest].name} takes most ({format_share(float(everything[largest].sum()) / total)})"
    return f"of its issue slots {', '.join(listed)}; {place}{_describe_rates(profile, largest)}"


def _describe_rates(profile: Profile, region: int) -> str:
    """Return bytes and operations a second of a region, by the formula that its program states; nothing without."""
    wall = float(profile.sum_by_region("wall_s")[region].sum())
    rates = []
    for name, unit in (("kernel_bytes", "GB/s"), ("source_ops.flops", "Gflop/s")):
        amount = float(profile.counts[name][region].sum()) if name in profile.counts else 0.0
        if amount > 0 and wall > 0:
            rates.append(f"{amount / wall * 1e-9:.3g} {unit}")
    return f": {' and '.join(rates)} by its own formula" if rates else ""


def _describe_kernel(profile: Profile) -> str | None:
    """Return which kernel takes most and how fast it is, where the program states bytes and operations of kernels."""
    if "kernel_bytes" not in profile.counts and "source_ops.flops" not in profile.counts:
        return None
    seconds = profile.sum_by_region("wall_s").sum(axis=1)
    stated = sum((profile.counts[name].sum(axis=1) for name in ("kernel_bytes", "source_ops.flops")
                  if name in profile.counts), np.zeros(len(profile.regions)))  # fmt: skip
    largest = int(np.where(stated > 0, seconds, -1.0).argmax())
    share = format_share(float(seconds[largest] / max(seconds.sum(), 1e-30)))
    return f"{profile.regions[largest].name} takes most ({share}){_describe_rates(profile, largest)}"


def _build_part(profile: Profile, fact: str, seconds: float) -> GapPart:
    """Return the computation in code of a kind, in the regions that hold most of it; of one loop, kinds overlap."""
    table = code_seconds(profile, fact)
    largest = [] if table is None else [int(row) for row in table.argsort()[::-1][:_LISTED] if table[row] > 0]
    regions = tuple(dict.fromkeys(profile.regions[row].name for row in largest))
    cause = KIND_WORDS[fact].removeprefix("in ")
    return GapPart("I", cause, seconds, "what the profile tells of the code", "estimated", None, regions, general=True)


def _code_shares(profile: Profile) -> dict[str, float] | None:
    """Return the shares of the computation in code of each kind; None where its functions are not told apart.

    One loop can be of several kinds: where those of a region add up to more than all of it, a kind counts for what it
    has more than those before it, as though it held them all.
    """
    everything, known = (profile.counts.get(f"code.{name}_s") for name in ("all", "known"))
    if everything is None or known is None or everything.sum() <= 0:
        return None
    words = KIND_WORDS if len(profile.processors) > 1 else KIND_WORDS.keys() - {_SHARED}
    found = {fact: code_seconds(profile, fact) for fact in KIND_WORDS if fact in words}
    if all(table is None for fact, table in found.items() if fact != "code.unoptimized_share"):
        unoptimized = found["code.unoptimized_share"]
        if unoptimized is None or not unoptimized.any():
            return None
    total = float(everything.sum())
    shares, explained, computed = {}, np.zeros(len(everything)), everything.sum(axis=1)
    for fact, table in found.items():
        if table is not None:
            fits = explained + table <= computed * (1 + _ROUNDING)
            left = np.where(fits, table, np.maximum(table - explained, 0.0))
            shares[fact] = float(left.sum()) / total
            explained = explained + left
    return shares
