"""What OSU, IMB and STREAM measured becomes a machine model; what is not of one machine is refused."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis import machines
from advisor.cli import main
from advisor.formats.machine_outputs import read_outputs
from advisor.model.errors import AdvisorError, InputError, UsageError
from advisor_processor.probe.benchmarks import build_machine, choose_measurements

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.analysis.machines.records import Measurement

LATENCY = """# OSU MPI Latency Test v5.6.2
# Size          Latency (us)
0                       2.69
8                       2.70
65536                  31.50
4194304              1680.81
"""
BANDWIDTH = """# OSU MPI Bandwidth Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)        Validation
1                       1.43              Pass
65536                3007.07              Pass
131072               3029.14              Pass
4194304              2932.93              Pass
"""
PINGPONG = """#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
# ( 62 additional processes waiting in MPI_Barrier)
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         2.33         0.00
            8         1000         2.35         3.40
       131072          320        52.37      {rate}
      4194304           10      1692.11      {last}
"""
BARRIER = """#---------------------------------------------------
# Benchmarking Barrier
# #processes = {processes}
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         1.10         1.30         1.20
"""
STREAM = """STREAM version $Revision: 5.10 $
This system uses 8 bytes per array element.
Array size = 10000000 (elements), Offset = 0 (elements)
Number of Threads requested = {threads}
Number of Threads counted = {threads}
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:            2647.8     0.060520     0.060427     0.060832
Triad:           2072.6     0.115989     0.115795     0.116595
Solution Validates: avg error less than 1.000000e-13 on all three arrays
"""


def read_text(folder: Path, text: str, name: str = "out") -> dict[str, float]:
    """Return the numbers that a file with this text measured."""
    (folder / name).write_text(text)
    return {one.field: one.value for one in read_outputs(folder / name)}


def test_osu_tells_latency_and_bandwidth(tmp_path: Path) -> None:
    assert read_text(tmp_path, LATENCY) == pytest.approx(
        {"network.latency": 2.69e-6, "network.bandwidth": 4194304 / 1680.81e-6}
    )
    assert read_text(tmp_path, BANDWIDTH) == pytest.approx({"network.bandwidth": 3029.14e6})


@pytest.mark.parametrize("unit", [1e6, 2**20])
def test_megabytes_of_imb_are_those_of_its_times(unit: float, tmp_path: Path) -> None:
    rates = {name: f"{size / micros * 1e6 / unit:.2f}" for name, size, micros in
             (("rate", 131072, 52.37), ("last", 4194304, 1692.11))}  # fmt: skip
    found = read_text(tmp_path, PINGPONG.format(**rates))
    assert found == pytest.approx({"network.latency": 2.33e-6, "network.bandwidth": 131072 / 52.37e-6})
    with pytest.raises(InputError, match="are not 131,072 B in"):
        read_text(tmp_path, PINGPONG.format(**{**rates, "rate": "9999.99"}))


def test_imb_with_times_over_ranks_and_their_distribution(tmp_path: Path) -> None:
    text = """# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            8      1000000         1.16         1.18         1.17         6.84
[ 0.83, 0.97, 0.98, 1.00, 1.02, 1.72, 1.75, 2.28, 3.12, 6.73, 50.00, 65.19 ]
       131072      1000000        20.00        22.00        21.00      6241.52
