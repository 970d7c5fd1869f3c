"""A trace that workers of a Dask cluster look at gives, to the bit, what one process alone gives."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import sys
import time
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traced_programs import programs, threaded_programs

from advisor.cli import main
from advisor.formats import otf2, paraver
from advisor.formats.otf2 import cluster_reading
from advisor.model.errors import ClusterError, InputError, UsageError
from advisor.support import cluster
from advisor.trace import spool
from advisor.trace.profile import from_trace
from advisor.trace.windows import TraceWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from advisor.trace.events import Trace

distributed: Any = pytest.importorskip("distributed", reason="needs dask.distributed: pip install 'gapwatch[cluster]'")
dask: Any = pytest.importorskip("dask", reason="comes with dask.distributed")
cloudpickle: Any = pytest.importorskip("cloudpickle", reason="comes with dask.distributed")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers don't find the modules of tests

PROFILES = Path(__file__).parents[1] / "profiles"
ARCHIVES = sorted(path.parent for path in (PROFILES / "otf2").rglob("*.otf2"))
RECORDINGS = sorted((PROFILES / "paraver").rglob("*.prv*"))


def assert_equal(found: object, expected: object, where: str = "profile") -> None:
    """Fail where anything differs, be it the last bit of a number."""
    assert type(found) is type(expected), where
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected, err_msg=where, strict=True)
    elif is_dataclass(expected):
        for field in fields(expected):
            assert_equal(getattr(found, field.name), getattr(expected, field.name), f"{where}.{field.name}")
    elif isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key, value in expected.items():
            assert_equal(found[key], value, f"{where}[{key!r}]")
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected), where
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_equal(one, other, f"{where}[{number}]")
    else:
        assert found == expected, where


def start_workers(count: int) -> Any:  # noqa: ANN401 (a cluster of Dask)
    return distributed.LocalCluster(
        n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    )


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def workers(request: pytest.FixtureRequest) -> Iterator[str]:
    with start_workers(request.param) as here:
        yield here.scheduler_address


@pytest.fixture(scope="module")
def pair() -> Iterator[str]:
    """Two workers that no test ends."""
    with start_workers(2) as here:
        yield here.scheduler_address


def test_recorded_traces(workers: str, tmp_path: Path) -> None:
    traces = {path: otf2.read_trace(path) for path in ARCHIVES} | {
        path: paraver.read_trace(path) for path in RECORDINGS
    }
    size = {path: len(trace.kind) // 4 for path, trace in traces.items()}
    cut = [path for path, trace in traces.items() if len(TraceWindows(trace, size[path])) > 2]
    assert len(cut) >= 4
    with cluster.use_cluster(workers, tmp_path):
        found = {path: from_trace(traces[path], window_events=size[path]) for path in cut}
    for path in cut:
        assert_equal(found[path], from_trace(traces[path], window_events=size[path]), str(path))
    assert not list(tmp_path.iterdir()), "what workers read is removed"


def test_columns_on_disk_are_read_where_they_lie(workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(path for path in ARCHIVES if "eztrace-lu" in str(path))
    expected = from_trace(otf2.read_trace(path), window_events=1000)
    monkeypatch.setattr(spool, "SPOOLED_EVENTS", 1)
    with cluster.use_cluster(workers, tmp_path) as used:
        trace = otf2.read_trace(path)
        before = sorted(used.folder.iterdir())
        found = from_trace(trace, window_events=1000)
        assert sorted(used.folder.glob("column-*")) == [each for each in before if each.name.startswith("column-")]
    assert_equal(found, expected)


class InOneProcess:
    """Stands in for workers: everything is pickled on its way to a task and back, as it is for them."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.folder, self._threads = folder, threads

    def count_threads(self) -> int:
        return self._threads

    def check_file(self, path: Path, advice: str) -> None:
        assert path.exists(), advice

    def send_to_all(self, thing: object) -> object:
        return pickle.loads(pickle.dumps(thing))

    def map_tasks(self, work: Callable[..., object], tasks: Iterable[tuple[Any, ...]]) -> Iterator[object]:
        for held, *task in tasks:
            yield pickle.loads(pickle.dumps(work(held, *pickle.loads(pickle.dumps(task)))))


@given(trace=st.one_of(programs(), threaded_programs()), events=st.integers(1, 60), threads=st.integers(1, 3))
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_program(trace: Trace, events: int, threads: int, tmp_path: Path) -> None:
    expected = from_trace(trace, window_events=events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster._Current, "cluster", InOneProcess(tmp_path, threads))
        found = from_trace(trace, window_events=events)
    assert_equal(found, expected)


