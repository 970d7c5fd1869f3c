! A ring of messages by the old interface of Fortran.
program ring
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, ierr, i, request(2), statuses(MPI_STATUS_SIZE, 2), in(1000), out(1000)
  real(8) :: own, total
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  out = rank
  do i = 1, 100
    own = heat(20000)
    call MPI_Irecv(in, 1000, MPI_INTEGER, modulo(rank - 1, ranks), 1, MPI_COMM_WORLD, request(1), ierr)
    call MPI_Isend(out, 1000, MPI_INTEGER, modulo(rank + 1, ranks), 1, MPI_COMM_WORLD, request(2), ierr)
    call MPI_Waitall(2, request, statuses, ierr)
    call MPI_Sendrecv(out, 10, MPI_INTEGER, modulo(rank + 1, ranks), 2, in, 10, MPI_INTEGER, &
                      MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Allreduce(own, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end do
  if (rank == 0) print *, total
  call MPI_Finalize(ierr)
contains
  real(8) function heat(n)
    integer, intent(in) :: n
    integer :: k
    heat = 0
    do k = 1, n
      heat = heat + sqrt(dble(k))
    end do
  end function
end program
