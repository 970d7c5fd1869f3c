"""A ring of messages by mpi4py."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
out, into = np.full(1000, rank), np.zeros(1000, dtype=int)
for _ in range(50):
    np.sort(np.random.default_rng(1).random(20000))
    requests = [world.Irecv(into, (rank - 1) % ranks, 1), world.Isend(out, (rank + 1) % ranks, 1)]
    MPI.Request.Waitall(requests)
    world.allreduce(1.0)
    world.sendrecv({"rank": rank}, (rank + 1) % ranks, 2, None, (rank - 1) % ranks, 2)
if rank == 0:
    print("done")
