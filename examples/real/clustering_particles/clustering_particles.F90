! Particles that drift to one side: one rank has more and more of them.
program clustering_particles
  use mpi
  implicit none
  integer, parameter :: total = 30000, steps = 300
  double precision :: x(total), sum_x, own_x
  integer :: rank, ranks, ierr, step, i, first, last
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  do step = 1, steps
#ifdef REPAIRED
     first = 1 + rank * total / ranks
     last = (rank + 1) * total / ranks
#else
     ! the border of the domain stays where it is, and particles cross it
     i = total / ranks - (total / ranks) * 7 * step / (10 * steps)
     first = merge(1, i + 1, rank == 0)
     last = merge(i, total, rank == 0)
#endif
     own_x = 0.0d0
     call push(first, last, own_x)
     call MPI_Allreduce(own_x, sum_x, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end do
  if (rank == 0) print '(a,f14.6)', 'sum ', sum_x
  call MPI_Finalize(ierr)
contains
  subroutine push(first, last, sum)
    integer, intent(in) :: first, last
    double precision, intent(inout) :: sum
    integer :: k, sub
    do k = first, last
       x(k) = dble(k) / total
       do sub = 1, 40
          x(k) = x(k) + 1.0d-3 * (0.7d0 - x(k)) / (1.0d0 + x(k) * x(k))
       end do
       sum = sum + x(k)
    end do
  end subroutine push
end program clustering_particles
