"""What advice learns from a replay: efficiencies beside those of another tool, facts by phase, and rules that ask."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from replay_programs import Do, halo, program
from replay_traces import trace_of

from advisor.extension import host as hosts
from advisor.formats.otf2 import advisor_trace as of_otf2
from advisor.pipeline import Options, advise
from advisor.trace.events import Kind
from advisor.trace.profile import from_trace
from advisor_simulation.replay import conversion, costs, diagnosis, engine, rebuilding
from advisor_simulation.replay.facts import build_facts
from advisor_simulation.replay.findings import build_findings
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op, Program

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.events import Trace

PROFILES = Path(__file__).parents[2] / "profiles"
PARAVER = PROFILES / "paraver"
RECORDED = Network(2e-5, 1e8)


def recorded(some: Program, network: Network = RECORDED) -> Trace:
    """Return the trace of a program that ran on a network."""
    plan = engine.prepare_program(some, network)
    return rebuilding.rebuild_trace(some, engine.operation_ends(plan, engine.replay_steps(plan, network), some))


def fact(name: str, trace: Trace, phase: int | None = None, profile: Profile | None = None) -> float | None:
    found = next(each for each in build_facts() if each.name == name)
    assert found.of_trace is not None
    value = found.of_trace(profile or from_trace(trace), trace, phase)
    assert value is None or isinstance(value, float)
    return value


@pytest.mark.parametrize("name", ["clean", "imbalance30", "io256-uf", "late4", "multiphase30"])
def test_efficiencies_are_those_of_basicanalysis(name: str, tmp_path: Path) -> None:
    """Its own come from a replay by Dimemas; there the computation of the run is cut at other moments."""
    folder = PARAVER / f"faultlab-{name}"
    text = (folder / "expected-modelfactors-cut.txt").read_text()
    expected = [float(found) for found in re.findall(r"(?:Serialization|Transfer) efficiency +\| +([\d.]+)%", text)]
    found = costs.compute_costs(conversion.convert_trace(trace_of(folder, tmp_path / "unpacked")))
    assert found is not None
    assert [100 * found.serialization_efficiency, 100 * found.transfer_efficiency] == pytest.approx(expected, abs=0.25)


def test_messages_of_a_request_that_only_its_wait_tells_of() -> None:
    sends = [[Do(Op.ISEND, 8.0, 0), Do(Op.ISEND, 8.0, 1), Do(Op.SENT, link=0), Do(Op.BURST, 1e-3), Do(Op.SENT, link=1)]]
    some = program([*sends, [Do(Op.RECV, link=0), Do(Op.RECV, link=1)]], [(0, 1), (0, 1)])
    trace = recorded(some)
    kept = trace.kind != Kind.ISEND_DONE
    columns = ("time_s", "kind", "region", "comm", "partner", "tag", "size", "request")
    first = np.r_[0, np.cumsum([int(kept[a:b].sum()) for a, b in zip(trace.first[:-1], trace.first[1:], strict=True)])]
    silent = replace(trace, first=first, **{name: getattr(trace, name)[kept] for name in columns})
    again = conversion.convert_trace(silent)
    assert again.link[again.op == Op.SENT].tolist() == [0, 1]


def test_shares_of_the_critical_path_add_up_over_the_phases() -> None:
    trace = recorded(halo(4, 40, size=4000.0))
    profile = from_trace(trace)
    found = diagnosis.diagnose_replay(trace)
    assert found is not None
    assert found.network is not None
    for name, of_share in (("latency", "latency_s"), ("bandwidth", "transfer_s")):
        here = [fact(f"network.{name}_share", trace, phase, profile) or 0.0 for phase in range(len(profile.phases))]
        whole = sum(getattr(share, of_share) for share in found.network.shares)
        assert sum(here) * found.costs.recorded_s == pytest.approx(whole, rel=1e-9)
        assert whole > 0
    assert fact("network.message_B", trace, 0, profile) in (8.0, 2048.0)


def test_the_network_of_the_recording_is_found_again() -> None:
    found = diagnosis.diagnose_replay(recorded(halo(4, 40, size=8000.0), Network(2e-5, 1e8)))
    assert found is not None
    assert found.network is not None
    assert found.network.network.bandwidth == pytest.approx(1e8, rel=0.2)


def test_sending_at_once_is_worth_what_senders_wait_for_receivers() -> None:
    """Rank 0 sends a megabyte before its work, rank 1 receives it behind its own: 5 ms of each stand in line."""
    turn = 20
    left = [Do(op, value, link) for k in range(turn) for op, value, link in ((Op.SEND, 1e5, k), (Op.BURST, 5e-3, -1))]
    right = [Do(op, value, link) for k in range(turn) for op, value, link in ((Op.BURST, 5e-3, -1), (Op.RECV, 0.0, k))]
    trace = recorded(program([left, right], [(0, 1)] * turn), Network(1e-6, 1e9))
    share = fact("network.eager_share", trace)
    assert share is not None
    assert share == pytest.approx(5e-3 / trace.time_s.max(), rel=0.1)


def test_a_network_that_does_not_explain_the_run_is_not_believed() -> None:
    trace = of_otf2(PROFILES / "otf2" / "eztrace-lu")
    assert fact("network.latency_share", trace, 0) is None
    assert fact("network.transfer_efficiency", trace) == pytest.approx(0.349, abs=0.01)
    assert {finding.kind for finding in build_findings(trace, None)} == {"efficiency", "network"}


def test_advice_holds_the_efficiencies() -> None:
    found = advise([PROFILES / "otf2" / "scorep-multiphase"], Options(), hosts.load_plugins())
    values = {each.name: (each.value, each.status) for each in found.efficiencies}
    assert values["transfer"] == (pytest.approx(0.9975, abs=1e-3), "modelled")
    assert values["serialization"] == (pytest.approx(0.771, abs=1e-3), "modelled")
