"""The whole flow: read -> Profile -> bounds -> gaps -> findings -> rules -> ranking -> Advice."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from advisor.advice import facts, ranking, rules
from advisor.advice.computation import describe_computation, need_computation
from advisor.advice.earlier_runs import EarlierRuns, is_of_same_study
from advisor.advice.ranking import Ranking, similar_program_gain
from advisor.advice.ranking.gain_estimation import GainSources
from advisor.advice.verdict import decide_verdict, describe_unanswered, list_hot_spots
from advisor.analysis import bounds, gaps, loads, merging, quality
from advisor.analysis.efficiencies import add_modelled_efficiencies, compute_efficiencies
from advisor.analysis.run_pictures import attach_pictures
from advisor.collect import campaigns, harnesses, listed_runs, sidecar
from advisor.collect.binaries.executables import attach_executable
from advisor.extension.run_events import RunEvents
from advisor.model.errors import DocumentError, InputError
from advisor.model.recommendations import Total
from advisor.model.records import DEVICES_UNSEEN, Advice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from advisor.advice.counterfactuals import Candidate, Counterfactual
    from advisor.advice.earlier_runs import RunHistory
    from advisor.advice.facts import Fact
    from advisor.advice.ranking.judgement import Judge
    from advisor.advice.rules import RuleBook, RuleMatches
    from advisor.analysis.loads import ProfileLoads
    from advisor.analysis.machines import Machine
    from advisor.extension.host import FoundProfile, PluginHost
    from advisor.model.recommendations import Need, Recommendation
    from advisor.model.records import Bound, Finding, Gap, Grade, Profile


#: What is recommended where a run is not worth trusting.
NOTHING: Final = Ranking((), Total(0.0), ())


def _ignore_stage(words: str) -> None:
    """Say nothing of what takes long."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may choose: machine model, own rule files, the order of recommendations, the cores of the run.

    ``target`` is the size that the program is meant for, such as ``P=1024 N=8192``: the run's parameter ``target``.
    ``binary`` is the file of the program, where no recording names it.
    With ``paths_are_builds``, runs that state no build are of the one that their path names.
    ``stage`` is told in words what takes long besides reading, and ``reading`` is entered meanwhile. ``run`` chooses
    one of several runs at the paths (``listed_runs.choose_run``), else the newest is advised on.
    """

    machine: str | None = None
    rules: tuple[Path, ...] = ()
    order: Literal["seconds", "steps"] = "seconds"
    cores: int | None = None
    target: str | None = None
    binary: Path | None = None
    run: str | None = None
    paths_are_builds: bool = False
    stage: Callable[[str], None] = field(default=_ignore_stage, compare=False)
    reading: Callable[[], AbstractContextManager[object]] = field(default=nullcontext, compare=False)


def advise(paths: Sequence[Path], options: Options, host: PluginHost, past: RunHistory | None = None) -> Advice:
    """Return the advice on the newest of the runs at ``paths``; the older ones, and those of ``past``, are its history.

    Raises ``InputError`` for what cannot be read and ``DocumentError`` for mistakes in rules or machine models.
    """
    return study_newest(paths, options, host, past).advice


def study_newest(paths: Sequence[Path], options: Options, host: PluginHost, past: RunHistory | None = None) -> Study:
    """Return the advice on one of the runs at ``paths`` with all that it is made of; raises as ``advise``.

    It is the newest, or the one that ``options.run`` names; runs of the same program before it are its history, and
    those after it that are of the same study.
    """
    runs, problems = _group_runs(paths, options, host)
    listed = listed_runs.list_runs(runs)
    chosen = listed_runs.choose_run(listed, options.run, paths[0])
    run, files = runs[chosen]
    history: list[Advice] = []
    for number, (other, recorded) in enumerate(runs):
        before = number < chosen and other.program == run.program
        if before or (number > chosen and is_of_same_study(other, run)):
            history.append(study_run(other, options, host, history, recorded, past).advice)
    found = study_run(run, options, host, history, files, past)
    advice = replace(found.advice, problems=(*problems, *found.advice.problems))
    return replace(found, advice=advice, runs=tuple(listed), chosen=chosen)


def iterate_studies(
    paths: Sequence[Path], options: Options, host: PluginHost, past: RunHistory | None = None
) -> Iterator[Study]:
    """Yield the advice on each of the runs at ``paths``, the oldest first; those before it are its history.

    What could not be read is a problem of the newest. Raises as ``advise``.
    """
    runs, problems = _group_runs(paths, options, host)
    history: list[Advice] = []
    for number, (run, files) in enumerate(runs, 1):
        found = study_run(run, options, host, history, files, past)
        history.append(found.advice)
        more = problems if number == len(runs) else ()
        yield replace(found, advice=replace(found.advice, problems=(*more, *found.advice.problems)))


def read_chosen_run(
    paths: Sequence[Path], options: Options, host: PluginHost
) -> tuple[Profile, tuple[FoundProfile, ...]]:
    """Return one of the runs at ``paths``, as ``study_newest`` chooses it, and what it was read from."""
    runs, _ = _group_runs(paths, options, host)
    return runs[listed_runs.choose_run(listed_runs.list_runs(runs), options.run, paths[0])]


def read_runs(paths: Sequence[Path], options: Options, host: PluginHost) -> tuple[list[Profile], tuple[str, ...]]:
    """Return the runs at ``paths``, the oldest first, and what could not be read of directories that hold runs.

    What several tools recorded of one run is one profile; it is called like the path if no tool named the program.
    Raises ``InputError`` for a path that holds no run.
    """
    runs, problems = _group_runs(paths, options, host)
    return [run for run, _ in runs], problems


def _group_runs(
    paths: Sequence[Path], options: Options, host: PluginHost
) -> tuple[list[tuple[Profile, tuple[FoundProfile, ...]]], tuple[str, ...]]:
    """Return the runs, each with what it was read from, and the problems."""
    recordings: list[Profile] = []
    places: dict[int, FoundProfile] = {}
    problems: list[str] = []
    seen: dict[bytes, FoundProfile] = {}
    with options.reading():
        tried = [(path, *_read_recordings(path, options, host)) for path in paths]
    for path, read, failed in tried:
        problems += failed
        for as_read, found in read:
            unnamed = options.paths_are_builds and as_read.build is None
            profile = replace(as_read, build=str(path)) if unnamed else as_read
            alone = len(paths) == len(read) == 1
            first = found if alone else seen.setdefault(merging.describe_content(profile, found.path.name), found)
            if first is found:
                recordings.append(profile)
                places[id(profile)] = found
            else:
                problems.append(f"{found.path}: the same recording as {first.path}, and left out")
    folders = [path if path.is_dir() else path.parent for path in paths]
    runs = []
    for run in merging.group_by_run(recordings, _find_folders(paths, places)):
        merged = name_run(merging.merge_recordings(run), paths[0])
        sources = tuple(places[id(one)] for one in run)
        described = attach_executable(merged, options.binary, folders, [one.path for one in sources])
        runs.append((described, sources))
    return sorted(runs, key=lambda one: listed_runs.run_order(one[0], one[1])), tuple(problems)


def _find_folders(paths: Sequence[Path], places: Mapping[int, FoundProfile]) -> dict[int, Path]:
    """Return the folder of each recording below a path that is searched; paths that the user lists are of one run."""
    if len(paths) > 1:
        return {}
    return {number: found.path if found.path.is_dir() else found.path.parent for number, found in places.items()}


def name_run(run: Profile, path: Path) -> Profile:
    """Return the run, called like ``path`` where no tool named the program."""
    return run if run.program else replace(run, program=path.resolve().name)


@dataclass(frozen=True, slots=True)
class Study:
    """The advice on one run, and what it is made of; ``matches`` is None where the run has no times.

    ``won`` are the shares of its ceiling that each applied action has won in this program, ``earlier`` is its past.
    ``runs`` are all that were found with it, the oldest first, and ``chosen`` is its place among them.
    """

    advice: Advice
    machine: Machine | None
    loads: ProfileLoads
    matches: RuleMatches | None
    ranking: Ranking
    won: Mapping[str, Sequence[float]]
    files: tuple[Path, ...]
    earlier: EarlierRuns
    runs: tuple[listed_runs.ListedRun, ...] = ()
    chosen: int = 0


def study_run(
    profile: Profile,
    options: Options,
    host: PluginHost,
    history: Sequence[Advice] = (),
    recorded: Sequence[FoundProfile] = (),
    past: RunHistory | None = None,
) -> Study:
    """Return the advice on one run, after those of ``history``, oldest first, and of ``past``, and all it is made of.

    ``recorded`` is what the run was read from.
    """
    machine, problems = _load_machine_model(profile, options, host)
    traces = [found for found in recorded if host.is_trace(found)]
    events = RunEvents(host, traces[0] if len(traces) == 1 else None)
    known = _RunContext(machine, events, EarlierRuns(profile, history, past))
    files = tuple(found.path for found in recorded)
    summary = loads.summarize_loads(profile)
    levels = bounds.compute_bounds(profile, machine, summary)
    if not profile.has_run_time:
        advice, matches, ranked = _without_times(profile, levels, options, host, known)
        return Study(attach_pictures(advice), machine, summary, matches, ranked, {}, files, known.earlier)
    found = gaps.attribute_gaps(profile, levels, summary, machine)
    grade = quality.grade_profile(profile, levels, found, summary)
    options.stage(f"asking plugins about {profile.program}")
    findings = _collect_findings(profile, levels, found, host, known)
    computation = describe_computation(profile, levels)
    findings = (*findings, *([computation] if computation else []), *list_hot_spots(profile, grade, levels))
    accounts = gaps.build_accounts(found, levels, findings)
    extra = facts.add_finding_values(host.collect_facts(known.events), findings)
    sheet = facts.collect_facts(profile, levels, found, machine, summary, extra)
    book, refused = _load_rules(options, host, extra)
    matches = rules.match_rules(book, sheet)
    won = known.earlier.won_shares()
    sources = GainSources(
        won, similar_program_gain.collect_won_shares(findings), {action.id: action.change for action in book.actions},
        profile.devices, _make_simulator(profile, host, known, options.stage),
    )  # fmt: skip
    ranked = NOTHING if grade.letter == "F" else ranking.rank_matches(
        matches, profile, found, order=options.order, grade=grade, noise_s=known.earlier.noise_s(),
        gain=sources.estimate_gain, outlook=ranking.find_outlook(findings),
        judge=_make_judge(profile, host, known, options.stage), accounts=accounts,
    )  # fmt: skip
    advice = Advice(
        profile=profile,
        grade=known.events.add_note(grade),
        bounds=levels,
        gaps=found,
        efficiencies=add_modelled_efficiencies(compute_efficiencies(profile, summary), findings),
        findings=(*findings, *describe_unanswered(profile, found, ranked.recommendations)),
        recommendations=ranked.recommendations,
        total=ranked.total,
        steps_to_revisit=ranked.steps_to_revisit,
        needs=_select_needs(profile, grade, (need_computation(profile, levels, found), *matches.needs)),
        verdict=decide_verdict(profile, grade, found, matches, ranked),
        problems=(*problems, *sheet.problems, *refused, *known.earlier.problems, *host.problems),
        dismissed=ranked.dismissed,
        accounts=accounts,
    )
    return Study(attach_pictures(advice), machine, summary, matches, ranked, won, files, known.earlier)


@dataclass(frozen=True, slots=True)
class _RunContext:
    """What is known besides the profile: the machine it ran on, its events, and the runs before it."""

    machine: Machine | None
    events: RunEvents
    earlier: EarlierRuns


def _without_times(
    profile: Profile, levels: tuple[Bound, ...], options: Options, host: PluginHost, known: _RunContext
) -> tuple[Advice, RuleMatches | None, Ranking]:
    """Return what can be said of a run without a run time: CPU times tell what its computation is made of."""
    grade = quality.grade_profile(profile, levels, ())
    findings = (*_collect_findings(profile, levels, (), host, known), *list_hot_spots(profile, grade, levels))
    matches, ranked, problems = _rank_by_cpu_time(profile, grade, options, host, known)
    advice = Advice(
        profile, known.events.add_note(grade), levels, (), add_modelled_efficiencies(compute_efficiencies(profile),
        findings), findings, ranked.recommendations, ranked.total, (), (),
        "advice" if ranked.recommendations else "insufficient evidence",
        (*problems, *known.earlier.problems, *host.problems),
    )  # fmt: skip
    return advice, matches, ranked


def _rank_by_cpu_time(
    profile: Profile, grade: Grade, options: Options, host: PluginHost, known: _RunContext
) -> tuple[RuleMatches | None, Ranking, tuple[str, ...]]:
    """Return rules, changes of the computation with what they win at most, and problems, where CPU times are known."""
    from advisor.advice.cpu_time_advice import rank_by_cpu_time
    from advisor.analysis.cpu_time import has_cpu_time_alone

    if grade.letter == "F" or not has_cpu_time_alone(profile):
        return None, NOTHING, ()
    extra = host.collect_facts(known.events)
    book, refused = _load_rules(options, host, extra)
    matches, ranked, problems = rank_by_cpu_time(profile, grade, known.machine, book, extra, options.order)
    return matches, ranked, (*problems, *refused)


def _collect_findings(
    profile: Profile, levels: tuple[Bound, ...], found: tuple[Gap, ...], host: PluginHost, known: _RunContext
) -> tuple[Finding, ...]:
    earlier = known.earlier
    return host.collect_findings(
        profile, levels, found, known.machine, earlier.earlier_summaries, known.events, earlier.applied_actions
    )


def _read_recordings(
    path: Path, options: Options, host: PluginHost
) -> tuple[list[tuple[Profile, FoundProfile]], list[str]]:
    """Return what was recorded at ``path``, and the messages on what is damaged there if there is anything else."""
    recordings, errors = [], []
    for found in host.find_profiles(path):
        try:
            recordings.append((read_recording(found, path, options, host), found))
        except InputError as error:
            errors.append(error)
    if not recordings:
        raise errors[0]
    return recordings, [str(error) for error in errors]


def read_recording(found: FoundProfile, top: Path, options: Options, host: PluginHost) -> Profile:
    """Return what was found below ``top``, with what its sidecar and the user say about it."""
    profile = sidecar.apply_sidecar(host.read_profile(found), found.path, top=top)
    profile = harnesses.apply_harness(profile, found.path, top)
    parameters = {**campaigns.stated_parameters(found.path), **profile.parameters}
    if options.target is not None:
        parameters["target"] = options.target
    return replace(profile, cores=options.cores or profile.cores, parameters=parameters)


def _load_machine_model(profile: Profile, options: Options, host: PluginHost) -> tuple[Machine | None, tuple[str, ...]]:
    """Return the machine model that the user or the profile names, and what to say where the profile's is none."""
    if not options.machine and profile.machine is None:
        return None, ()
    from advisor.analysis import machines

    places = host.machine_files()
    if options.machine:
        return machines.load_machine(options.machine, places), ()
    if profile.machine in machines.list_model_names(places):
        return machines.load_machine(profile.machine, places), ()
    return None, (
        f"there is no machine model {profile.machine!r}, which the profile names; see gapwatch machines list",
    )


