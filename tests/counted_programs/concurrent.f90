! Loops in any order, pure procedures, and a nest that OpenMP collapses: ./concurrent N
module f
  implicit none
contains
  pure function tri(k) result(s)
    integer, intent(in) :: k
    real(8) :: s
    integer :: i
    s = 0
    do i = 1, k
      s = s + 0.5d0 * i
    end do
  end function
  elemental subroutine twice(x)
    real(8), intent(inout) :: x
    x = 2d0 * x
  end subroutine
end module
program conc
  use f
  implicit none
  integer :: n, i, j
  real(8), allocatable :: a(:,:), b(:)
  character(20) :: w
  call getarg(1, w); read(w,*) n
  allocate(a(n,n), b(n))
  do concurrent (j = 1:n, i = 1:n)
    a(i,j) = 1.0d0 / (i + j)
  end do
  do concurrent (i = 1:n)
    b(i) = a(i, i) * 2d0
  end do
  do i = 1, n
    b(i) = b(i) + tri(i)
    call twice(b(i))
  end do
  !$omp parallel do collapse(2)
  do i = 2, n
    do j = 2, n
      a(j, i) = a(j, i) * 0.5d0
    end do
  end do
  print *, sum(b), sum(a)
end program
