! A solver with a reduction in each iteration, started on three times as many ranks as there are cores.
program six_ranks
  use mpi
  implicit none
  integer, parameter :: n = 60000, iterations = 12000
  double precision, allocatable :: x(:)
  double precision :: own, total
  integer :: rank, ranks, ierr, k, i, mine
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  mine = n / ranks
  allocate (x(mine))
  x = 1.0d0
  do k = 1, iterations
     own = 0.0d0
     do i = 1, mine
        x(i) = 0.5d0 * (x(i) + 3.0d0 / x(i)) + 1.0d-9 * i
        own = own + x(i)
     end do
     call MPI_Allreduce(own, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end do
  if (rank == 0) print '(a,f14.3)', 'sum ', total
  call MPI_Finalize(ierr)
end program six_ranks
