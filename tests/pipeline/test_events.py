"""Plugins that want the events of a run get them, decoded once, if it was read from one trace."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from daemon_runs import profile
from site_folder import beside_readers, plugin

from advisor import pipeline
from advisor.analysis.efficiencies import add_modelled_efficiencies
from advisor.daemon import child_tasks
from advisor.extension.host import FoundProfile, PluginHost, load_plugins
from advisor.extension.run_events import RunEvents
from advisor.formats.otf2.trace_builder import TraceBuilder
from advisor.model.errors import InputError
from advisor.model.records import Advice, Efficiency, Finding, Grade
from advisor.pipeline import Options
from advisor.support import record_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.trace.events import Trace

PROFILES = Path(__file__).parents[1] / "profiles"
TRACE = PROFILES / "otf2" / "scorep-multiphase"
COUNTING = """
    @hookimpl
    def advisor_findings(profile, trace):
        events = -1 if trace is None else len(trace.kind)
        return [Finding("", "events", profile.program, f"{events} events", {"events": events})]

    @hookimpl
    def advisor_expected_gain(recommendation, trace):
        return None if trace is None else (float(len(trace.kind)) * 1e-9, 0.0, 1.0)
"""


def events(advice: Advice) -> float:
    return next(one.measures["events"] for one in advice.findings if one.kind == "events")


def notes(advice: Advice) -> list[str]:
    return [note.text for note in advice.grade.notes if note.name == "events"]


@pytest.fixture
def loaded(tmp_path: Path) -> PluginHost:
    plugin(tmp_path, "counting", COUNTING)
    return beside_readers(tmp_path)


@pytest.fixture
def reads(loaded: PluginHost, monkeypatch: pytest.MonkeyPatch) -> list[FoundProfile]:
    """What events were read of."""
    read: list[FoundProfile] = []
    original: Callable[[FoundProfile], Trace] = loaded.read_trace

    def trace(found: FoundProfile) -> Trace:
        read.append(found)
        return original(found)

    monkeypatch.setattr(loaded, "read_trace", trace)
    return read


def test_events_are_read_once_for_all_who_want_them(loaded: PluginHost, reads: list[FoundProfile]) -> None:
    advice = pipeline.advise([TRACE], Options(), loaded)
    assert events(advice) > 0
    assert [one.reader for one in reads] == ["otf2"]
    assert notes(advice) == []
    assert advice.recommendations
    assert {one.basis for one in advice.recommendations} == {"simulation"}
    assert advice.recommendations[0].expected_s == events(advice) * 1e-9


def test_nobody_who_asks_nothing_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = beside_readers(tmp_path)
    monkeypatch.setattr(loaded, "read_trace", lambda found: pytest.fail("events were read"))
    asked = RunEvents(loaded, FoundProfile(TRACE, "otf2"))
    grade = Grade("A", 1.0, ())
    assert asked.add_note(grade) is grade


def test_a_trace_is_decoded_once(loaded: PluginHost, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[TraceBuilder] = []
    original = TraceBuilder.build_trace

    def build(builder: TraceBuilder, *, compiled: bool) -> Trace:
        decoded.append(builder)
        return original(builder, compiled=compiled)

    monkeypatch.setattr(TraceBuilder, "build_trace", build)
    advice = pipeline.advise([TRACE], Options(), loaded)
    assert events(advice) > 0
    assert len(decoded) == 1


def test_events_are_handed_over_once_and_to_nobody_else(loaded: PluginHost) -> None:
    first, second = (loaded.find_profiles(TRACE)[0] for _ in range(2))
    loaded.read_profile(first)
    assert loaded.read_trace(second) is not loaded.read_trace(first)
    loaded.read_profile(first)
    kept = loaded.read_trace(first)
    again = loaded.read_trace(first)
    assert kept is not again
    assert np.array_equal(kept.time_s, again.time_s)


def test_what_is_no_trace_has_no_events(loaded: PluginHost, reads: list[FoundProfile]) -> None:
    advice = pipeline.advise([PROFILES / "fig4.json"], Options(), loaded)
    assert (events(advice), reads, notes(advice)) == (-1, [], [])


def test_of_a_run_that_several_tools_recorded_there_are_none(loaded: PluginHost) -> None:
    profile = pipeline.read_runs([TRACE], Options(), loaded)[0][0]
    assert events(pipeline.study_run(profile, Options(), loaded).advice) == -1


def test_a_trace_that_can_not_be_read_again_is_a_note(loaded: PluginHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(found: FoundProfile) -> Trace:
        raise InputError(found.path, "is gone")

    monkeypatch.setattr(loaded, "read_trace", gone)
    advice = pipeline.advise([TRACE], Options(), loaded)
    assert events(advice) == -1
    assert notes(advice) == [f"plugins did without the events: {TRACE / 'scorep'}: is gone"]
    assert advice.problems == ()


def test_the_daemons_child_has_events_too(loaded: PluginHost) -> None:
    (found,) = loaded.find_profiles(TRACE)
    packed = child_tasks.advise_on_units(loaded, [found], TRACE, {})
    assert events(record_json.unpack_record(Advice, packed)) > 0


def test_the_daemons_child_looks_into_the_program_as_advise_does(tmp_path: Path) -> None:
    program = tmp_path / "heat"
    shutil.copy(sys.executable, program)
    os.utime(program, (1e9, 1e9))
    path = profile(tmp_path / "run.json", executable=str(program))
    host = load_plugins()
    packed = child_tasks.advise_on_units(host, host.find_profiles(path), tmp_path, {})
    stored, shown = record_json.unpack_record(Advice, packed), pipeline.advise([path], Options(), host)
    assert stored.profile.notes == shown.profile.notes
    assert stored.profile.executable == shown.profile.executable == str(program.resolve())
    assert stored.findings == shown.findings


# What a reader promises


READER = """
    @hookimpl
    def advisor_sniff(path):
        return 1.0 if path.suffix == ".odd" else None
    @hookimpl
    def advisor_read(path):
        return None
