
module gapwatch_counters_@FILE@
  use, intrinsic :: iso_c_binding
  implicit none
  integer(8), save :: counts(0:@COUNTERS@ - 1) = 0
  integer(8), save :: known(0:@VALUES@ - 1) = 0, least(0:@VALUES@ - 1) = 0, most(0:@VALUES@ - 1) = 0
  logical, save :: waiting = .true.
  interface
    integer(c_int) function at_exit(what) bind(c, name="atexit")
      import
      type(c_funptr), value :: what
    end function
    integer(c_int) function process() bind(c, name="getpid")
      import
    end function
  end interface
contains
  subroutine gapwatch_write() bind(c, name="gapwatch_write_@FILE@")
    character(len=4096) :: folder, rank, number
    integer :: status, unit, n
    call get_environment_variable("GAPWATCH_COUNTS", folder, status=status)
    if (status /= 0) return
    call get_environment_variable("OMPI_COMM_WORLD_RANK", rank, status=status)
    if (status /= 0) call get_environment_variable("PMI_RANK", rank, status=status)
    if (status /= 0) call get_environment_variable("SLURM_PROCID", rank, status=status)
    if (status /= 0) rank = "0"
    write (number, "(i0)") process()
    open (newunit=unit, file=trim(folder)//"/@FILE@."//trim(rank)//"."//trim(number), action="write")
    do n = 0, @COUNTERS@ - 1
      write (unit, "(i0)") counts(n)
    end do
    do n = 0, @VALUES@ - 1
      write (unit, "(i0,1x,i0,1x,i0)") known(n), least(n), most(n)
    end do
    write (unit, "(a)") "end"
    close (unit)
  end subroutine
end module

subroutine gapwatch_tick_@FILE@(n)
  use gapwatch_counters_@FILE@
  implicit none
  integer, intent(in) :: n
  integer :: ignored
  if (waiting) then
    waiting = .false.
    ignored = at_exit(c_funloc(gapwatch_write))
  end if
  !$omp atomic
  counts(n) = counts(n) + 1
end subroutine

subroutine gapwatch_add_@FILE@(n, times)
  use gapwatch_counters_@FILE@
  implicit none
  integer, intent(in) :: n
  integer(8), intent(in) :: times
  !$omp atomic
  counts(n) = counts(n) + times
end subroutine

subroutine gapwatch_value_@FILE@(n, x)
  use gapwatch_counters_@FILE@
  implicit none
  integer, intent(in) :: n
  integer(8), intent(in) :: x
  if (known(n) == 0) then
    least(n) = x
    most(n) = x
  end if
  least(n) = min(least(n), x)
  most(n) = max(most(n), x)
  known(n) = 1
end subroutine