def _load_rules(options: Options, host: PluginHost, extra: Sequence[Fact]) -> tuple[RuleBook, tuple[str, ...]]:
    """Return the bundled rules with those of plugins and the user, and the mistakes of plugins, left out.

    Raises ``DocumentError`` for mistakes in the user's own files.
    """
    of_plugins = tuple(host.rule_files())
    with suppress(DocumentError):
        return rules.load_default((*of_plugins, *options.rules), extra, examples=False), ()
    sound, refused = [], []
    for file in of_plugins:
        try:
            rules.load_default((file,), extra, examples=False)
            sound.append(file)
        except DocumentError as error:
            refused.append(f"rules of a plugin are left out: {error}")
    return rules.load_default((*sound, *options.rules), extra, examples=False), tuple(refused)


def _make_simulator(
    profile: Profile, host: PluginHost, known: _RunContext, stage: Callable[[str], None]
) -> Callable[[Recommendation], tuple[float, float, float] | None]:
    """Return what asks the plugins how many seconds a recommended change would win."""

    def simulate_change(recommendation: Recommendation) -> tuple[float, float, float] | None:
        stage(f"simulating what {recommendation.action} would win")
        return host.expected_gain(profile, recommendation, known.machine, known.events)

    return simulate_change


def _make_judge(profile: Profile, host: PluginHost, known: _RunContext, stage: Callable[[str], None]) -> Judge:
    """Return what says how much shorter the run would have been with each of the changes that could be made."""
    if profile.devices is not None:
        return lambda _: None  # changes to a run with devices were replayed when it was read

    def simulate_changes(candidates: Sequence[Candidate]) -> Sequence[Counterfactual | None] | None:
        stage("simulating changes")
        return host.collect_counterfactuals(profile, candidates, known.machine, known.events)

    return simulate_changes


def _select_needs(profile: Profile, grade: Grade, wanted: Sequence[Need | None]) -> tuple[Need, ...]:
    """Return what should be measured: nothing more of an untrustworthy profile, devices only where one was seen."""
    if grade.letter == "F":
        return ()
    seen = profile.devices is not None or any(note.name == DEVICES_UNSEEN for note in grade.notes)
    return tuple(need for need in wanted if need and (seen or not need.fact.startswith("device.")))
