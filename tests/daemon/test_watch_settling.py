"""When files are complete: by their quiet time on a clock that the test turns."""

from __future__ import annotations

from pathlib import Path

from advisor.daemon.debounce import FileDebouncer
from advisor.history.file_states import FileSignature

HERE, OTHER = Path("/data"), Path("/data/deeper")


def signature(size: int = 1) -> FileSignature:
    return FileSignature(1, 2, size, 0, 0)


def test_a_file_is_due_when_nobody_changed_it_for_the_quiet_time() -> None:
    settling = FileDebouncer(2.0)
    settling.observe_files(HERE, {b"a": signature(1)}, now=10.0)
    assert not list(settling.ready_folders(11.9))
    settling.observe_files(HERE, {b"a": signature(2)}, now=11.9)
    assert not list(settling.ready_folders(13.8))
    assert list(settling.ready_folders(13.9)) == [(HERE, {b"a": signature(2)})]
    assert settling.quiet_s(HERE, b"a", 14.9) == 3.0


def test_seeing_the_same_again_changes_nothing() -> None:
    settling = FileDebouncer(2.0)
    settling.observe_files(HERE, {b"a": signature()}, now=10.0)
    settling.observe_files(HERE, {b"a": signature()}, now=11.0)
    assert settling.next_due() == 12.0


def test_a_directory_waits_as_a_whole_and_others_do_not() -> None:
    settling = FileDebouncer(2.0)
    settling.observe_files(HERE, {b"a": signature()}, now=0.0)
    settling.observe_files(HERE, {b"b": signature()}, now=1.0)
    settling.observe_files(OTHER, {b"c": signature()}, now=0.0)
    assert [folder for folder, _ in settling.ready_folders(2.5)] == [OTHER]
    assert settling.is_busy_below(HERE, 2.5)
    assert not settling.is_busy_below(OTHER, 2.5)
    assert settling.files_below(HERE).keys() == {HERE, OTHER}


def test_a_closed_file_need_not_wait_and_an_incomplete_one_must() -> None:
    settling = FileDebouncer(2.0)
    settling.observe_files(HERE, {b"a": signature()}, now=0.0)
    settling.advance_file(HERE, b"a", until=0.1)
    assert list(settling.ready_folders(0.1))
    settling.postpone_file(HERE, b"a", until=9.0)
    assert settling.next_due() == 9.0
    settling.advance_file(HERE, b"a", until=20.0)
    assert settling.next_due() == 9.0


def test_what_found_its_state_is_forgotten() -> None:
    settling = FileDebouncer(2.0)
    settling.observe_files(HERE, {b"a": signature(), b"b": signature()}, now=0.0)
    settling.forget_files(HERE, {b"a"})
    assert len(settling) == 1
    settling.forget_files(HERE, {b"b"})
    assert (len(settling), settling.next_due(), list(settling.ready_folders(99.0))) == (0, None, [])
    assert settling.quiet_s(HERE, b"a", 99.0) == 0.0


def test_what_is_quiet_holds_nobody_up_though_it_was_postponed() -> None:
    settling = FileDebouncer(1.5)
    settling.observe_files(HERE, {b"a": signature()}, now=0.0)
    settling.observe_files(OTHER, {b"b": signature()}, now=0.5)
    assert settling.is_busy_below(HERE, 1.5), "the other directory of the profile may still be written to"
    settling.postpone_file(HERE, b"a", until=3.0)
    assert [folder for folder, _ in settling.ready_folders(2.0)] == [OTHER]
    assert not settling.is_busy_below(HERE, 2.0), "both are quiet: the profile is read, whichever of them is due"
    settling.advance_file(OTHER, b"b", until=1.0)
    settling.observe_files(OTHER, {b"b": signature(2)}, now=2.0)
    settling.advance_file(OTHER, b"b", until=2.1)
    assert settling.is_busy_below(HERE, 2.05)
    assert not settling.is_busy_below(HERE, 2.2)
