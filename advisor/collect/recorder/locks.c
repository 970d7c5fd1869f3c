/* Locks of OpenMP: whether another thread holds one that is asked for, and for how long it is held. */
#include "recorder.h"

#define LOCKS 256
#define LONG_NS 50000 /* held for longer, the time without a core is left out */

/* Which lock is held, at a place that follows from its address; of two at the same place the later one is known. */
static struct {
  const void *lock;
  char apart[64 - sizeof(void *)];
} holders[LOCKS] __attribute__((aligned(64)));

static const void **holder_of(const void *lock) {
  return &holders[((uintptr_t)lock * 0x9e3779b97f4a7c15u >> 48) % LOCKS].lock;
}

static int is_held(const void *lock) { return __atomic_load_n(holder_of(lock), __ATOMIC_RELAXED) == lock; }

int gw_lock_counted(unsigned function, const void *caller, const void *lock) {
  return gw_count(function, caller, (unsigned)is_held(lock));
}

void gw_lock_awaited(struct gw_record *record, const void *lock) {
  if (record) record->request = (unsigned)is_held(lock);
}

static void hold(struct gw_thread *t, const void *lock, struct gw_record *acquired, uint64_t since, int in_ticks) {
  __atomic_store_n(holder_of(lock), lock, __ATOMIC_RELAXED);
  if (t->holding < GW_HELD) {
    t->held[t->holding].lock = lock;
    t->held[t->holding].acquired = acquired;
    t->held[t->holding].since = since;
    t->held[t->holding].in_ticks = in_ticks;
  }
  t->holding++;
}

void gw_lock_taken(struct gw_record *record, const void *lock) {
  struct gw_thread *t = gw_self;
  if (!record || !t) return;
  record = gw_leave_brief(record);
  hold(t, lock, record, t->last_ns, 0);
}

void gw_counted_lock_taken(const void *lock) {
  uint64_t ticks = gw_ticks();
  struct gw_record *record = gw_counted(ticks);
  if (record) hold(gw_self, lock, record, ticks, 1);
}

/* The time that a lock was held is the size of the record of its acquisition. */
void gw_lock_given(const void *lock) {
  struct gw_thread *t = gw_self;
  if (!t || !t->holding || gw_depth) return;
  if (t->holding > GW_HELD) {
    t->holding--;
    return;
  }
  unsigned at = t->holding;
  while (at && t->held[at - 1].lock != lock) at--;
  if (!at) return;
  uint64_t since = t->held[at - 1].since;
  uint64_t held = t->held[at - 1].in_ticks ? gw_ticked_ns(t, since, gw_ticks()) : gw_now() - since;
  struct gw_record *record = t->held[at - 1].acquired;
  if (held > LONG_NS) {
    uint64_t lost = gw_lost(t, gw_now());
    held -= lost < held ? lost : held;
  }
  record->size = (record->size > 0 ? record->size : 0) + (int64_t)held;
  for (t->holding--; at <= t->holding && at < GW_HELD; at++) t->held[at - 1] = t->held[at];
  __atomic_store_n(holder_of(lock), NULL, __ATOMIC_RELAXED);
}