"""


def test_events_that_are_none_are_the_readers_mistake(tmp_path: Path) -> None:
    plugin(tmp_path, "odd", f"{READER}\n    @hookimpl\n    def advisor_trace(path):\n        return 3\n")
    loaded = load_plugins([tmp_path], entry_points=False)
    with pytest.raises(InputError, match=r"expected a Trace, found int \(read by 'odd'\)"):
        loaded.read_trace(FoundProfile(tmp_path / "x.odd", "odd"))


def test_only_a_reader_has_events(tmp_path: Path) -> None:
    plugin(tmp_path, "odd", "@hookimpl\ndef advisor_trace(path): return None")
    (found,) = load_plugins([tmp_path], entry_points=False).plugins
    assert found.problem == "only a reader implements advisor_trace"


# Efficiencies that need a replay


KNOWN = (
    Efficiency("parallel", 0.7, "measured"),
    Efficiency("serialization", None, "unavailable", "needs a replay"),
    Efficiency("transfer", None, "unavailable", "needs a replay"),
)


def told(subject: str, **measures: float) -> Finding:
    return Finding("simulation", "efficiency", subject, "by a replay", measures)


def test_findings_fill_the_efficiencies_that_need_a_replay() -> None:
    found = add_modelled_efficiencies(
        KNOWN, [told("transfer", value=0.9), told("transfer", value=0.8), told("parallel", value=0.1)]
    )
    assert found == (*KNOWN[:2], Efficiency("transfer", 0.9, "modelled", "by a replay"))


@pytest.mark.parametrize(
    "finding",
    [
        told("transfer", value=1.2),
        told("transfer", value=-0.1),
        told("transfer", share=0.5),
        told("latency", value=0.5),
        replace(told("transfer", value=0.5), kind="note"),
    ],
)
def test_other_findings_fill_nothing(finding: Finding) -> None:
    assert add_modelled_efficiencies(KNOWN, [finding]) == KNOWN


def test_modelled_efficiencies_stand_in_the_document(tmp_path: Path) -> None:
    from advisor.output.advice_document import build_advice_document

    body = """
        @hookimpl
        def advisor_findings(profile):
            names = ("transfer", "serialization")
            return [Finding("", "efficiency", name, "as replayed", {"value": 0.5}) for name in names]
    """
    plugin(tmp_path, "replay", body)
    loaded = beside_readers(tmp_path)
    advice = pipeline.advise([PROFILES / "fig4.json"], Options(), loaded)
    shown: dict[str, Any] = build_advice_document(advice)["efficiencies"]
    assert shown["transfer"] == {"value": 0.5, "status": "modelled"}
    assert shown["serialization"] == {"value": 0.5, "status": "modelled"}
