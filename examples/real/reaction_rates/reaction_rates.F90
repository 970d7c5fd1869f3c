! Reaction rates by powers and exponentials that could be products.
program reaction_rates
  implicit none
  integer, parameter :: n = 20000, steps = 3000
  double precision :: c(n), rate(n)
  integer :: i, step
  do i = 1, n
     c(i) = 0.5d0 + dble(i) / n
  end do
  do step = 1, steps
     call find_rates(c, rate)
     c = c + 1.0d-4 * rate
  end do
  print '(a,f12.6)', 'sum ', sum(c)
contains
  subroutine find_rates(c, rate)
    double precision, intent(in) :: c(n)
    double precision, intent(out) :: rate(n)
    integer :: k
    do k = 1, n
#ifdef REPAIRED
       rate(k) = c(k) * sqrt(c(k)) - 0.1d0 * c(k) * c(k) * sqrt(c(k))
#else
       rate(k) = c(k)**1.5d0 - 0.1d0 * exp(2.5d0 * log(c(k)))
#endif
    end do
  end subroutine find_rates
end program reaction_rates
