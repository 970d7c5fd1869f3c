! Threads add into a shared sum one after the other.
program dot_per_thread
  implicit none
  integer, parameter :: n = 20000, passes = 15
  double precision :: a(n), s
  integer :: pass, i
  do i = 1, n
     a(i) = 1.0d0 / i
  end do
  s = 0.0d0
  do pass = 1, passes
#ifdef REPAIRED
     !$omp parallel do reduction(+: s)
     do i = 1, n
        s = s + weigh(a(i))
     end do
#else
     !$omp parallel do
     do i = 1, n
        !$omp critical
        s = s + weigh(a(i))
        !$omp end critical
     end do
#endif
  end do
  print '(a,es14.6)', 's ', s
contains
  double precision function weigh(x)
    double precision, intent(in) :: x
    integer :: k
    weigh = x
    do k = 1, 150
       weigh = 0.5d0 * (weigh + (1.0d0 + x) / weigh)
    end do
  end function weigh
end program dot_per_thread
