! Charges of particles are added to a grid by atomic updates; cells are shared by many of them.
program atomic_field
  implicit none
  integer, parameter :: particles = 30000, cells = 64, steps = 12
  double precision :: grid(cells)
  double precision :: charge
  integer :: step, i, cell
  grid = 0.0d0
  do step = 1, steps
#ifdef REPAIRED
     !$omp parallel do private(cell, charge) reduction(+: grid)
     do i = 1, particles
        cell = 1 + mod(i * 7 + step, cells)
        charge = weigh(cell)
        grid(cell) = grid(cell) + charge
     end do
#else
     !$omp parallel do private(cell, charge)
     do i = 1, particles
        cell = 1 + mod(i * 7 + step, cells)
        charge = weigh(cell)
        !$omp critical
        grid(cell) = grid(cell) + charge
        !$omp end critical
     end do
#endif
  end do
  print '(a,f14.6)', 'charge ', sum(grid)
contains
  double precision function weigh(cell)
    integer, intent(in) :: cell
    integer :: k
    weigh = 1.0d-6 * cell
    do k = 1, 60
       weigh = weigh + 1.0d-9 / (1.0d0 + weigh)
    end do
  end function weigh
end program atomic_field
