! Product of two matrices. The inner loop runs over the second index of a, a column apart each time; repaired, the
! inner loop runs over the first index.
program loop_order
  implicit none
  integer, parameter :: n = 700
  double precision, allocatable :: a(:, :), b(:, :), c(:, :)
  integer :: i, j
  allocate (a(n, n), b(n, n), c(n, n))
  do j = 1, n
    do i = 1, n
      a(i, j) = 1d0/(i + j)
      b(i, j) = dble(mod(i*j, 17))
    end do
  end do
  c = 0d0
  call multiply(n, a, b, c)
  print '(es20.12)', c(n/2, n/3)
contains
  subroutine multiply(m, x, y, z)
    integer, intent(in) :: m
    double precision, intent(in) :: x(m, m), y(m, m)
    double precision, intent(inout) :: z(m, m)
    integer :: row, column, k
#ifdef REPAIRED
    do column = 1, m
      do k = 1, m
        do row = 1, m
          z(row, column) = z(row, column) + x(row, k)*y(k, column)
        end do
      end do
    end do
#else
    do row = 1, m
      do column = 1, m
        do k = 1, m
          z(row, column) = z(row, column) + x(row, k)*y(k, column)
        end do
      end do
    end do
#endif
  end subroutine multiply
end program loop_order
