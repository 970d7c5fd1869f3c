/* Communicators by number, part of mpi.c: which ranks of the world are their members. */

/* A communicator's number, which the process file explains; 0 is none. */
struct known {
  MPI_Comm comm;
  uint16_t number;
  uint8_t used;
  int size, rank;
};
static struct known *comms;
static size_t comm_room, comm_count;
static uint16_t last_comm;
static __thread struct known recent __attribute__((tls_model("initial-exec")));

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

static struct known register_comm(MPI_Comm comm) {
  struct known k = {.comm = comm, .used = 1};
  int between = 0;
  MPI_Group group;
  PMPI(MPI_Comm_test_inter)(comm, &between);
  PMPI(MPI_Comm_rank)(comm, &k.rank);
  if (PMPI(MPI_Comm_group)(comm, &group)) return k;
  hold();
  k.number = last_comm < UINT16_MAX ? ++last_comm : 0;
  PMPI(MPI_Group_size)(group, &k.size);
  if (k.number) tell_members(between ? "intercommunicator" : "communicator", k.number, group);
  PMPI(MPI_Group_free)(&group);
  if (between && k.number && !PMPI(MPI_Comm_remote_group)(comm, &group)) {
    tell_members("remote", k.number, group);
    PMPI(MPI_Group_free)(&group);
  }
  if (comm_count * 2 >= comm_room) {
    struct known *old = comms;
    size_t before = comm_room;
    comm_room = comm_room ? comm_room * 2 : 64;
    comms = calloc(comm_room, sizeof *comms);
    for (size_t i = 0; i < before; i++)
      if (old[i].used == 1) {
        size_t at = spot(HANDLE(old[i].comm), comm_room);
        while (comms[at].used) at = (at + 1) & (comm_room - 1);
        comms[at] = old[i];
      }
    free(old);
  }
  size_t at = spot(HANDLE(comm), comm_room);
  while (comms[at].used == 1) at = (at + 1) & (comm_room - 1);
  comms[at] = k;
  comm_count++;
  let_go();
  return k;
}

static struct known *comm_of(MPI_Comm comm) {
  if (recent.used && recent.comm == comm) return &recent;
  if (comm == MPI_COMM_NULL) {
    recent = (struct known){.comm = comm, .used = 1};
    return &recent;
  }
  hold();
  for (size_t at = comm_room ? spot(HANDLE(comm), comm_room) : 0; comm_room && comms[at].used;
       at = (at + 1) & (comm_room - 1))
    if (comms[at].used == 1 && comms[at].comm == comm) {
      recent = comms[at];
      let_go();
      return &recent;
    }
  let_go();
  recent = register_comm(comm);
  return &recent;
}

#define COMM(comm) (comm_of(comm)->number)

static void new_comm(struct gw_record *record, const MPI_Comm *comm) {
  if (record && *comm != MPI_COMM_NULL) comm_of(*comm);
}

static void drop_comm(MPI_Comm comm) {
  recent.used = 0;
  hold();
  for (size_t at = comm_room ? spot(HANDLE(comm), comm_room) : 0; comm_room && comms[at].used;
       at = (at + 1) & (comm_room - 1))
    if (comms[at].used == 1 && comms[at].comm == comm) {
      comms[at].used = 2;
      comm_count--;
      break;
    }
  let_go();
}
