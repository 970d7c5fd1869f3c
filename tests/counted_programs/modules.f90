! Alternating directions over the arrays of a module, sections of them assigned: ./modules N STEPS
module grid
  implicit none
  integer, parameter :: dp = kind(1.0d0)
  integer :: nx, ny
  real(dp), allocatable :: u(:,:), a(:), b(:), c(:), d(:)
contains
  subroutine setup(mx, my)
    integer, intent(in) :: mx, my
    integer :: i, j
    nx = mx
    ny = my
    allocate(u(nx, ny), a(max(nx,ny)), b(max(nx,ny)), c(max(nx,ny)), d(max(nx,ny)))
    do j = 1, ny
      do i = 1, nx
        u(i,j) = real(i, dp) * j
      end do
    end do
  end subroutine
  subroutine thomas(n)
    integer, intent(in) :: n
    integer :: k
    real(dp) :: m
    do k = 2, n
      m = a(k) / b(k-1)
      b(k) = b(k) - m * c(k-1)
      d(k) = d(k) - m * d(k-1)
    end do
    d(n) = d(n) / b(n)
    do k = n - 1, 1, -1
      d(k) = (d(k) - c(k) * d(k+1)) / b(k)
    end do
  end subroutine
  subroutine sweep(along_x)
    logical, intent(in) :: along_x
    integer :: i, j
    if (along_x) then
      do j = 2, ny - 1
        a = -1.0_dp; b = 4.0_dp; c = -1.0_dp
        do i = 1, nx
          d(i) = u(i,j) + 0.1_dp * (u(i,j-1) + u(i,j+1))
        end do
        call thomas(nx)
        u(:, j) = d(1:nx)
      end do
    else
      do i = 2, nx - 1
        a = -1.0_dp; b = 4.0_dp; c = -1.0_dp
        do j = 1, ny
          d(j) = u(i,j) + 0.1_dp * (u(i-1,j) + u(i+1,j))
        end do
        call thomas(ny)
        u(i, :) = d(1:ny)
      end do
    end if
  end subroutine
end module
program main
  use grid
  implicit none
  integer :: n, steps, t
  character(len=32) :: arg
  call get_command_argument(1, arg); read(arg, *) n
  call get_command_argument(2, arg); read(arg, '(i10)') steps
  call setup(n, n + 3)
  do t = 1, steps
    call sweep(.true.)
    call sweep(.false.)
  end do
  print *, sum(u)
end program
