! Heat flow in a rod: the example of a Fortran program whose kernels `gapwatch couple` runs in chains.
!
!     heat [N [PASSES]]
module kernels
   use, intrinsic :: iso_fortran_env, only: real64
   implicit none
   real(real64), allocatable :: t(:), flux(:)

contains

   subroutine flow()
      flux(1:size(t) - 1) = 0.1_real64 * (t(1:size(t) - 1) - t(2:))
   end subroutine

   subroutine update()
      t(1:size(t) - 1) = t(1:size(t) - 1) - flux(1:size(t) - 1)
      t(2:) = t(2:) + flux(1:size(t) - 1)
   end subroutine
end module

program heat
   use gapwatch_coupling
   use kernels
   implicit none
   integer :: n, passes, pass, i
   n = argument(1, 100000)
   passes = coupling_passes(argument(2, 200))
   allocate (t(n), flux(n))
   t = [(sin(0.01_real64 * i), i = 1, n)]
   flux = 0

   call coupling_start()
   do pass = 1, passes
      if (coupling_runs("flow")) call flow()
      if (coupling_runs("update")) call update()
   end do
   call coupling_stop()
   print '(a, es20.12)', "checksum", sum(t)

contains

   integer function argument(position, otherwise)
      integer, intent(in) :: position, otherwise
      character(40) :: text
      argument = otherwise
      if (command_argument_count() < position) return
      call get_command_argument(position, text)
      read (text, *) argument
   end function
end program
