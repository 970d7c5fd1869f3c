from __future__ import annotations

from sampled_runs import process, thread

from advisor.collect import roles


def names(*processes: roles.Process) -> list[str]:
    return [one.name for one in roles.select_applications(processes)]


def test_ranks_are_told_from_what_starts_them() -> None:
    mpirun = process("mpirun", 0, 10, 0.3)
    daemon = process("orted", 0, 10, 0.1, parent=mpirun.pid, rank=0)
    ranks = [process("app", 0.2, 9.8, 9.0, parent=daemon.pid, rank=n) for n in range(3)]
    assert names(mpirun, daemon, *ranks) == ["app"] * 3
    assert [(lane.rank, lane.number) for lane in roles.build_lanes(ranks)] == [(0, 0), (1, 0), (2, 0)]


def test_a_shell_counts_only_where_it_starts_nothing() -> None:
    shell = process("sh", 0, 10, 0.0)
    assert names(shell) == ["sh"]
    assert names(shell, process("app", 0, 10, 9.0, parent=shell.pid)) == ["app"]


def test_a_wrapper_around_a_rank_is_not_that_rank() -> None:
    wrapper = process("run.sh", 0, 10, 0.1, rank=4)
    app = process("app", 0, 10, 9.0, rank=4, parent=wrapper.pid)
    assert names(wrapper, app) == ["app"]


def test_whoever_only_looks_after_busy_processes_is_a_launcher() -> None:
    master = process("work.py", 0, 10, 0.2)
    workers = [process("work.py", 0, 10, 9.0, parent=master.pid) for _ in range(2)]
    assert roles.select_applications([master, *workers]) == workers


def test_a_process_that_works_beside_its_children_counts() -> None:
    parent = process("solve", 0, 10, 8.0)
    child = process("solve", 0, 10, 9.0, parent=parent.pid)
    assert roles.select_applications([parent, child]) == [parent, child]


def test_an_idle_process_of_a_busy_program_is_no_helper() -> None:
    busy, idle, helper = process("app", 0, 10, 9.0), process("app", 0, 10, 0.0), process("tail", 0, 10, 0.0)
    assert roles.select_applications([busy, idle, helper]) == [busy, idle]


def test_programs_one_after_the_other_are_one_rank_and_those_side_by_side_are_several() -> None:
    first, second = process("prepare", 0, 4, 4.0), process("solve", 4, 10, 6.0)
    beside = process("solve", 4, 10, 6.0)
    assert [(lane.process.name, lane.rank) for lane in roles.build_lanes([first, second, beside])] == [
        ("prepare", 0), ("solve", 0), ("solve", 1),
    ]  # fmt: skip


def test_a_command_that_follows_at_once_takes_the_place_of_the_one_before() -> None:
    first, second = process("solve", 0, 4, 4.0), process("solve", 4, 8, 4.0)
    first.end_s = 4.03  # between the sample that saw it and the next one
    assert [lane.rank for lane in roles.build_lanes([first, second])] == [0, 0]


def test_processes_without_a_rank_take_none_that_is_given() -> None:
    ranked, other = process("app", 0, 10, 9.0, rank=0), process("app", 0, 10, 9.0)
    assert sorted(lane.rank for lane in roles.build_lanes([ranked, other])) == [0, 1]


def test_threads_that_work_are_processors_and_helpers_are_not() -> None:
    app = process("app", 0, 10, 9.0)
    app.threads[2] = thread(2, 1, 10, 8.0)
    app.threads[3] = thread(3, 1, 10, 0.01)
    assert [(lane.thread.tid, lane.number) for lane in roles.build_lanes([app])] == [(app.pid, 0), (2, 1)]


def test_a_first_thread_that_only_waits_for_its_workers_is_none() -> None:
    app = process("app", 0, 10, 0.05)
    app.threads[2] = thread(2, 0, 10, 9.0)
    assert [(lane.thread.tid, lane.number) for lane in roles.build_lanes([app])] == [(2, 0)]


def test_threads_that_follow_each_other_are_one_processor() -> None:
    app = process("app", 0, 10, 9.0)
    app.threads[2], app.threads[3] = thread(2, 1, 5, 4.0), thread(3, 5, 9, 4.0)
    assert [lane.number for lane in roles.build_lanes([app])] == [0, 1, 1]


def test_without_anybody_who_works_all_count() -> None:
    mpirun = process("mpirun", 0, 1, 0.1)
    assert names(mpirun) == ["mpirun"]
