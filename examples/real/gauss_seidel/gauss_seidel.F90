! Gauss-Seidel down the columns of a field that is cut into blocks of rows: each rank needs the border of the one above
! before it begins, for the whole width at once.
program gauss_seidel
  use mpi
  implicit none
  integer, parameter :: rows = 800, cols = 3200, sweeps = 90
#ifdef REPAIRED
  integer, parameter :: width = 160
#else
  integer, parameter :: width = cols
#endif
  double precision, allocatable :: u(:, :)
  double precision :: own_sum, total
  integer :: rank, ranks, ierr, sweep, first, own, status(MPI_STATUS_SIZE)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  own = rows / ranks
  allocate (u(0:own + 1, 0:cols + 1))
  u = rank + 1.0d0
  do sweep = 1, sweeps
     do first = 1, cols, width
        if (rank > 0) call MPI_Recv(u(0, first:first + width - 1), width, MPI_DOUBLE_PRECISION, rank - 1, first, &
             MPI_COMM_WORLD, status, ierr)
        call relax_block(first)
        if (rank < ranks - 1) call MPI_Send(u(own, first:first + width - 1), width, MPI_DOUBLE_PRECISION, rank + 1, &
             first, MPI_COMM_WORLD, ierr)
     end do
     own_sum = u(own, cols)
     call MPI_Allreduce(own_sum, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
     if (total < 0.0d0) exit
  end do
  if (rank == 0) print '(a,f12.6)', 'corner ', u(own, cols)
  call MPI_Finalize(ierr)
contains
  subroutine relax_block(first)
    integer, intent(in) :: first
    integer :: i, j
    do j = first, first + width - 1
       do i = 1, own
          u(i, j) = 0.25d0 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1))
       end do
    end do
  end subroutine relax_block
end program gauss_seidel
