! Alternating directions: sweeps along rows, then along columns, each with a recurrence.
program adi
  implicit none
  integer, parameter :: n = 180
  real(8), save :: x(n, n), a(n, n), b(n, n)
  integer :: i, j, t
  !$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      x(i, j) = i + j
      a(i, j) = 0.1d0
      b(i, j) = 2.0d0
    end do
  end do
  do t = 1, 2
    !$omp parallel do private(i)
    do j = 1, n
      do i = 2, n
        x(i, j) = x(i, j) - x(i - 1, j) * a(i, j) / b(i - 1, j)
      end do
    end do
    !$omp parallel do private(j)
    do i = 1, n
      do j = 2, n
        x(i, j) = x(i, j) - x(i, j - 1) * a(i, j) / b(i, j - 1)
      end do
    end do
  end do
  print *, x(n / 2, n / 2)
end program
