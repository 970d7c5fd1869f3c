! Transposition of a matrix: one array in steps of a column.
program transpose_matrix
  implicit none
  integer :: n, i, j, t
  real(8), allocatable :: a(:, :), b(:, :)
  n = 300
  allocate(a(n, n), b(n, n))
  !$omp parallel do private(i)
  do j = 1, n
    do i = 1, n
      a(i, j) = i + 2 * j
    end do
  end do
  do t = 1, 3
    !$omp parallel do private(i)
    do j = 1, n
      do i = 1, n
        b(i, j) = a(j, i)
      end do
    end do
  end do
  print *, b(2, 3)
end program
