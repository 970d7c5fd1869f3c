! An LU factorization by panels, the last one narrower: ./panels N
program panels
  implicit none
  integer, parameter :: width = 5
  integer :: n, k, first, last, i, j
  real(8), allocatable :: a(:, :)
  character(len=16) :: word
  call get_command_argument(1, word)
  read (word, *) n
  allocate (a(n, n))
  do j = 1, n
    do i = 1, n
      a(i, j) = 1.0d0/(i + j)
      if (i == j) a(i, j) = n
    end do
  end do
  do first = 1, n, width
    last = min(first + width - 1, n)
    do k = first, last
      do i = k + 1, n
        a(i, k) = a(i, k)/a(k, k)
      end do
      do j = k + 1, last
        do i = k + 1, n
          a(i, j) = a(i, j) - a(i, k)*a(k, j)
        end do
      end do
    end do
    do j = last + 1, n
      do k = first, last
        do i = k + 1, n
          a(i, j) = a(i, j) - a(i, k)*a(k, j)
        end do
      end do
    end do
  end do
end program
