! Advection with an output of single numbers: each write flushes.
program record_output
  use mpi
  implicit none
  integer, parameter :: n = 40000, steps = 60
  double precision :: u(0:n + 1), v(0:n + 1)
  integer :: rank, ierr, step, i, sub
  character(len=20) :: name
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  write (name, '(a,i0,a)') 'field-', rank, '.bin'
  open (11, file=name, access='stream', form='unformatted', status='replace')
  do i = 0, n + 1
     u(i) = sin(6.2831853d0 * i / n)
  end do
  do step = 1, steps
     do sub = 1, 60
        call move(u, v)
        u(0) = u(n)
        u(n + 1) = u(1)
     end do
#ifdef REPAIRED
     write (11) u(1:n:20)
#else
     do i = 1, n, 20
        write (11) u(i)
        flush (11)
     end do
#endif
  end do
  close (11)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
contains
  subroutine move(from, to)
    double precision, intent(inout) :: from(0:n + 1), to(0:n + 1)
    integer :: k
    do k = 1, n
       to(k) = from(k) - 0.3d0 * (from(k) - from(k - 1))
    end do
    from = to
  end subroutine move
end program record_output
