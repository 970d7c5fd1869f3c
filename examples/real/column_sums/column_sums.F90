! Weighted sums over a field that is stored by columns and walked by rows.
program column_sums
  implicit none
  integer, parameter :: n = 3000, passes = 12
  double precision, allocatable :: a(:, :), w(:)
  double precision :: total
  integer :: pass
  allocate (a(n, n), w(n))
  a = 1.0d0
  w = 0.5d0
  total = 0.0d0
  do pass = 1, passes
     call add_rows(a, w)
     total = total + a(n, 1)
  end do
  print '(a,f14.4)', 'total ', total
contains
  subroutine add_rows(a, w)
    double precision, intent(inout) :: a(:, :), w(:)
    integer :: i, j
#ifdef REPAIRED
    do j = 1, n
       do i = 1, n
          a(i, j) = 0.99d0 * a(i, j) + w(i)
       end do
    end do
#else
    do i = 1, n
       do j = 1, n
          a(i, j) = 0.99d0 * a(i, j) + w(i)
       end do
    end do
#endif
  end subroutine add_rows
end program column_sums