[ 1.16, 1.27, 1.29, 1.81, 2.06, 2.17, 2.40, 3.46, 4.34, 10.27, 50.00, 215.10 ]
"""
    assert read_text(tmp_path, text) == pytest.approx({"network.latency": 1.17e-6, "network.bandwidth": 131072 / 21e-6})


def test_a_barrier_of_two_processes_is_that_of_the_network(tmp_path: Path) -> None:
    assert read_text(tmp_path, BARRIER.format(processes=2)) == pytest.approx({"network.barrier": 1.2e-6})
    with pytest.raises(InputError, match="holds no osu_latency"):
        read_text(tmp_path, BARRIER.format(processes=16))


@pytest.mark.parametrize(("threads", "field"), [(1, "memory.per_core"), (72, "memory.sustained")])
def test_stream_on_one_core_is_no_node(threads: int, field: str, tmp_path: Path) -> None:
    assert read_text(tmp_path, STREAM.format(threads=threads)) == pytest.approx({field: 2072.6e6})


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        (LATENCY, "65536", "4", "growing sizes"),
        (LATENCY, "31.50", "0.00", "take no time"),
        (LATENCY, "# OSU MPI Latency", "# OSU MPI Allreduce Latency", "holds no osu_latency"),
        (STREAM, "10000000", "90000000", "are not 2,160,000,000 B"),
        (BARRIER.format(processes=2), "1.20\n", "3.20\n", "between the least and the most"),
    ],
)
def test_damage_names_its_line(text: str, old: str, new: str, reason: str, tmp_path: Path) -> None:
    assert old in text
    with pytest.raises(InputError, match=reason):
        read_text(tmp_path, text.replace(old, new))


def measure(tmp_path: Path, *texts: str) -> list[Measurement]:
    found = []
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text)
        found += read_outputs(tmp_path / str(number))
    return choose_measurements(found)


def test_outputs_of_different_networks_are_not_mixed(tmp_path: Path) -> None:
    assert len(measure(tmp_path, LATENCY, BANDWIDTH)) == 2
    gigabit = BANDWIDTH.replace("3029.14", "118.14").replace("3007.07", "117.07").replace("2932.93", "118.93")
    with pytest.raises(UsageError, match="not of the same machine"):
        measure(tmp_path, LATENCY, gigabit)
    in_mebibits = BANDWIDTH.replace("3029.14", "24233.14")
    with pytest.raises(UsageError, match="not of the same machine"):
        measure(tmp_path, LATENCY, in_mebibits)
    with pytest.raises(UsageError, match=r"network.latency is 2.69 us in .* and 26.9 us in"):
        measure(tmp_path, LATENCY, LATENCY.replace("2.69", "26.90").replace("2.70", "27.00"))


def test_repeats_count_once_with_the_best(tmp_path: Path) -> None:
    latency, _ = measure(tmp_path, LATENCY, LATENCY.replace("2.69", "2.50"), BANDWIDTH)
    assert latency.value == pytest.approx(2.5e-6)


def test_a_base_keeps_its_other_numbers(tmp_path: Path) -> None:
    base = machines.load_machine("epyc-9654")
    machine = build_machine("ours", base, measure(tmp_path, LATENCY, BANDWIDTH, STREAM.format(threads=8)))
    assert machine.network is not None
    assert machine.memory is not None
    assert (float(machine.network.latency or 0), float(machine.network.bandwidth or 0)) == (2.69e-6, 3.029e9)
    assert float(machine.memory.sustained or 0) == 2.073e9
    assert machine.flops_per_cycle == base.flops_per_cycle
    assert machine.cpus == (), "it is not the model of every machine with this processor"


def test_the_command_writes_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "latency.txt").write_text(LATENCY)
    assert main(["machines", "import", str(tmp_path / "latency.txt"), "--name", "ours"]) == 0
    assert "--machine ours" in " ".join(capsys.readouterr().out.split())
    assert main(["machines", "show", "ours"]) == 0
    assert "OSU MPI Latency Test 5.6.2, latency.txt" in capsys.readouterr().out
    assert main(["machines", "import", str(tmp_path / "latency.txt"), "--name", "host"]) == 2
    assert "can't be called 'host'" in capsys.readouterr().err


def test_advice_on_such_a_file_names_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "osu.out").write_text(BANDWIDTH)
    assert main(["advise", str(tmp_path / "osu.out")]) == 2
    assert f"gapwatch machines import {tmp_path / 'osu.out'}" in capsys.readouterr().err


@given(st.integers(0, len(LATENCY + BANDWIDTH) - 1), st.integers(0, 7))
def test_a_bit_turned_over_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    content = bytearray((LATENCY + BANDWIDTH).encode())
    content[place] ^= 1 << bit
    path = tmp_path_factory.mktemp("flip") / "out"
    path.write_bytes(content)
    with contextlib.suppress(AdvisorError):
        assert all(one.value > 0 for one in read_outputs(path))
