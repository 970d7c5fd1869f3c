! A tridiagonal relaxation that starts its threads for each short line.
program tiny_regions
  implicit none
  integer, parameter :: n = 400, lines = 300, sweeps = 900
  double precision :: a(n, lines)
  integer :: sweep, line, i
  a = 1.0d0
#ifdef REPAIRED
  !$omp parallel private(sweep, line, i)
  do sweep = 1, sweeps
     do line = 2, lines
        !$omp do
        do i = 1, n
           a(i, line) = 0.5d0 * a(i, line) + 0.5d0 * a(i, line - 1) / (1.0d0 + a(i, line))
        end do
        !$omp end do nowait
     end do
  end do
  !$omp end parallel
#else
  do sweep = 1, sweeps
     do line = 2, lines
        !$omp parallel do
        do i = 1, n
           a(i, line) = 0.5d0 * a(i, line) + 0.5d0 * a(i, line - 1) / (1.0d0 + a(i, line))
        end do
        !$omp end parallel do
     end do
  end do
#endif
  print '(a,f12.6)', 'corner ', a(n, lines)
end program tiny_regions
