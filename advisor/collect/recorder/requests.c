/* Requests that are outstanding, part of mpi.c.

   Libraries return one and the same handle for all small messages that are sent at once, so that a request is known by
   its handle and the variable that holds it; of equal ones the oldest is completed first. Fortran's variables are
   temporaries: then the oldest of the handle is taken. Both are looked up in buckets whose entries stand in the order in
   which they were made, so that the first that fits is the oldest one: that takes no longer with many outstanding. */

struct entry {
  uint64_t handle;
  const void *variable;
  struct entry *next[2], *previous[2]; /* in its buckets: by handle and variable, and by handle alone */
  int64_t size;
  uint32_t request;
  uint16_t comm;
  uint8_t event, persistent, active, cancelled;
  int32_t partner, tag;
  struct gw_record *post; /* that posted the receive: none of it is left if it is cancelled */
  struct exchange *exchange; /* of the event EXCHANGE */
};

struct bucket {
  struct entry *first, *last;
};

static struct bucket *buckets[2];
static size_t bucket_room, entry_count;
static struct entry *spare; /* entries that are free, by next[0] */
static uint32_t last_request;

static size_t spot(uint64_t handle, size_t room) { return (size_t)(handle * 0x9e3779b97f4a7c15u >> 20) & (room - 1); }

#define HANDLE(x) ((uint64_t)(uintptr_t)(x) + 1)

static struct bucket *bucket_of(int which, uint64_t handle, const void *variable) {
  uint64_t key = which ? handle : handle * 31 + (uint64_t)(uintptr_t)variable;
  return &buckets[which][spot(key, bucket_room)];
}

static void link_entry(struct entry *e, int which) {
  struct bucket *b = bucket_of(which, e->handle, e->variable);
  e->next[which] = NULL;
  e->previous[which] = b->last;
  if (b->last) b->last->next[which] = e;
  else b->first = e;
  b->last = e;
}

static void unlink_entry(struct entry *e, int which) {
  struct bucket *b = bucket_of(which, e->handle, e->variable);
  if (e->previous[which]) e->previous[which]->next[which] = e->next[which];
  else b->first = e->next[which];
  if (e->next[which]) e->next[which]->previous[which] = e->previous[which];
  else b->last = e->previous[which];
}

/* Double the buckets; entries of one bucket keep their order. */
static void grow_buckets(void) {
  size_t before = bucket_room;
  struct bucket *old[2] = {buckets[0], buckets[1]};
  bucket_room = before ? 2 * before : 256;
  for (int which = 0; which < 2; which++) {
    buckets[which] = calloc(bucket_room, sizeof *buckets[which]);
    for (size_t i = 0; i < before; i++)
      for (struct entry *e = old[which][i].first, *next; e; e = next) {
        next = e->next[which];
        link_entry(e, which);
      }
    free(old[which]);
  }
}

static struct entry *entry_of(uint64_t handle, const void *variable) {
  if (!bucket_room) return NULL;
  for (struct entry *e = bucket_of(0, handle, variable)->first; e; e = e->next[0])
    if (e->handle == handle && e->variable == variable) return e;
  for (struct entry *e = bucket_of(1, handle, variable)->first; e; e = e->next[1])
    if (e->handle == handle) return e;
  return NULL;
}

static void remove_entry(struct entry *e) {
  unlink_entry(e, 0);
  unlink_entry(e, 1);
  e->next[0] = spare;
  spare = e;
  entry_count--;
}

/* Remember a request that was just made; returns its number. */
static uint32_t add_request(const MPI_Request *request, unsigned event, int comm, int partner, int tag, int64_t size,
                            int persistent) {
  hold();
  if (entry_count >= bucket_room) grow_buckets();
  struct entry *e = spare;
  if (e) spare = e->next[0];
  else e = malloc(sizeof *e);
  *e = (struct entry){.handle = HANDLE(*request), .variable = request, .size = size, .request = ++last_request,
                      .comm = (uint16_t)comm, .event = (uint8_t)event, .persistent = (uint8_t)persistent,
                      .active = !persistent, .partner = partner, .tag = tag};
  link_entry(e, 0);
  link_entry(e, 1);
  entry_count++;
  uint32_t number = e->request;
  let_go();
  return number;
}
