"""Whether a machine delivers what its model promises, and what a build asks of any network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import command_line as cli
import pytest
from replay_programs import Do, halo, program

from advisor.model.errors import UsageError
from advisor.model.recommendations import Total
from advisor.model.records import Advice, Grade
from advisor.trace.profile import from_trace
from advisor_simulation.replay import acceptance, conversion, engine, network_demand, rebuilding
from advisor_simulation.replay.network import Network
from advisor_simulation.replay.program import Op, Program

TRACE = Path(__file__).parents[2] / "profiles" / "faults" / "clean-large-halo"
PROMISED = Network(5e-6, 1e9)


def recorded_on(network: Network, some: Program) -> Program:
    """The program, recorded while it ran on a network."""
    plan = engine.prepare_program(some, network)
    trace = rebuilding.rebuild_trace(some, engine.operation_ends(plan, engine.replay_steps(plan, network), some))
    return conversion.convert_trace(trace)


@pytest.mark.parametrize(("latency_s", "delivered"), [(5e-6, True), (6e-6, True), (50e-6, False)])
def test_a_machine_is_held_against_its_model(latency_s: float, delivered: bool) -> None:
    run = recorded_on(Network(latency_s, 1e9), halo(8, 20, work_s=1e-4))
    found = acceptance.judge_machine(run, PROMISED, 0.1)
    assert found.is_delivered is delivered
    report = acceptance.build_report(found, "x")
    assert (report.failed is None) is delivered
    if delivered:
        assert found.shortfall == pytest.approx(0.0, abs=0.1)
        return
    assert found.behaves is not None
    assert found.behaves.network.latency_s == pytest.approx(latency_s, rel=0.2)
    assert report.failed is not None
    assert report.failed.startswith("The machine falls short of its model by")


def test_a_recording_without_times_is_no_test() -> None:
    with pytest.raises(UsageError, match="holds none"):
        acceptance.judge_machine(halo(4, 2), PROMISED, 0.1)


def test_the_command_ends_with_the_verdict(tmp_path: Path) -> None:
    good = cli.run("replay", str(TRACE), "--latency", "1 us", "--bandwidth", "10 GB/s", "--accept", home=tmp_path)
    assert good.returncode == 0, good.stderr
    assert b"delivers what its model promises" in good.stdout
    assert b"weak test of the network" in good.stdout
    slow = ("replay", str(TRACE), "--latency", "0 us", "--bandwidth", "100 GB/s", "--accept", "--tolerance", "0")
    bad = cli.run(*slow, home=tmp_path)
    assert bad.returncode == 1
    assert b"falls short of its model" in bad.stderr
    wrong = cli.run("replay", str(TRACE), "--accept", home=tmp_path)
    assert wrong.returncode == 2
    assert b"needs the network that is promised" in wrong.stderr
    assert cli.run("replay", str(TRACE), "--tolerance", "0.2", home=tmp_path).returncode == 2


def test_what_nothing_hides_is_counted() -> None:
    """Rank 0 sends twice while rank 1 computes: the second message hides behind the computation, the first does not."""
    ranks = [
        [Do(Op.SEND, 1000.0, 0), Do(Op.SEND, 500.0, 1)],
        [Do(Op.RECV, 0.0, 0), Do(Op.BURST, 1.0), Do(Op.RECV, 0.0, 1)],
    ]
    found = network_demand.compute_network_demand(program(ranks, [(0, 1), (0, 1)]), Network(1e-5, 1e9))
    assert found.alpha_s == pytest.approx(1.0)
    assert found.messages == 2
    assert found.bytes == 1500
    assert found.gamma_B == 1000
    assert found.chain_bytes >= found.gamma_B
    assert found.chain_latencies >= found.beta


def test_chains_do_not_depend_on_computation() -> None:
    found = [network_demand.compute_network_demand(halo(8, 10, seed=seed, work_s=work)) for seed, work in
             ((1, 1e-3), (2, 1e-3), (3, 5e-2))]  # fmt: skip
    assert len({(one.chain_latencies, one.chain_bytes, one.messages, one.bytes) for one in found}) == 1
    assert found[0].chain_latencies == 10 * (8 + 2 * 3)


def test_what_grows_with_the_ranks_is_told_from_the_history() -> None:
    runs = {ranks: advice_on(halo(ranks, 10, seed=ranks)) for ranks in (4, 8, 16, 32)}
    *earlier, now = runs.values()
    assert not network_demand.build_rank_finding(now.profile, now.findings[0], earlier[:1])
    (found,) = network_demand.build_rank_finding(now.profile, now.findings[0], earlier)
    assert found.text.startswith("Over 4, 8, 16, 32 ranks the latencies that nothing hides are ")
    assert found.measures["locality factor"] == pytest.approx(1.0, abs=0.05) or found.measures["locality factor"] > 1
    assert found.measures["ranks"] == 32
    other = [replace(one, profile=replace(one.profile, parameters={"N": 7.0})) for one in earlier]
    assert not network_demand.build_rank_finding(now.profile, now.findings[0], other)


def advice_on(some: Program) -> Advice:
    """The advice on a run of a program, its network demand alone."""
    trace = rebuilding.rebuild_trace(
        some,
        engine.operation_ends(
            plan := engine.prepare_program(some, PROMISED), engine.replay_steps(plan, PROMISED), some
        ),
    )
    profile = replace(from_trace(trace), program="halo")
    found = network_demand.build_finding(
        profile, network_demand.compute_network_demand(conversion.convert_trace(trace))
    )
    return Advice(profile, Grade("A", 1.0, ()), (), (), (), (found,), (), Total(0.0), (), (), "nothing significant")
