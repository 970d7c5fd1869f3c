from pathlib import Path

import pytest

from advisor.analysis import machine_rates, machines
from advisor.analysis.machines import local_machine
from advisor.analysis.machines.records import iterate_numbers

X86 = """\
processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz
flags		: fpu sse2 avx avx2 avx512f

processor	: 1
vendor_id	: Other
"""
ARM = """\
processor	: 0
Features	: fp asimd sve
CPU implementer	: 0x41
CPU part	: 0xd4f
"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


@pytest.fixture
def two_sockets(tmp_path: Path) -> Path:
    """Two sockets with two cores of two threads each, two cache levels and an instruction cache."""
    cpus = "sys/devices/system/cpu"
    files = {"proc/cpuinfo": X86, f"{cpus}/cpufreq/policy0": "", "sys/devices/system/node/node0/x": ""}
    for cpu in range(8):
        core = cpu % 4
        files |= {
            f"{cpus}/cpu{cpu}/topology/physical_package_id": str(core // 2),
            f"{cpus}/cpu{cpu}/topology/thread_siblings_list": f"{core},{core + 4}",
            f"{cpus}/cpu{cpu}/cpufreq/cpuinfo_max_freq": "3800000",
        }
    for index, (level, kind, size, shared) in enumerate(
        [("1", "Data", "48K", "0,4"), ("1", "Instruction", "32K", "0,4"), ("3", "Unified", "105M", "0-1,4-5")]
    ):
        folder = f"{cpus}/cpu0/cache/index{index}"
        files |= {
            f"{folder}/level": level,
            f"{folder}/type": kind,
            f"{folder}/size": size,
            f"{folder}/shared_cpu_list": shared,
            f"{folder}/coherency_line_size": "64",
            f"{folder}/ways_of_associativity": "12",
        }
    write(tmp_path, files)
    return tmp_path


def test_topology_clock_and_caches_come_from_the_system(two_sockets: Path) -> None:
    found = local_machine.detect_machine(two_sockets)
    assert (found.sockets, found.cores_per_socket, found.threads_per_core) == (2, 2, 2)
    assert (found.frequency, found.boost, found.vector_width) == (2.0e9, 3.8e9, 512.0)
    assert list(found.caches) == ["L1", "L3"]
    assert (found.caches["L1"].size, found.caches["L1"].shared_by) == (49152.0, 1)
    assert (found.caches["L3"].size, found.caches["L3"].shared_by) == (110100480.0, 2)
    assert found.memory is not None
    assert found.memory.numa_domains == 1
    assert all(number.source in found.sources for _, number in iterate_numbers(found))


def test_the_base_frequency_of_the_driver_goes_before_the_name(two_sockets: Path) -> None:
    write(two_sockets, {"sys/devices/system/cpu/cpu0/cpufreq/base_frequency": "2100000"})
    assert local_machine.detect_machine(two_sockets).frequency == 2.1e9


def test_a_known_processor_brings_its_functional_units(two_sockets: Path) -> None:
    identity = local_machine.identify_processor(two_sockets)
    assert identity == "GenuineIntel 6 143"
    model = machines.load_machine("xeon-8480")
    assert identity in model.cpus
    joined = local_machine.add_core_units(local_machine.detect_machine(two_sockets), model)
    assert joined.units == model.units
    assert machine_rates.peak_flops_per_s(joined, 1) == 32 * 3.8e9
    assert "xeon-8480" in joined.description


def test_an_unknown_processor_has_no_peak(two_sockets: Path) -> None:
    found = local_machine.add_core_units(local_machine.detect_machine(two_sockets), None)
    assert found.units == {}
    assert machine_rates.peak_flops_per_s(found, 1) is None


def test_what_the_system_does_not_tell_is_absent(tmp_path: Path) -> None:
    found = local_machine.detect_machine(tmp_path)
    assert local_machine.identify_processor(tmp_path) is None
    assert (found.sockets, found.cores_per_socket, found.frequency, found.boost, found.vector_width) == (None,) * 5
    assert found.caches == {}
    assert set(found.sources) == {"system memory"}


def test_files_with_nonsense_are_as_absent(two_sockets: Path) -> None:
    cpus = "sys/devices/system/cpu"
    write(
        two_sockets,
        {
            "proc/cpuinfo": "no colon here\n: \nmodel name : @ ??GHz",
            f"{cpus}/cpu0/cache/index0/size": "-5K",
            f"{cpus}/cpu0/cache/index0/shared_cpu_list": "all",
            f"{cpus}/cpu0/cache/index2/level": "seven",
            **{f"{cpus}/cpu{cpu}/cpufreq/cpuinfo_max_freq": "fast" for cpu in range(8)},
        },
    )
    found = local_machine.detect_machine(two_sockets)
    assert (found.frequency, found.boost, found.vector_width) == (None, None, None)
    assert list(found.caches) == ["L1"]
    assert (found.caches["L1"].size, found.caches["L1"].shared_by) == (None, None)


def test_arm_processors_have_another_identity_and_sve_a_length(tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": ARM, "proc/sys/abi/sve_default_vector_length": "64"})
    assert local_machine.identify_processor(tmp_path) == "0x41 0xd4f"
    assert local_machine.identify_processor(tmp_path) in machines.load_machine("grace").cpus
    assert local_machine.detect_machine(tmp_path).vector_width == 512.0


def test_no_processor_is_claimed_by_two_models() -> None:
    claimed = [cpu for name in machines.list_model_names() for cpu in machines.load_machine(name).cpus]
    assert len(claimed) == len(set(claimed)) >= 5


def test_the_machine_at_hand_has_memory_and_processors() -> None:
    host = machines.load_host_machine()
    assert host.name == "host"
    assert host.memory is not None
    assert host.memory.size is not None
    assert host.memory.size > 2**20
    assert host.cores_per_socket is None or host.cores_per_socket >= 1
