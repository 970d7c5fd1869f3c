! A stencil on slabs with an exchange of halos and a sum over all ranks: ./halo N STEPS
program halo
  use mpi
  implicit none
  integer :: n, steps, rank, ranks, up, down, rows, t, i, j, error
  real(8), allocatable :: u(:, :), v(:, :)
  real(8) :: change, total
  character(len=16) :: word
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  if (rank == 0) then
    call get_command_argument(1, word)
    read (word, *) n
    call get_command_argument(2, word)
    read (word, *) steps
  end if
  call MPI_Bcast(n, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  call MPI_Bcast(steps, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  rows = n/ranks
  if (rank < mod(n, ranks)) rows = rows + 1
  up = rank + 1
  down = rank - 1
  if (up == ranks) up = MPI_PROC_NULL
  if (down < 0) down = MPI_PROC_NULL
  allocate (u(n, 0:rows + 1), v(n, 0:rows + 1))
  u = 1.0d0
  v = 0.0d0
  do t = 1, steps
    call MPI_Sendrecv(u(1, rows), n, MPI_DOUBLE_PRECISION, up, 1, u(1, 0), n, MPI_DOUBLE_PRECISION, down, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_Sendrecv(u(1, 1), n, MPI_DOUBLE_PRECISION, down, 2, u(1, rows + 1), n, MPI_DOUBLE_PRECISION, up, 2, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    change = 0.0d0
    do j = 1, rows
      do i = 2, n - 1
        v(i, j) = 0.25d0*(u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1))
        change = change + abs(v(i, j) - u(i, j))
      end do
    end do
    do j = 1, rows
      do i = 2, n - 1
        u(i, j) = v(i, j)
      end do
    end do
    if (mod(t, 2) == 0) then
      call MPI_Allreduce(change, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    end if
  end do
  call MPI_Finalize(error)
end program
