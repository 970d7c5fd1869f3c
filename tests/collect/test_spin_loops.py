"""Loops that ask memory until another thread has written there: they are told from searches, and are waiting."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from compiled_programs import compile_program
from recorded_runs import compile_program as compile_recorded
from recorded_runs import record_run

from advisor.collect.binaries.disassembly import disassemble
from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.executables import attach_executable
from advisor.collect.binaries.inner_loops import find_inner_loops
from advisor.collect.binaries.registers import free_frame_pointer
from advisor.collect.binaries.spinning import NOTE
from advisor.formats import recording
from advisor.trace.counts import SPIN_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the code of programs is looked into on x86-64")

SOURCE = """
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
struct node { struct node *next; int key; };
typedef struct { _Atomic uint64_t *slots; } box;
volatile int flag; atomic_int lock, now, next_ticket; atomic_flag taken = ATOMIC_FLAG_INIT;
void wait_volatile(void) { while (!flag) ; }
void wait_pause(atomic_int *p, int v) { while (atomic_load(p) != v) __builtin_ia32_pause(); }
void take_swap(void) { while (atomic_flag_test_and_set(&taken)) ; }
void take_asked(void)
  { for (;;) { if (!atomic_exchange(&lock, 1)) return; while (atomic_load(&lock)) __builtin_ia32_pause(); } }
void take_ticket(void) { int my = atomic_fetch_add(&next_ticket, 1); while (atomic_load(&now) != my) ; }
void wait_box(box *b, int i) { while (atomic_load(&b->slots[i]) == 0) ; }
void wait_below(volatile long *a, long limit) { while (*a < limit) ; }

struct node *find(struct node *n, int key) { while (n && n->key != key) n = n->next; return n; }
int search(const int *a, int n, int key) { for (int i = 0; i < n; i++) if (a[i] == key) return i; return -1; }
size_t length(const char *s) { size_t n = 0; while (s[n]) n++; return n; }
void add_to(_Atomic double *p, double v)
  { double old = atomic_load(p); while (!atomic_compare_exchange_weak(p, &old, old + v)) ; }
void raise_to(atomic_int *p, int v)
  { int old = atomic_load(p); while (old < v && !atomic_compare_exchange_weak(p, &old, v)) ; }
long collatz(long n) { long c = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; c++; } return c; }
uint64_t divisor(uint64_t a, uint64_t b) { while (b) { uint64_t t = a % b; a = b; b = t; } return a; }
void drain(volatile int *port, int n) { for (int i = 0; i < n; i++) (void)port[i]; }
void count_up(volatile int *p) { while (*p < 1000) *p += 1; }
uint32_t shift(uint32_t x, const uint32_t *mask) { while (x & *mask) x = (x >> 1) ^ (x << 3); return x; }
int main(void) { return 0; }
"""
SPINNING = {"wait_volatile", "wait_pause", "take_swap", "take_asked", "take_ticket", "wait_box", "wait_below"}


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_loops_that_spin_are_told_from_others(tmp_path: Path, compiler: str, level: str) -> None:
    image = read_elf(compile_program(tmp_path, compiler, SOURCE, level))
    found = {
        symbol.name
        for symbol in image.functions
        for loop in find_inner_loops(free_frame_pointer(disassemble(image, symbol.begin, symbol.end)))
        if loop.spins
    }
    assert found == SPINNING


@pytest.fixture(scope="module")
def spun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("spun")
    program = compile_recorded(folder, ("gcc", "-O2"), "spin_barrier.c", "-lm", "-pthread")
    taken, _, err = record_run(folder, str(program))
    assert "recorded into" in err, err
    return taken


def test_who_spins_waits_and_does_not_compute(spun: Path) -> None:
    recorded = recording.advisor_read(spun)
    profile = attach_executable(recorded, None, (), (spun,))
    assert [note.name for note in profile.notes].count(NOTE) == 1
    before, after = recorded.sum_by_region("cpu_s").sum(axis=0), profile.sum_by_region("cpu_s").sum(axis=0)
    spins = profile.counts[SPIN_SECONDS].sum(axis=0)
    np.testing.assert_allclose(before, after + spins)
    first, second = np.argsort(after[-2:]) + len(after) - 2
    assert after[first] == pytest.approx(after[second] / 4, rel=0.4)
    assert spins[first] > after[first]
    assert spins[second] < 0.1 * after[second]
    waited = [one.sum_by_region("wait_s").sum() for one in (recorded, profile)]
    assert waited[1] - waited[0] == pytest.approx(spins.sum())
    assert profile.status["wait_s"] == "estimated"


def test_without_samples_by_processor_nothing_is_moved(spun: Path) -> None:
    recorded = replace(recording.advisor_read(spun), sampled_processors=np.zeros((0, 3), dtype=np.int64))
    profile = attach_executable(recorded, None, (), (spun,))
    assert NOTE not in [note.name for note in profile.notes]
    assert SPIN_SECONDS not in profile.counts
    np.testing.assert_array_equal(profile.sum_by_region("cpu_s"), recorded.sum_by_region("cpu_s"))
