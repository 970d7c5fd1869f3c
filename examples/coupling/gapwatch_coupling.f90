! Lets a Fortran program run a chosen chain of its kernels in a loop, for `gapwatch couple` (docs/plugins/coupling.md).
!
!     call coupling_start()
!     do pass = 1, coupling_passes(200)
!        if (coupling_runs("x_solve")) call x_solve(u)
!        if (coupling_runs("y_solve")) call y_solve(u)
!     end do
!     call coupling_stop()
!
! GAPWATCH_CHAIN names the kernels to run, with commas; GAPWATCH_PASSES how often. Without them the program is what it
! was. Looking a name up takes some 0.1 us: ask before the loop where kernels are that short. Of an MPI program
! rank 0 prints, so put a barrier before coupling_start and coupling_stop.
module gapwatch_coupling
   use, intrinsic :: iso_fortran_env, only: int64, real64, output_unit
   implicit none
   private
   public :: coupling_runs, coupling_passes, coupling_start, coupling_stop
   integer(int64) :: started = 0
   real(real64) :: cpu_started = 0

contains

   !> Whether the kernel is to run: it is in the chain, or no chain was asked for.
   logical function coupling_runs(kernel)
      character(*), intent(in) :: kernel
      character(2000) :: chain
      integer :: status
      call get_environment_variable("GAPWATCH_CHAIN", chain, status=status)
      coupling_runs = .true.
      if (status == 0) coupling_runs = index("," // trim(chain) // ",", "," // trim(kernel) // ",") > 0
   end function

   !> The passes through the loop: GAPWATCH_PASSES, or those of the program.
   integer function coupling_passes(passes)
      integer, intent(in) :: passes
      character(40) :: asked
      integer :: status
      coupling_passes = passes
      call get_environment_variable("GAPWATCH_PASSES", asked, status=status)
      if (status == 0) read (asked, *) coupling_passes
   end function

   subroutine coupling_start()
      call system_clock(started)
      call cpu_time(cpu_started)
   end subroutine

   !> Print what the loop took, if a chain or passes were asked for.
   subroutine coupling_stop()
      integer(int64) :: now, rate
      real(real64) :: cpu
      character(40) :: rank
      integer :: chain, passes
      call system_clock(now, rate)
      call cpu_time(cpu)
      call get_environment_variable("GAPWATCH_CHAIN", status=chain)
      call get_environment_variable("GAPWATCH_PASSES", status=passes)
      if (chain == 1 .and. passes == 1) return
      rank = first_set([character(20) :: "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"])
      if (rank /= "" .and. rank /= "0") return
      write (output_unit, '(a, f0.9, a, f0.9, a)') "coupling: loop ", &
         real(now - started, real64) / real(rate, real64), " s, cpu ", cpu - cpu_started, " s"
      flush (output_unit)
   end subroutine

   !> The value of the first of these variables that is set, or nothing.
   function first_set(names) result(value)
      character(*), intent(in) :: names(:)
      character(40) :: value
      integer :: i, status
      do i = 1, size(names)
         call get_environment_variable(trim(names(i)), value, status=status)
         if (status == 0) return
      end do
      value = ""
   end function
end module
