/* What recording costs on this machine, measured in each process when it begins. */
#define _GNU_SOURCE
#include "recorder.h"

#include <string.h>

enum { ROUNDS = 8, TIMES = 32, FEW = TIMES / 8, PRICES = 4 };

static void time_records(struct gw_thread *t, uint64_t used) {
  for (int i = 0; i < TIMES; i++) {
    t->cpu_at_ns = t->state_ns = t->last_ns;
    gw_close(gw_open(0, NULL));
    t->records.used = used;
  }
}

static void time_folding(struct gw_thread *t) {
  for (int i = 0; i < TIMES; i++) {
    t->cpu_at_ns = t->state_ns = t->last_ns;
    gw_leave_brief(gw_enter_brief(0, NULL));
  }
}

/* Measure what a record, a reading of the CPU clock, a state and a folded call cost: the best of some rounds, in ps. */
void gw_tell_prices(struct gw_thread *t) {
  uint64_t best[PRICES] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, used = t->records.used;
  int depth = gw_depth;
  gw_depth = 0;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t moments[PRICES + 1] = {gw_now()};
    time_records(t, used);
    moments[1] = gw_now();
    for (int i = 0; i < TIMES; i++) gw_thread_cpu();
    moments[2] = gw_now();
    for (int i = 0; i < FEW; i++) {
      gw_state(t, t->last_ns);
      t->records.used = used;
    }
    moments[3] = gw_now();
    t->granted_ns = UINT64_MAX / 2; /* no allowance */
    time_folding(t);
    moments[4] = gw_now();
    t->records.used = used;
    t->slots_used = 0;
    for (int i = 0; i < PRICES; i++) {
      uint64_t each = (moments[i + 1] - moments[i]) * 1000 / (i == 2 ? FEW : TIMES);
      if (each < best[i]) best[i] = each;
    }
  }
  memset(t->records.base + used, 0, 2 * sizeof(struct gw_record));
  gw_depth = depth;
  t->previous = NULL;
  t->granted_ns = 0;
  t->cpu_at_ns = t->last_ns = gw_now();
  t->cpu_ns = gw_thread_cpu();
  gw_tell("prices %llu %llu %llu %llu", (unsigned long long)best[0], (unsigned long long)best[1],
          (unsigned long long)best[2], (unsigned long long)best[3]);
}
