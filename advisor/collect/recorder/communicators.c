/* Communicators by number, part of mpi.c: which ranks of the world are their members. */

/* A communicator's number, which the process file explains; 0 is none. */
struct known {
  MPI_Comm comm;
  uint16_t number;
  uint8_t used;
  int size, rank;
};
static struct known *comms;
static size_t comm_room, comm_filled; /* slots, and those that are or were taken since the last rebuild */
static uint16_t last_comm;
static unsigned comm_age; /* how many communicators are gone: their handles may be given to others */
static __thread struct known recent __attribute__((tls_model("initial-exec")));
static __thread unsigned recent_age __attribute__((tls_model("initial-exec")));

static void tell_members(const char *key, int number, MPI_Group group) {
  int size = 0;
  PMPI(MPI_Group_size)(group, &size);
  int *own = malloc(sizeof *own * 2 * (size_t)(size + 1)), *ranks = own + size + 1;
  for (int i = 0; i < size; i++) own[i] = i;
  PMPI(MPI_Group_translate_ranks)(group, size, own, world_group, ranks);
  char *text = malloc(12 * (size_t)size + 16);
  size_t at = 0;
  int straight = 1;
  text[0] = 0;
  for (int i = 0; i < size; i++) straight &= ranks[i] == ranks[0] + i;
  if (straight && size > 2) gw_tell("%s %d %d-%d", key, number, ranks[0], ranks[size - 1]);
  else {
    for (int i = 0; i < size; i++) { /* long lists take several lines */
      if (ranks[i] < 0) ranks[i] = -1;
      at += (size_t)__builtin_sprintf(text + at, " %d", ranks[i]);
      if (at > 4000 || i + 1 == size) {
        gw_tell("%s %d%s", key, number, text);
        at = 0;
        text[0] = 0;
      }
    }
  }
  free(text);
  free(own);
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

/* Number a communicator that has the members of `like`, which may be itself. */
static struct known register_comm(MPI_Comm comm, MPI_Comm like) {
  struct known k = {.comm = comm, .used = 1};
  int between = 0;
  MPI_Group group;
  PMPI(MPI_Comm_test_inter)(like, &between);
  PMPI(MPI_Comm_rank)(like, &k.rank);
  if (PMPI(MPI_Comm_group)(like, &group)) return k;
  PMPI(MPI_Group_size)(group, &k.size);
  k.number = last_comm < UINT16_MAX ? ++last_comm : 0;
  if (k.number) tell_members(between ? "intercommunicator" : "communicator", k.number, group);
  PMPI(MPI_Group_free)(&group);
  if (between && k.number && !PMPI(MPI_Comm_remote_group)(like, &group)) {
    tell_members("remote", k.number, group);
    PMPI(MPI_Group_free)(&group);
  }
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

static void new_comm(struct gw_record *record, const MPI_Comm *comm) {
  if (record && *comm != MPI_COMM_NULL) comm_of(*comm);
}

/* MPI_Comm_idup: its communicator is complete later, but its place among those with the same members is here. */
static void copied_comm(struct gw_record *record, MPI_Comm from, const MPI_Comm *comm) {
  if (!record || *comm == MPI_COMM_NULL) return;
  hold();
  register_comm(*comm, from);
  let_go();
}

/* A communicator is about to be freed, and its handle to be another's. */
static void drop_comm(MPI_Comm comm) {
  hold();
  struct known *found = find_comm(comm);
  if (found) found->used = 2;
  __atomic_store_n(&comm_age, comm_age + 1, __ATOMIC_RELEASE);
  let_go();
}
