/* Communicators by number, part of mpi.c: which ranks of the world are their members. */

/* A communicator's number, which the process file explains; 0 is none. `members` tells member lists apart. */
struct neighbours {
  int sources, targets, *source, *target; /* the ranks that a rank receives from in a topology, and those it sends to */
};
struct known {
  MPI_Comm comm;
  uint64_t members;
  uint16_t number;
  uint8_t used;
  int size, rank;
  struct neighbours *around; /* once they were asked for */
};
static struct known *comms;
static size_t comm_room, comm_filled; /* slots, and those that are or were taken since the last rebuild */
static uint16_t last_comm;
static unsigned comm_age; /* how many communicators are gone: their handles may be given to others */
static __thread struct known recent __attribute__((tls_model("initial-exec")));
static __thread unsigned recent_age __attribute__((tls_model("initial-exec")));

/* Numbers of communicators that are gone. The next one with the same members gets the latest of them: all members free and
   create in one order, so that they agree on who follows whom, and a program may create any number one after the other. */
struct spare {
  uint64_t members;
  uint16_t number;
};
static struct spare *spares;
static size_t spare_count, spare_room;

/* The ranks of the world that a group consists of, -1 for others, to be freed. */
static int *ranks_of(MPI_Group group, int *size) {
  PMPI(MPI_Group_size)(group, size);
  int *own = malloc(sizeof *own * (size_t)(*size + 1)), *ranks = malloc(sizeof *ranks * (size_t)(*size + 1));
  for (int i = 0; i < *size; i++) own[i] = i;
  PMPI(MPI_Group_translate_ranks)(group, *size, own, world_group, ranks);
  for (int i = 0; i < *size; i++)
    if (ranks[i] < 0) ranks[i] = -1;
  free(own);
  return ranks;
}

