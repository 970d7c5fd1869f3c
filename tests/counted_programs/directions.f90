! Sweeps in three directions, each a recurrence: ./directions N STEPS
module grid
  implicit none
  integer :: n, steps
  real(8), allocatable :: u(:, :, :), a(:)
contains
  subroutine read_command()
    character(len=32) :: word
    call get_command_argument(1, word)
    read (word, *) n
    call get_command_argument(2, word)
    read (word, *) steps
  end subroutine

  subroutine sweep(direction)
    integer, intent(in) :: direction
    integer :: i, j, k
    if (direction == 1) then
      do k = 2, n - 1
        do j = 2, n - 1
          do i = 2, n - 1
            u(i, j, k) = u(i, j, k) - a(i)*u(i - 1, j, k)
          end do
        end do
      end do
    else if (direction == 2) then
      do k = 2, n - 1
        do j = 2, n - 1
          do i = 2, n - 1
            u(i, j, k) = u(i, j, k) - a(j)*u(i, j - 1, k)
          end do
        end do
      end do
    else
      do k = n - 1, 2, -1
        do j = k, n - 1
          do i = 2, j, 2
            if (i == k) cycle
            u(i, j, k) = u(i, j, k)/a(k)
          end do
        end do
      end do
    end if
  end subroutine
end module

program directions
  use grid
  implicit none
  integer :: step, d
  call read_command()
  allocate (u(n, n, n), a(0:n))
  a = 0.5d0
  u = 1.0d0
  do step = 1, steps
    do d = 1, 3
      call sweep(d)
    end do
  end do
end program
