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

void gw_lock_awaited(struct gw_record *record, const void *lock) {
  if (record) record->request = __atomic_load_n(holder_of(lock), __ATOMIC_RELAXED) == lock;
}

void gw_lock_taken(struct gw_record *record, const void *lock) {
  struct gw_thread *t = gw_self;
  if (!record || !t) return;
  record = gw_leave_brief(record);
  __atomic_store_n(holder_of(lock), lock, __ATOMIC_RELAXED);
  if (t->holding < GW_HELD) {
    t->held[t->holding].lock = lock;
    t->held[t->holding].acquired = record;
    t->held[t->holding].since_ns = t->last_ns;
  }
  t->holding++;
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
  uint64_t now = gw_now(), held = now - t->held[at - 1].since_ns;
  struct gw_record *record = t->held[at - 1].acquired;
  if (held > LONG_NS) {
    uint64_t lost = gw_lost(t, now);
    held -= lost < held ? lost : held;
  }
  record->size = (record->size > 0 ? record->size : 0) + (int64_t)held;
  for (t->holding--; at <= t->holding && at < GW_HELD; at++) t->held[at - 1] = t->held[at];
  __atomic_store_n(holder_of(lock), NULL, __ATOMIC_RELAXED);
}