static uint64_t hash_ranks(uint64_t hash, const int *ranks, int size) {
  for (int i = 0; i < size; i++) hash = (hash ^ (uint64_t)(uint32_t)ranks[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
  return (hash ^ (uint64_t)size) * 0xbf58476d1ce4e5b9u;
}

static void tell_members(const char *key, int number, const int *ranks, int size) {
  char text[4096 + 16];
  size_t at = 0;
  int straight = 1;
  text[0] = 0;
  for (int i = 0; i < size; i++) straight &= ranks[i] == ranks[0] + i;
  if (straight && size > 2) {
    gw_tell("%s %d %d-%d", key, number, ranks[0], ranks[size - 1]);
    return;
  }
  for (int i = 0; i < size; i++) { /* long lists take several lines */
    at += (size_t)__builtin_sprintf(text + at, " %d", ranks[i]);
    if (at > 4000 || i + 1 == size) {
      gw_tell("%s %d%s", key, number, text);
      at = 0;
      text[0] = 0;
    }
  }
}

/* The number of a spare with these members, 0 if there is none. */
static uint16_t take_spare(uint64_t members) {
  for (size_t i = spare_count; i-- > 0;)
    if (spares[i].members == members) {
      uint16_t number = spares[i].number;
      __builtin_memmove(&spares[i], &spares[i + 1], (--spare_count - i) * sizeof *spares);
      return number;
    }
  return 0;
}

static void put_spare(const struct known *k) {
  if (!k->number) return;
  if (spare_count == spare_room) {
    size_t room = spare_room ? 2 * spare_room : 64;
    struct spare *grown = realloc(spares, room * sizeof *spares);
    if (!grown) return;
    spares = grown;
    spare_room = room;
  }
  spares[spare_count++] = (struct spare){k->members, k->number};
}

/* The slot of a communicator, NULL if it has none. */
static struct known *find_comm(MPI_Comm comm) {
  if (!comm_room) return NULL;
  for (size_t at = spot(HANDLE(comm), comm_room); comms[at].used; at = (at + 1) & (comm_room - 1))
    if (comms[at].used == 1 && comms[at].comm == comm) return &comms[at];
  return NULL;
}

static void put_comm(const struct known *k) {
  size_t at = spot(HANDLE(k->comm), comm_room);
  while (comms[at].used == 1) at = (at + 1) & (comm_room - 1);
  if (!comms[at].used) comm_filled++;
  comms[at] = *k;
}

/* Make room for one more, without the slots of those that are gone: a search ends at a free slot. */
static void rebuild_comms(void) {
  struct known *old = comms;
  size_t before = comm_room, live = 0;
  for (size_t i = 0; i < before; i++) live += old[i].used == 1;
  comm_room = 64;
  while (comm_room < 4 * (live + 1)) comm_room *= 2;
  comms = calloc(comm_room, sizeof *comms);
  comm_filled = 0;
  for (size_t i = 0; i < before; i++)
    if (old[i].used == 1) put_comm(&old[i]);
  free(old);
}

/* A handle stands for no communicator any more, or for another one. */
static void forget_comm(MPI_Comm comm) {
  struct known *found = find_comm(comm);
  if (!found) return;
  found->used = 2;
  put_spare(found);
  if (found->around) free(found->around->source);
  free(found->around);
  found->around = NULL;
  __atomic_store_n(&comm_age, comm_age + 1, __ATOMIC_RELEASE);
}

/* Number a communicator that has the members of `like`, which may be itself. */
static struct known register_comm(MPI_Comm comm, MPI_Comm like) {
  struct known k = {.comm = comm, .used = 1};
  int between = 0, others = 0, *ranks, *remote = NULL;
  MPI_Group group;
  forget_comm(comm); /* nobody may have seen how the one before was freed */
  PMPI(MPI_Comm_test_inter)(like, &between);
  PMPI(MPI_Comm_rank)(like, &k.rank);
  if (PMPI(MPI_Comm_group)(like, &group)) return k;
  ranks = ranks_of(group, &k.size);
  PMPI(MPI_Group_free)(&group);
  k.members = hash_ranks((uint64_t)between, ranks, k.size);
  if (between && !PMPI(MPI_Comm_remote_group)(like, &group)) {
    remote = ranks_of(group, &others);
    PMPI(MPI_Group_free)(&group);
    k.members = hash_ranks(k.members, remote, others);
  }
  k.number = take_spare(k.members);
  if (!k.number && last_comm < UINT16_MAX) {
    k.number = ++last_comm;
    tell_members(between ? "intercommunicator" : "communicator", k.number, ranks, k.size);
    if (remote) tell_members("remote", k.number, remote, others);
  }
  free(ranks);
  free(remote);
  if (comm_filled * 2 >= comm_room) rebuild_comms();
  put_comm(&k);
  return k;
}

static struct known *comm_of(MPI_Comm comm) {
  unsigned age = __atomic_load_n(&comm_age, __ATOMIC_ACQUIRE);
  if (recent.used && recent.comm == comm && recent_age == age) return &recent;
  recent_age = age;
  if (comm == MPI_COMM_NULL) {
    recent = (struct known){.comm = comm, .used = 1};
    return &recent;
  }
  hold();
  const struct known *found = find_comm(comm);
  recent = found ? *found : register_comm(comm, comm);
  let_go();
  return &recent;
}

#define COMM(comm) (comm_of(comm)->number)

/* A call has made a communicator with the members of `like`. That of MPI_Comm_idup is complete later, but its place among
   those with the same members is here. */
static void copied_comm(struct gw_record *record, MPI_Comm like, const MPI_Comm *comm) {
  if (*comm == MPI_COMM_NULL) return;
  hold();
  if (record) register_comm(*comm, like);
  else forget_comm(*comm);
  let_go();
}

static void new_comm(struct gw_record *record, const MPI_Comm *comm) { copied_comm(record, *comm, comm); }

/* A communicator is about to be freed, and its handle to be another's. */
static void drop_comm(MPI_Comm comm) {
  hold();
  forget_comm(comm);
  let_go();
}
