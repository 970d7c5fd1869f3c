/* Collectives among neighbours, and windows, part of mpi.c: who exchanges what with whom, and who meets whom.

   Nobody waits for all in an exchange among neighbours, only for those that it receives from, so that it is written as what
   it consists of: a message to each target and one from each source, under a tag that programs can't use. */

#define NEIGHBOUR_TAG (-7)

/* The messages of one exchange, those that are sent first. */
struct exchange {
  int sent, count;
  uint16_t comm;
  uint32_t request; /* of the first; the others follow */
  struct {
    int partner;
    int64_t size;
  } message[];
};

/* What each neighbour gets or sends: `count` everybody, or `counts`, which are `wide` (MPI_Count); of `type` or `types`. */
struct part {
  int64_t count;
  const void *counts;
  int wide;
  MPI_Datatype type;
  const MPI_Datatype *types;
};

static int64_t bytes_of_part(const struct part *part, int i) {
  int64_t count = part->count;
  if (part->counts) count = part->wide ? ((const MPI_Count *)part->counts)[i] : ((const int *)part->counts)[i];
  return bytes(count, part->types ? part->types[i] : part->type);
}

static void resize_neighbours(struct neighbours *n, int sources, int targets) {
  n->sources = sources;
  n->targets = targets;
  n->source = calloc((size_t)(sources + targets) + 1, sizeof *n->source);
  n->target = n->source + sources;
}

static void find_grid_neighbours(struct neighbours *n, MPI_Comm comm) {
  int dimensions = 0;
  PMPI(MPI_Cartdim_get)(comm, &dimensions);
  resize_neighbours(n, 2 * dimensions, 2 * dimensions);
  for (int i = 0; i < dimensions; i++) PMPI(MPI_Cart_shift)(comm, i, 1, &n->source[2 * i], &n->source[2 * i + 1]);
  memcpy(n->target, n->source, sizeof *n->source * 2 * (size_t)dimensions);
}

static struct neighbours *find_neighbours(MPI_Comm comm, int rank) {
  struct neighbours *n = calloc(1, sizeof *n);
  int topology = MPI_UNDEFINED, sources = 0, targets = 0, weighted = 0;
  PMPI(MPI_Topo_test)(comm, &topology);
  if (topology == MPI_CART) find_grid_neighbours(n, comm);
  else if (topology == MPI_GRAPH) {
    PMPI(MPI_Graph_neighbors_count)(comm, rank, &sources);
    resize_neighbours(n, sources, sources);
    PMPI(MPI_Graph_neighbors)(comm, rank, sources, n->source);
    memcpy(n->target, n->source, sizeof *n->source * (size_t)sources);
  } else if (topology == MPI_DIST_GRAPH) {
    PMPI(MPI_Dist_graph_neighbors_count)(comm, &sources, &targets, &weighted);
    resize_neighbours(n, sources, targets);
    int *weights = calloc((size_t)(sources + targets) + 1, sizeof *weights);
    PMPI(MPI_Dist_graph_neighbors)(comm, sources, n->source, weights, targets, n->target, weights + sources);
    free(weights);
  }
  return n;
}

static const struct neighbours *neighbours_of(MPI_Comm comm) {
  static const struct neighbours nobody;
  comm_of(comm);
  hold();
  struct known *known = find_comm(comm);
  if (known && !known->around) known->around = find_neighbours(comm, known->rank);
  const struct neighbours *found = known ? known->around : &nobody;
  let_go();
  return found;
}

/* The next message of a call: the first one stands in the call's own record. */
static void tell_message(struct gw_record *r, unsigned event, const struct exchange *x, int i) {
  int named = event == GW_ISEND || event == GW_IRECV;
  fill(r->event ? gw_note(GW_MESSAGE, 0) : r, event, x->comm, named ? x->message[i].partner : GW_NOBODY,
       named ? NEIGHBOUR_TAG : 0, x->message[i].size, x->request + (uint32_t)i);
}

/* Begin an exchange; what is returned is for end_exchange, which frees it. */
static struct exchange *begin_exchange(struct gw_record *r, MPI_Comm comm, struct part out, struct part in) {
  if (!r) return NULL;
  const struct neighbours *around = neighbours_of(comm);
  struct exchange *x = malloc(sizeof *x + sizeof x->message[0] * (size_t)(around->targets + around->sources));
  if (!x) return NULL;
  x->comm = COMM(comm);
  x->count = x->sent = 0;
  for (int i = 0; i < around->targets; i++)
    if (around->target[i] != MPI_PROC_NULL) {
      x->message[x->count].partner = around->target[i];
      x->message[x->count++].size = bytes_of_part(&out, i);
    }
  x->sent = x->count;
  for (int i = 0; i < around->sources; i++)
    if (around->source[i] != MPI_PROC_NULL) {
      x->message[x->count].partner = around->source[i];
      x->message[x->count++].size = bytes_of_part(&in, i);
    }
  hold();
  x->request = last_request + 1;
  last_request += (uint32_t)x->count;
  let_go();
  for (int i = 0; i < x->count; i++) tell_message(r, i < x->sent ? GW_ISEND : GW_IRECV_POST, x, i);
  return x;
}

static void end_exchange(struct gw_record *r, struct exchange *x) {
  if (!x) return;
  for (int i = 0; r && i < x->count; i++) tell_message(r, i < x->sent ? GW_ISEND_DONE : GW_IRECV, x, i);
  free(x);
}

static void start_exchange(struct gw_record *r, const MPI_Request *request, MPI_Comm comm, struct part out,
                           struct part in) {
  if (!r || *request == no_request) return;
  struct exchange *x = begin_exchange(r, comm, out, in);
  add_request(request, EXCHANGE, COMM(comm), 0, 0, 0, 0);
  hold();
  struct entry *e = entry_of(HANDLE(*request), request);
  if (e) e->exchange = x;
  let_go();
}

/* Windows by number of their communicator, which a program can't ask for. */
static struct {
  MPI_Win window;
  uint16_t comm;
} windows[256];
#define WINDOWS (sizeof windows / sizeof *windows)

/* Where a window is, or the first free place if it is not there. */
static size_t place_of_window(MPI_Win window) {
  size_t place = WINDOWS;
  for (size_t i = 0; i < WINDOWS; i++) {
    if (windows[i].comm && windows[i].window == window) return i;
    if (!windows[i].comm && place == WINDOWS) place = i;
  }
  return place;
}

static void new_window(struct gw_record *r, MPI_Win window, MPI_Comm comm) {
  uint16_t number = r ? COMM(comm) : 0;
  hold();
  size_t place = place_of_window(window);
  if (place < WINDOWS) {
    windows[place].window = window;
    windows[place].comm = number;
  }
  let_go();
}

static uint16_t comm_of_window(MPI_Win window) {
  size_t place = place_of_window(window);
  return place < WINDOWS ? windows[place].comm : 0;
}

/* All ranks of a window are in a call. */
static void meet_at_window(struct gw_record *r, MPI_Win window) {
  uint16_t comm = r ? comm_of_window(window) : 0;
  if (comm) fill(r, GW_COLLECTIVE, comm, GW_NOBODY, 0, 0, 0);
}

static void one_sided(struct gw_record *r, MPI_Win window, int target, int64_t size) {
  if (r && target != MPI_PROC_NULL) fill(r, GW_ONE_SIDED, comm_of_window(window), target, 0, size, 0);
}