@pytest.fixture
def spread_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers read short archives as well, and put few rows into place at a time."""
    monkeypatch.setattr(cluster_reading, "WORTH_SPREADING", 0)
    monkeypatch.setattr(cluster_reading, "RANGE_ROWS", 4096)


@pytest.mark.usefixtures("spread_reading")
@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: str(path.relative_to(PROFILES)))
def test_archives_read_by_workers(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = otf2.read_trace(path)
    monkeypatch.setattr(cluster._Current, "cluster", InOneProcess(tmp_path, 3))
    assert_equal(otf2.read_trace(path), expected)


@pytest.mark.usefixtures("spread_reading")
def test_a_damaged_archive_is_refused_as_ever(workers: str, tmp_path: Path) -> None:
    folder = shutil.copytree(ARCHIVES[0], tmp_path / "archive")
    file = max(folder.rglob("*.evt"), key=lambda each: each.stat().st_size)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError) as alone:
        otf2.read_trace(folder)
    with cluster.use_cluster(workers, tmp_path), pytest.raises(InputError, match=re.escape(str(alone.value))):
        otf2.read_trace(folder)


@pytest.mark.usefixtures("spread_reading")
def test_the_command_says_the_same(
    workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(from_trace, "__defaults__", (None, "trace", 1000))  # short windows
    path = next(path for path in ARCHIVES if "eztrace-lu" in str(path))
    words = ["advise", str(path), "--format", "json", "--state", str(tmp_path / "state")]
    assert main(words) == 0
    expected = capsys.readouterr().out
    assert main([*words, "--cluster", workers, "--shared", str(tmp_path)]) == 0
    assert capsys.readouterr().out == expected


def end_process_once(marker: str, number: int) -> int:
    if not os.path.exists(marker):
        Path(marker).touch()
        os._exit(1)
    return number * number


def end_process(number: int) -> int:
    os._exit(number)


def wait_long(begun: str) -> None:
    Path(begun).touch()
    time.sleep(600)


def read_missing(path: str) -> bytes:
    return Path(path, "column").read_bytes()


def test_what_a_lost_worker_was_at_is_done_again(tmp_path: Path) -> None:
    with start_workers(2) as here, cluster.use_cluster(here.scheduler_address, tmp_path) as used:
        tasks = [(str(tmp_path / "once"), number) for number in range(20)]
        assert list(used.map_tasks(end_process_once, tasks)) == [number * number for number in range(20)]


def test_a_part_that_ends_its_workers_is_given_up(tmp_path: Path) -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        start_workers(1) as here,
        cluster.use_cluster(here.scheduler_address, tmp_path) as used,
        pytest.raises(ClusterError, match=r"a part is given up: the workers that had it were lost, 1 in all"),
    ):
        list(used.map_tasks(end_process, [(1,)]))


def test_nobody_is_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ABSENCE_S", 0.5)
    monkeypatch.setattr(cluster, "LOOK_S", 0.1)
    with start_workers(1) as here, cluster.use_cluster(here.scheduler_address, tmp_path) as used:
        begun = tmp_path / "begun"

        def leave() -> Iterator[tuple[str]]:
            yield (str(begun),)
            while not begun.exists():
                time.sleep(0.05)
            here.scale(0)

        with pytest.raises(ClusterError, match="all workers are lost"):
            list(used.map_tasks(wait_long, leave()))


def test_an_address_without_a_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 0.5)
    with (
        pytest.raises(UsageError, match=r"--cluster tcp://127\.0\.0\.1:9: no scheduler answers there"),
        cluster.use_cluster("tcp://127.0.0.1:9", tmp_path),
    ):
        pass


def test_a_scheduler_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 2.0)
    with (
        start_workers(0) as here,
        pytest.raises(ClusterError, match="no workers; start some"),
        cluster.use_cluster(here.scheduler_address, tmp_path),
    ):
        pass


def test_workers_with_other_code(pair: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = cluster.describe_code() | {"numpy": "0.1"}
    monkeypatch.setattr(cluster, "describe_code", lambda: mine)
    monkeypatch.setattr(
        cluster.Cluster, "_ask_workers", lambda *_: {"tcp://a": mine | {"numpy": "0.2"}, "tcp://b": mine}
    )
    with (
        pytest.raises(ClusterError, match=r"worker tcp://a: numpy 0\.2 and not 0\.1; the same versions"),
        cluster.use_cluster(pair, tmp_path),
    ):
        pass
    with pytest.raises(ClusterError, match=r"came later has numpy 0\.1 and not 3"):
        cluster.do_task(mine | {"numpy": "3"}, end_process, 1)


def test_workers_that_lack_gapwatch() -> None:
    assert cluster._compare_code({}, ModuleNotFoundError("No module named 'advisor'")).startswith(
        "cannot load gapwatch"
    )


@pytest.mark.parametrize("there", [True, False], ids=["another file", "no file"])
def test_a_directory_that_workers_do_not_see(
    there: bool, pair: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = cluster.Cluster._ask_workers

    def look_elsewhere(self: cluster.Cluster, question: Callable[..., object], *words: str) -> dict[str, object]:
        elsewhere = [str(tmp_path / "elsewhere") for _ in words]
        return ask(self, question, *elsewhere)

    if there:
        (tmp_path / "elsewhere").write_text("nothing")
    monkeypatch.setattr(cluster.Cluster, "_ask_workers", look_elsewhere)
    reason = "another file lies at" if there else "No such file or directory"
    with (
        pytest.raises(ClusterError, match=rf"2 workers in all.*{reason}.*no directory that all workers see.*--shared"),
        cluster.use_cluster(pair, tmp_path),
    ):
        pass


def test_files_that_vanish(pair: str, tmp_path: Path) -> None:
    with (
        cluster.use_cluster(pair, tmp_path) as used,
        pytest.raises(ClusterError, match=r"a worker failed at a file: .*No such file"),
    ):
        list(used.map_tasks(read_missing, [(str(tmp_path),)]))


def test_a_shared_directory_that_is_none(pair: str, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"--shared .*No such file or directory; name a directory"),
        cluster.use_cluster(pair, tmp_path / "none"),
    ):
        pass


def test_a_shared_directory_needs_a_cluster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["advise", str(ARCHIVES[0]), "--shared", str(tmp_path)]) == 2
    assert "--shared names a directory for the workers of --cluster" in capsys.readouterr().err
