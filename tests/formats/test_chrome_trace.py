"""Chrome traces as PyTorch's profiler writes them: written here, whole and damaged."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from advisor.extension.host import load_plugins
from advisor.formats.chrome_trace import advisor_read, advisor_sniff
from advisor.formats.chrome_trace.trace_builder import read_device_trace
from advisor.model.errors import InputError
from advisor.model.records import COMPUTATION
from advisor.output.wording import select_command
from advisor.pipeline import Options, advise

if TYPE_CHECKING:
    from pathlib import Path

BASE = 1_682_725_898_236_567


def event(
    name: str, category: str, start: float, length: float, pid: int = 1, tid: int = 1, **args: object
) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": BASE + start, "dur": length,
        "args": args,
    }  # fmt: skip


def kineto(rank: int, slow: float = 0.0) -> dict[str, Any]:
    """Two steps: data, a copy, a kernel, an all-reduce, and a wait for the result."""
    events = []
    for step in range(2):
        at = 40_000 * step
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        events += [
            event(f"ProfilerStep#{step}", "user_annotation", at, 40_000),
            event(loader, "user_annotation", at, 5000),
            event("aten::copy_", "cpu_op", at + 5000, 100),
            event("cudaMemcpyAsync", "cuda_runtime", at + 5010, 20, correlation=10 * step + 1),
            event("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", at + 5030, 1000, 0, 7, device=0, stream=7,
                  correlation=10 * step + 1, bytes=4_000_000),
            event("cudaLaunchKernel", "cuda_runtime", at + 6000, 10, correlation=10 * step + 2),
            event("sgemm", "kernel", at + 6030, 20_000 + slow, 0, 7, device=0, stream=7, correlation=10 * step + 2),
            event("cudaLaunchKernel", "cuda_runtime", at + 6020, 10, correlation=10 * step + 3),
            event("ncclDevKernel_AllReduce", "kernel", at + 26_030 + slow, 8000 - slow, 0, 20, device=0, stream=20,
                  correlation=10 * step + 3, **{"Collective name": "allreduce", "Process Group Name": "0"}),
            event("cudaStreamSynchronize", "cuda_runtime", at + 6100, 28_000, correlation=10 * step + 4),
        ]  # fmt: skip
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "traceEvents": events,
        "traceName": "t.json",
    }


def write(folder: Path, rank: int, slow: float = 0.0) -> Path:
    path = folder / f"rank{rank}.pt.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(kineto(rank, slow), indent=1).encode()))
    return path


def test_events_of_the_usual_form_give_what_all_others_give(tmp_path: Path) -> None:
    document = kineto(0)
    for number, each in enumerate(document["traceEvents"]):
        each["ts"], each["dur"] = each["ts"] + number / 8, each["dur"] + number / 16
    usual, quoted = tmp_path / "usual.json", tmp_path / "quoted.json"
    usual.write_text(json.dumps(document))
    for each in document["traceEvents"]:
        each["ts"], each["dur"] = str(each["ts"]), str(each["dur"])
    quoted.write_text(json.dumps(document))
    one, other = read_device_trace([usual]), read_device_trace([quoted])
    for table in ("activities", "calls"):
        for field in fields(getattr(one, table)):
            mine, theirs = (getattr(getattr(trace, table), field.name) for trace in (one, other))
            assert np.array_equal(mine, theirs), field.name
    assert (one.names, one.threads, one.devices) == (other.names, other.threads, other.devices)


def test_seconds_of_two_ranks(tmp_path: Path) -> None:
    write(tmp_path, 0)
    write(tmp_path, 1, 3000.0)
    assert advisor_sniff(tmp_path) is not None
    profile = advisor_read(tmp_path)
    use = profile.devices
    assert use is not None
    assert use.devices == ("rank 0 device", "rank 1 device")
    assert np.abs(sum(use.seconds.values()) - profile.actual_s).max() < 1e-9
    ms = {name: (each * 1e3).round(3).tolist() for name, each in use.seconds.items()}
    assert ms["compute"] == [40.0, 46.0]
    assert ms["imbalance"] == [6.0, 0.0]
    assert ms["communication"] == [10.0, 10.0]
    assert ms["data"] == [10.0, 10.0]
    assert use.iterations["imbalance"].round(6).tolist() == [[0.003, 0.003], [0.0, 0.0]]
    assert use.facts["pageable_share"] == 1.0
    assert {"cuda", "pytorch"} <= set(profile.paradigms)
    gains = {gain.change: gain.expected_s for gain in use.gains}
    assert gains["imbalance"] == pytest.approx(0.003, abs=1e-4)


def test_one_file_of_two_ranks_says_so(tmp_path: Path) -> None:
    profile = advisor_read(write(tmp_path, 0))
    assert any(note.name == "ranks missing" for note in profile.notes)


def test_ranks_in_another_unit_are_not_believed(tmp_path: Path) -> None:
    write(tmp_path, 0)
    trace = kineto(1)
    for one in trace["traceEvents"]:
        one["ts"], one["dur"] = one["ts"] / 1000, one["dur"] / 1000
    (tmp_path / "rank1.pt.trace.json").write_text(json.dumps(trace))
    assert "ranks unlike" in {note.name for note in advisor_read(tmp_path).notes}
    for one in trace["traceEvents"]:
        one["ts"], one["dur"] = one["ts"] * 1e9, one["dur"] * 1e9
    (tmp_path / "rank1.pt.trace.json").write_text(json.dumps(trace))
    with pytest.raises(InputError):
        advisor_read(tmp_path)


def test_processes_of_a_python_pool_are_one_program(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for pid, name in enumerate(("MainProcess", "ForkPoolWorker-1", "SpawnProcess-2:1"), start=7):
        events.append({"ph": "M", "pid": pid, "tid": pid, "name": "process_name", "args": {"name": name}})
        events.append({"ph": "X", "pid": pid, "tid": pid, "name": "work", "ts": 0, "dur": 200_000})
    (tmp_path / "pool.json").write_text(json.dumps({"traceEvents": events}))
    assert advisor_read(tmp_path / "pool.json").ranks == 3
    (tmp_path / "pool.json").write_text(json.dumps({"traceEvents": events}).replace("ForkPoolWorker-1", "Renderer"))
    with pytest.raises(InputError, match="different programs"):
        advisor_read(tmp_path / "pool.json")


def test_other_documents_with_a_version_of_their_schema_are_no_traces(tmp_path: Path) -> None:
    (tmp_path / "dashboard.json").write_text('{"annotations": {"list": []}, "schemaVersion": 38, "panels": []}')
    assert advisor_sniff(tmp_path / "dashboard.json") is None


def test_host_stands_for_the_device_without_one(tmp_path: Path) -> None:
    events = [
        event("aten::linear", "cpu_op", 0, 10_000),
        event("aten::mm", "cpu_op", 100, 9000),
        event("gloo:all_reduce", "user_annotation", 5000, 15_000, tid=2),
        event("aten::add", "cpu_op", 21_000, 9000),
    ]
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    use = advisor_read(path).devices
    assert use is not None
    ms = {name: (each * 1e3).round(3).tolist() for name, each in use.seconds.items() if each.any()}
    assert ms == {"compute": [19.0], "communication": [10.0], "host": [1.0]}
    assert use.facts["on_host"] == 1.0


@pytest.mark.parametrize(
    ("types", "shapes", "size"),
    [
        (["float"], [[256, 1024]], 1 << 20),
        (["float", "c10::Half"], [[4], [3]], 22),
        (["float"], [], -1),
        (["double"], [[[2]]], -1),
        (["Elephant"], [[2]], -1),
        (["float"], [[1 << 40, 1 << 40]], -1),
        (7, {"a": 1}, -1),
    ],
)
def test_shapes_tell_what_gloo_communicates(tmp_path: Path, types: object, shapes: object, size: int) -> None:
    args = {"Input type": types, "Input Dims": shapes}
    events = [
        event("aten::linear", "cpu_op", 0, 10_000, **{"Input Dims": [[[3]], []], "Input type": ["TensorList", ""]}),
        event("gloo:all_reduce", "user_annotation", 10_000, 15_000, tid=2, **args),
        event("aten::linear", "cpu_op", 26_000, 10_000),
    ]
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    use = advisor_read(path).devices
    assert use is not None
    floats = use.facts.get("float_communication_share")
    assert floats == (None if size < 0 else 1.0 if types == ["float"] else 0.0)
    per_GiB = use.facts.get("communication_s_per_GiB")
    assert per_GiB == (pytest.approx(0.015 * 1024) if size == 1 << 20 else None)


def test_every_damage_ends_in_a_message(tmp_path: Path) -> None:
    whole = write(tmp_path, 0).read_bytes()
    text = gzip.decompress(whole)
    cut = tmp_path / "cut.json"
    for data in (
        *(text[: len(text) * n // 40] for n in range(1, 40)),
        *(whole[: len(whole) * n // 20] for n in range(1, 20)),
    ):
        cut.write_bytes(data)
        with pytest.raises(InputError):
            advisor_read(cut)
    for bad in (
        b"[]",
        b'{"traceEvents": []}',
        b'{"traceEvents": [{"ph": "X"}]}',
        b'{"traceEvents": 7}',
        b"[" * 100_000,
    ):
        cut.write_bytes(bad)
        with pytest.raises(InputError):
            advisor_read(cut)


def test_flipped_bytes_end_in_a_message_or_a_run(tmp_path: Path) -> None:
    text = bytearray(gzip.decompress(write(tmp_path, 0).read_bytes()))
    place = tmp_path / "flipped.json"
    random = np.random.default_rng(3)
    for at in random.integers(0, len(text), 200).tolist():
        kept = text[at]
        text[at] ^= int(random.integers(1, 256))
        place.write_bytes(bytes(text))
        text[at] = kept
        try:
            profile = advisor_read(place)
        except InputError:
            continue
        assert profile.devices is not None
        total = np.sum(list(profile.devices.seconds.values()), axis=0)
        assert np.abs(total - profile.actual_s).max() <= 1e-9 * max(profile.actual_s, 1.0)


def test_other_json_is_not_taken(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"events": [1, 2, 3]}')
    assert advisor_sniff(other) is None
    assert advisor_sniff(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        {"ts": 1e300},
        {"ts": "NaN"},
        {"dur": -5},
        {"ts": 10**30},
        {"name": "k" * 200_000},
        {"args": {"correlation": 10**40, "device": "x", "stream": None}},
        {"args": None},
        {"name": None},
        {"tid": [1, 2]},
    ],
)
def test_odd_events_are_left_out_or_read(tmp_path: Path, change: dict[str, object]) -> None:
    document = kineto(0)
    document["traceEvents"][6] |= change
    document["distributedInfo"]["rank"] = 10**12
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(document))
    profile = advisor_read(path)
    assert profile.devices is not None
    assert all(len(region.name) <= 1000 for region in profile.regions)


def test_events_may_stand_far_behind_the_beginning(tmp_path: Path) -> None:
    document = {"metadata": {"remarks": "x" * 60_000}, **kineto(0)}
    path = tmp_path / "far.json"
    path.write_text(json.dumps(document, indent=1))
    assert advisor_sniff(path) == 0.9
    path.write_text(json.dumps({"metadata": {"remarks": "x" * 60_000}, "results": []}))
    assert advisor_sniff(path) is None


def test_categories_of_the_first_profilers_are_known(tmp_path: Path) -> None:
    names = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "cuda_runtime": "Runtime", "cpu_op": "Operator"}
    old = kineto(0)
    for each in old["traceEvents"]:
        each["cat"] = names.get(each["cat"], "Operator")
    new = tmp_path / "new.json"
    new.write_text(json.dumps(kineto(0)))
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    first, second = (advisor_read(each).devices for each in (new, path))
    assert first is not None
    assert second is not None
    assert {name: each.tolist() for name, each in first.seconds.items()} == {
        name: each.tolist() for name, each in second.seconds.items()
    }
    assert second.facts["iterations"] == 2


def test_kernels_of_frameworks_that_communicate(tmp_path: Path) -> None:
    from advisor.trace.devices.events import Activity
    from advisor.trace.devices.naming import classify_activity

    for name in (
        "void vllm::cross_device_reduce_1stage<half, 8>",
        "multimem_all_reduce_kernel<c10::BFloat16>",
        "void deep_ep::internode::cached_notify<false>(int, int, int)",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(__nv_bfloat16*, float*)",
        "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*)",
        "moeA2ADispatchKernel<128, 8>",
    ):
        assert classify_activity(name) == Activity.COMMUNICATION
    for name in (
        "reduce_kernel<512, 1>",
        "combine_kernel<8>(float*)",
        "at::native::vectorized_gather_kernel<16, long>",
    ):
        assert classify_activity(name) == Activity.COMPUTE


def test_requests_of_dma_are_copies_and_waits_of_queues_nothing(tmp_path: Path) -> None:
    events = [
        event("pe_exe", "mtia_ccp_events", 0, 1000, stream=1),
        event("dma_request", "mtia_ccp_events", 1000, 500, stream=2, direction="DEVICE_TO_HOST", size=4096),
        event("event_wait", "mtia_ccp_events", 0, 9000, stream=2),
        event("pe_exe", "mtia_ccp_events", 9000, 1000, stream=1),
    ]
    path = tmp_path / "mtia.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    use = advisor_read(path).devices
    assert use is not None
    ms = {name: (each * 1e3).round(3).tolist() for name, each in use.seconds.items() if each.any()}
    assert (ms["compute"], ms["copies"]) == ([2.0], [0.5])
    assert use.facts["host_copy_share"] == 1.0


def test_calls_of_another_form_are_read_as_those_of_the_usual_form(tmp_path: Path) -> None:
    """Times in quotes, whole microseconds and links out of range take another way than most events do."""
    usual, odd = kineto(0), kineto(0)
    for content in (usual, odd):
        for number, each in enumerate(each for each in content["traceEvents"] if each.get("ph") == "X"):
            times = float(each["ts"] - BASE), float(each["dur"])
            each["ts"], each["dur"] = map(str, times) if content is odd and number % 3 else times
    odd["traceEvents"].append(event("cudaLaunchKernel", "cuda_runtime", 7000.0 - BASE, 5.0, correlation=1 << 70))
    paths = tmp_path / "usual.json", tmp_path / "odd.json"
    for path, content in zip(paths, (usual, odd), strict=True):
        path.write_text(json.dumps(content))
    first, second = (advisor_read(path) for path in paths)
    assert first.devices is not None
    assert second.devices is not None
    for level, seconds in first.devices.seconds.items():
        assert second.devices.seconds[level].tolist() == seconds.tolist()
    assert [note.name for note in second.notes if note.name == "events not read"] == ["events not read"]


def test_activities_that_a_recorder_of_its_own_wrote(tmp_path: Path) -> None:
    """Without categories: CUPTI's number of a call tells activities and calls; without that nothing is a device's."""
    events = [event("[MEMCPY] HtoD", "", 0, 300, tid=7, correlationId=1)]
    events += [event("void scale<float>(int)", "", 1000, 500, tid=7, correlationId=2)]
    events += [event("cudaLaunchKernel", "", 900, 10, tid=1, correlationId=2)]
    for each in events:
        del each["cat"]
    path = tmp_path / "own.json"
    path.write_text(json.dumps(events))
    use = advisor_read(path).devices
    assert use is not None
    assert {name: float(each.sum()) for name, each in use.seconds.items() if name in ("compute", "copies")} == {
        "compute": pytest.approx(500e-6), "copies": pytest.approx(300e-6),
    }  # fmt: skip
    for each in events:
        each["args"] = {}
    path.write_text(json.dumps(events[:2]))
    assert advisor_read(path).devices is None


def test_devices_whose_processes_a_converter_named(tmp_path: Path) -> None:
    """As nsys2json writes them: ``pid`` is the device, ``tid`` the stream, or a thread of ranges."""
    events = [
        event("sgemm", "cuda", 1000 * step, 400, tid=7) | {"pid": "Device 1", "tid": "Stream 7"} for step in (0, 1)
    ]
    events.append(event("train", "nvtx", 0, 5000) | {"pid": "Device 1", "tid": "NVTX Region 1"})
    path = tmp_path / "converted.json"
    path.write_text(json.dumps({"traceEvents": events}))
    use = advisor_read(path).devices
    assert use is not None
    assert use.devices == ("rank 0 device",)
    assert float(use.seconds["compute"].sum()) == pytest.approx(800e-6)


def test_what_operators_take_is_no_answer_to_what_bounds_them(tmp_path: Path) -> None:
    events = [event("aten::linear", "cpu_op", 20_000 * n, 19_000) for n in range(20)]
    events += [event("aten::relu", "cpu_op", 20_000 * n + 19_005, 900) for n in range(20)]
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    found = advise([path], Options(), load_plugins())
    assert found.recommendations == ()
    (told,) = (finding for finding in found.findings if finding.kind == COMPUTATION)
    assert told.text == (
        "Operators of hosts take 99.5 % of the run, of it aten::linear 95.5 %; "
        "how far they are from the peak of the cores is not known."
    )
    assert select_command(found) == "gapwatch run -- python ./PROGRAM"
