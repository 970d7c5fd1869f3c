! Matrix multiplication, the order of loops that Fortran likes.
program matmul_loops
  implicit none
  integer :: n, i, j, k
  character(len=20) :: word
  real(8), allocatable :: a(:,:), b(:,:), c(:,:)
  n = 40
  if (command_argument_count() > 0) then
    call get_command_argument(1, word)
    read (word, *) n
  end if
  allocate (a(n,n), b(n,n), c(n,n))
  do j = 1, n
    do i = 1, n
      a(i,j) = mod(i, 7)
      b(i,j) = mod(j, 5)
      c(i,j) = 0d0
    end do
  end do
  do j = 1, n
    do k = 1, n
      do i = 1, n
        c(i,j) = c(i,j) + a(i,k) * b(k,j)
      end do
    end do
  end do
  if (c(n,n) < 0d0) stop 1
  print *, c(n,n)
end program
