"""What an action may do to other gaps, and where in the source it belongs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.advice.facts.code_facts import code_seconds
from advisor.model import policy
from advisor.model.recommendations import Effect, HowTo
from advisor.support.managed_runtimes import WITHOUT_OPENMP
from advisor.trace.regions import BLOCKED_NAME, NO_CORE_NAME, OFF_CORE_NAME, is_openmp

if TYPE_CHECKING:
    from advisor.advice.ranking.ceilings import GapBudget
    from advisor.advice.rules import RuleBook
    from advisor.advice.rules.records import Action
    from advisor.model.records import Gap, Profile, Share

#: Names that are no place in the program, though seconds are spent there.
NOWHERE: Final = ("in no region", "others", NO_CORE_NAME, BLOCKED_NAME, OFF_CORE_NAME)
#: What profiles call the languages of the how-to.
_LANGUAGES: Final = {"c": "c", "c++": "cxx", "cxx": "cxx", "cpp": "cxx", "fortran": "fortran"}
#: Calls that create threads of POSIX, of C11, and processes.
_CREATING: Final = frozenset({"pthread_create", "thrd_create", "fork"})
#: Programs are written for these, and only run on the others that they use.
_FRAMEWORKS: Final = frozenset(("pytorch", "jax"))


@dataclass(frozen=True, slots=True)
class SourceSpot:
    """The region with most of the seconds at a place; ``dominant`` if it holds half of them or more."""

    region: str | None = None
    file: str | None = None
    line: int | None = None
    dominant: bool = False


#: What calls and constants of CUDA begin with.
_CUDA: Final = re.compile(r"\bcuda(?=[A-Z])")


def find_effects(
    rules: RuleBook, action: Action, own: Collection[str], budget: GapBudget
) -> tuple[tuple[Effect, ...], tuple[Effect, ...]]:
    """Return the gaps that an action may shrink besides its ``own`` and those it may grow, with their present seconds.

    Issues are turned into gaps by ``RuleBook.gaps_of_issue``. A gap that the action moves without a word on the
    direction may grow.
    """
    helped = {gap for issue in action.helps for gap in rules.gaps_of_issue(issue)} - set(own) - set(action.targets)
    hurt = {gap for issue in action.hurts for gap in rules.gaps_of_issue(issue)}
    moved = set(map(str, action.affects)) - {"M"}
    hurt = (hurt | (moved - helped)) - set(own) - set(action.targets)
    gain = tuple(effect for effect in _list_effects(helped - hurt, budget) if effect.seconds > 0)
    return gain, _list_effects(hurt, budget)


def _list_effects(letters: Iterable[str], budget: GapBudget) -> tuple[Effect, ...]:
    """Return the known gaps that hold these letters, in the order of the hierarchy."""
    names = {budget.find_gap_with(letter) for letter in letters}
    return tuple(Effect(name, gap.seconds) for name, gap in budget.gaps.items() if name in names)


def find_spot(gaps: Sequence[Gap], phases: Collection[str], without: Collection[str] = ()) -> SourceSpot:
    """Return where the seconds of these gaps lie in the named phases (all, if there are none).

    Regions ``without`` any use for the action are no place for it, unless there is no other. A call of a library
    without a place in the source has the place of the code that calls it, as far as known.
    """
    shares = [share for gap in gaps for share in gap.regions if _is_in_phases(share, phases)]
    seconds: dict[tuple[str, str | None, int | None], float] = {}
    for share in shares:
        key = (share.name, share.file, share.line)
        seconds[key] = seconds.get(key, 0.0) + share.seconds
    if not seconds:
        return SourceSpot()
    seconds = {key: value for key, value in seconds.items() if key[0] not in without} or seconds
    name, file, line = max(seconds, key=lambda key: (seconds[key], key[0]))
    dominant = seconds[name, file, line] >= policy.DOMINANT_REGION * sum(seconds.values())
    if file is None:
        causes = [share for gap in gaps for share in gap.causes if _is_in_phases(share, phases) and share.file]
        largest = max((share for share in causes if share.name.startswith(name)), key=lambda s: s.seconds, default=None)
        file, line = (largest.file, largest.line) if largest else (None, None)
    return SourceSpot(name, file, line, dominant)


def spot_code(profile: Profile, fact: str, phases: Collection[int]) -> SourceSpot:
    """Return where most of the computation is that a fact about the program's code speaks of, in some phases.

    A function of a library has the place of the function of the program that has most seconds in loops with calls.
    """
    seconds = code_seconds(profile, fact)
    if seconds is None or not phases:
        return SourceSpot()
    rows = np.unique(np.concatenate([profile.phases[p].regions for p in phases]))
    row = int(rows[np.argmax(seconds[rows])])
    if seconds[row] <= 0:
        return SourceSpot()
    region, callers = profile.regions[row], code_seconds(profile, "code.call_share")
    if region.file is None and callers is not None and callers[rows].any():
        caller = profile.regions[int(rows[np.argmax(callers[rows])])]
        region = replace(region, file=caller.file, line=caller.line)
    dominant = bool(seconds[row] >= policy.DOMINANT_REGION * seconds[rows].sum())
    return SourceSpot(region.name, region.file, region.line, dominant)


def _is_in_phases(share: Share, phases: Collection[str]) -> bool:
    return (
        share.seconds > 0
        and share.name not in NOWHERE
        and share.phase is not None
        and (not phases or share.phase in phases)
    )


def select_instructions(action: Action, profile: Profile, model: str | None) -> tuple[HowTo, ...]:
    """Return the instructions for the program's model and, as far as there are any, for its language.

    The first ones of a model say what is to be done in any language; of those in another one only the words stay.
    In languages without OpenMP its instructions say nothing, and MPI's where the program does not use it.
    """
    models = {"mpi", "openmp"} if model in ("hybrid", None) else {model}
    if model == "device":
        models = set(profile.paradigms)
    if any(how.model == "threads" for how in action.instructions) and _has_plain_threads(profile):
        models = (models - {"openmp"}) | {"threads"}
    instructions = action.instructions
    if "hip" in models and not any(how.model == "hip" for how in instructions):
        instructions += tuple(_speak_hip(how) for how in instructions if how.model == "cuda")
    fitting = tuple(how for how in instructions if how.model in models | {"any"}) or instructions
    if (profile.language or "").lower() != "python":
        fitting = tuple(how for how in fitting if how.language != "python") or fitting
    fitting = tuple(sorted(fitting, key=lambda how: how.model not in models & _FRAMEWORKS))
    spoken = (profile.language or "").lower()
    if spoken in WITHOUT_OPENMP:
        models = ((models & {"threads"}) | set(profile.paradigms) | {"any"}) - {"openmp"}
        fitting = tuple(sorted(fitting, key=lambda how: how.model == "any"))
        return tuple(_keep_words(how) for how in fitting if how.model in models)
    language = _LANGUAGES.get(spoken)
    if language is None:  # recordings tell that a program is one of Python
        return fitting
    return tuple(
        how for name in dict.fromkeys(how.model for how in fitting) for how in _select_language(fitting, name, language)
    )


def _speak_hip(how: HowTo) -> HowTo:
    """Return instructions for CUDA in HIP, whose kernels are written alike, and whose calls have the same names."""
    before, after = (code and _CUDA.sub("hip", code) for code in (how.before, how.after))
    return replace(how, model="hip", text=_CUDA.sub("hip", how.text), before=before, after=after)


def _has_plain_threads(profile: Profile) -> bool:
    """Return whether a program creates threads or processes itself, and uses no OpenMP."""
    calls = [region.name for region in profile.regions]
    return any(name in _CREATING for name in calls) and not any(map(is_openmp, calls))


def _select_language(fitting: Sequence[HowTo], model: str, language: str) -> Sequence[HowTo]:
    """Return the instructions for one model in one language, all of them if there are none in it."""
    every = [how for how in fitting if how.model == model]
    chosen = [how for how in every if how.language in (language, None)]
    if not chosen or chosen[0] is every[0]:
        return chosen or every
    return [replace(every[0], language=None, before=None, after=None), *chosen]


def _keep_words(how: HowTo) -> HowTo:
    """Return instructions without code in a language that the program is not written in."""
    return replace(how, language=None, before=None, after=None) if how.language in _LANGUAGES.values() else how
