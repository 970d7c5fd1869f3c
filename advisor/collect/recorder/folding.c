/* Folding: equal brief calls of a thread become one record where it makes more than a trace has room for.

   Each thread has an allowance of brief calls with records of their own. Behind that, a call joins the record of an
   earlier one that was the same (function, caller, file or lock, contended or not): this adds up how many, their time
   and bytes, and the shortest and the longest. Such records stand in the order of their first calls and never overlap:
   one that grows pushes the begin of those behind it. A record that was pushed still ends before the last call does,
   since all calls in it came after its first one, one at a time. Any other record, and some time, starts new ones.

   All of this happens in the file, in an order that leaves it readable whenever the process is killed. */
#include "recorder.h"

#include <string.h>

#define APART_NS 100000      /* brief calls have records of their own so often on average, */
#define ALLOWED_NS 100000000 /* and 1,000 of them at once */
#define WINDOW_NS 10000000   /* calls are no further apart in one record */

static int is_allowed(struct gw_thread *t, uint64_t now) {
  if (t->granted_ns + ALLOWED_NS < now) t->granted_ns = now - ALLOWED_NS;
  if (t->granted_ns + APART_NS > now) return 0;
  t->granted_ns += APART_NS;
  return 1;
}

static int are_equal(const struct gw_record *a, const struct gw_record *b) {
  return a->caller == b->caller && a->function == b->function && a->partner == b->partner && a->event == b->event &&
         a->request == b->request;
}

/* The slot of the record that a call joins; none is the first free one. */
static unsigned find_slot(const struct gw_thread *t, const struct gw_record *call) {
  unsigned slot = 0;
  while (slot < t->slots_used && !are_equal(t->slots[slot], call)) slot++;
  return slot;
}

/* Lengthen the record in a slot, and push those behind it. */
static void lengthen(struct gw_thread *t, unsigned slot, uint64_t took) {
  uint64_t begins[GW_SLOTS], end = t->slots[slot]->end_ns + took;
  unsigned last = slot;
  for (uint64_t until = end; last + 1 < t->slots_used && t->slots[last + 1]->start_ns <= until;) {
    const struct gw_record *next = t->slots[++last];
    begins[last] = until + 1;
    until = begins[last] + (next->end_ns - next->start_ns);
  }
  for (; last > slot; last--) {
    struct gw_record *pushed = t->slots[last];
    uint64_t length = pushed->end_ns - pushed->start_ns;
    __atomic_store_n(&pushed->end_ns, begins[last] + length, __ATOMIC_RELEASE);
    __atomic_store_n(&pushed->start_ns, begins[last], __ATOMIC_RELEASE);
  }
  __atomic_store_n(&t->slots[slot]->end_ns, end, __ATOMIC_RELEASE);
}

static void add_call(struct gw_record *to, int64_t size, uint64_t took) {
  uint64_t known = to->end_ns - to->start_ns;
  uint64_t shortest = to->kind == GW_FOLDED ? to->cpu_start_ns & UINT32_MAX : known;
  uint64_t longest = to->kind == GW_FOLDED ? to->cpu_start_ns >> 32 : known;
  if (took < shortest) shortest = took;
  if (took > longest) longest = took;
  __atomic_store_n(&to->cpu_start_ns, shortest | longest << 32, __ATOMIC_RELEASE);
  to->cpu_end_ns = 0;
  if (size > 0) to->size = (to->size > 0 ? to->size : 0) + size;
  to->tag++;
  __atomic_store_n((unsigned char *)to + 22, GW_FOLDED, __ATOMIC_RELEASE);
}

/* Fold a call that has just ended into the record of earlier ones, which is returned; NULL where it keeps its own. */
struct gw_record *gw_fold(struct gw_thread *t, struct gw_record *record, uint64_t now) {
  if (t->slots_used && now - t->slots[0]->start_ns > WINDOW_NS) t->slots_used = 0;
  if (!t->slots_used && is_allowed(t, now)) return NULL;
  unsigned slot = find_slot(t, record);
  if (slot < t->slots_used) {
    struct gw_record *to = t->slots[slot];
    uint64_t took = now - record->start_ns;
    add_call(to, record->size, took);
    lengthen(t, slot, took);
    __atomic_store_n((unsigned char *)record + 22, 0, __ATOMIC_RELEASE);
    memset(record, 0, sizeof *record);
    t->records.used -= sizeof *record;
    t->previous = NULL;
    return to;
  }
  if (t->slots_used == GW_SLOTS) t->slots_used = 0;
  if (!t->slots_used && (t->tick_ns = gw_tick_ns(now)) > 0)
    t->folded_until = gw_ticks() + (uint64_t)(WINDOW_NS / t->tick_ns);
  t->slots[t->slots_used++] = record;
  record->cpu_end_ns = 0;
  __atomic_store_n(&record->end_ns, now, __ATOMIC_RELEASE);
  t->previous = NULL;
  return record;
}

int gw_count(unsigned function, const void *caller, unsigned request) {
  struct gw_thread *t = gw_self;
  if (!t || !gw_on || gw_depth || t->tick_ns <= 0) return 0;
  const struct gw_record call = {.function = (uint16_t)function, .caller = GW_CALLER(caller), .request = request,
                                 .partner = GW_NOBODY};
  unsigned slot = find_slot(t, &call);
  if (slot == t->slots_used || t->slots[slot]->tag < GW_COUNTED) return 0;
  t->counted.since = gw_ticks();
  if (t->counted.since > t->folded_until) return 0;
  t->counted.like = t->slots[slot];
  t->counted.slot = slot;
  return gw_depth = 1;
}

struct gw_record *gw_counted(uint64_t ticks) {
  struct gw_thread *t = gw_self;
  unsigned slot = t->counted.slot;
  uint64_t took = gw_ticked_ns(t, t->counted.since, ticks);
  int is_open = slot < t->slots_used && t->slots[slot] == t->counted.like;
  gw_depth = 0;
  if (!is_open || took > GW_LONG_CALL_NS) return gw_record_returned(t->counted.like, took);
  add_call(t->slots[slot], 0, took);
  lengthen(t, slot, took);
  t->previous = NULL;
  return t->slots[slot];
}
