! Seven-point stencil in three dimensions on arrays of a module.
module grid
  implicit none
  integer, parameter :: n = 44
  real(8) :: u(n, n, n), v(n, n, n)
end module

program stencil3d
  use grid
  implicit none
  integer :: i, j, k, t
  !$omp parallel do private(i, j)
  do k = 1, n
    do j = 1, n
      do i = 1, n
        u(i, j, k) = i + j + k
        v(i, j, k) = 0
      end do
    end do
  end do
  do t = 1, 3
    !$omp parallel do private(i, j)
    do k = 2, n - 1
      do j = 2, n - 1
        do i = 2, n - 1
          v(i, j, k) = u(i, j, k) + 0.1d0 * (u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) + u(i, j + 1, k) &
                     + u(i, j, k - 1) + u(i, j, k + 1) - 6 * u(i, j, k))
        end do
      end do
    end do
    !$omp parallel do private(i, j)
    do k = 2, n - 1
      do j = 2, n - 1
        do i = 2, n - 1
          u(i, j, k) = v(i, j, k)
        end do
      end do
    end do
  end do
  print *, u(n / 2, n / 2, n / 2)
end program
