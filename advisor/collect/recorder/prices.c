/* What recording costs on this machine, measured in each process when it begins. */
#define _GNU_SOURCE
#include "recorder.h"

#include <string.h>

enum { ROUNDS = 8, TIMES = 32, FEW = TIMES / 8, PRICES = 5 };

/* Leave nothing of what was written only to be timed. */
static void drop_records(struct gw_thread *t, uint64_t used) {
  memset(t->records.base + used, 0, t->records.used - used);
  t->records.used = used;
  t->slots_used = 0;
  t->previous = NULL;
}

static void time_records(struct gw_thread *t, uint64_t used) {
  for (int i = 0; i < TIMES; i++) {
    t->cpu_at_ns = t->state_ns = t->last_ns;
    gw_close(gw_open(0, NULL));
    drop_records(t, used);
  }
}

static void time_folding(struct gw_thread *t) {
  for (int i = 0; i < TIMES; i++) {
    t->cpu_at_ns = t->state_ns = t->last_ns;
    gw_leave_brief(gw_enter_brief(0, NULL));
  }
}

/* Taking and giving back a lock, as often as it takes until the calls are counted, and then TIMES times. */
static uint64_t time_counting(void) {
  static char lock;
  uint64_t begin = 0;
  for (int i = -GW_COUNTED - 1; i < TIMES; i++) {
    if (!i) begin = gw_now();
    if (gw_lock_counted(0, NULL, &lock)) gw_counted_lock_taken(&lock);
    else {
      struct gw_record *record = gw_enter_brief(0, NULL);
      gw_lock_awaited(record, &lock);
      gw_lock_taken(record, &lock);
    }
    gw_lock_given(&lock);
  }
  return gw_now() - begin;
}

/* Measure what a record, a reading of the CPU clock, a state, a folded and a counted call cost: the best of some rounds,
   in ps. */
void gw_tell_prices(struct gw_thread *t) {
  uint64_t best[PRICES], used = t->records.used;
  int depth = gw_depth;
  gw_depth = 0;
  memset(best, 255, sizeof best);
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t moments[PRICES + 1] = {gw_now()};
    time_records(t, used);
    moments[1] = gw_now();
    for (int i = 0; i < TIMES; i++) gw_thread_cpu();
    moments[2] = gw_now();
    for (int i = 0; i < FEW; i++) {
      gw_state(t, t->last_ns);
      drop_records(t, used);
    }
    moments[3] = gw_now();
    t->granted_ns = UINT64_MAX / 2; /* no allowance */
    time_folding(t);
    moments[4] = gw_now();
    drop_records(t, used);
    moments[5] = moments[4] + time_counting();
    drop_records(t, used);
    for (int i = 0; i < PRICES; i++) {
      uint64_t each = (moments[i + 1] - moments[i]) * 1000 / (i == 2 ? FEW : TIMES);
      if (each < best[i]) best[i] = each;
    }
  }
  gw_depth = depth;
  t->granted_ns = 0;
  t->cpu_at_ns = t->last_ns = gw_now();
  t->cpu_ns = gw_thread_cpu();
  gw_tell("prices %llu %llu %llu %llu %llu", (unsigned long long)best[0], (unsigned long long)best[1],
          (unsigned long long)best[2], (unsigned long long)best[3], (unsigned long long)best[4]);
}
